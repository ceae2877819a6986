//! `architectures.yaml`: the architecture types, what each is for, and what it is declared to run on.

use std::path::Path;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::document::{self, Problem, Problems};
use super::hardware::{Hardware, Support};

/// The whole of `architectures.yaml`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Architectures {
    /// Where the declarations come from, by the short names used in `noted`.
    pub sources: IndexMap<String, Source>,
    /// The folders that models are filed under.
    pub categories: IndexMap<String, Category>,
    /// The architecture types, in the order of the matrices.
    pub architectures: IndexMap<String, ArchitectureType>,
}

/// A document that declarations were taken from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// Its title.
    pub title: String,
    /// The date it gives itself, as `YYYY-MM-DD`; none if it gives none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub date: Option<String>,
    /// What was taken from it.
    pub gives: String,
}

/// A folder that models are filed under.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Category {
    /// Its name in prose.
    pub title: String,
    /// How many architectures the declared coverage counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub declared_architectures: Option<u32>,
    /// The declared share of them that runs on each backend, in percent.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub declared_coverage: IndexMap<Hardware, u8>,
}

/// One architecture type.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ArchitectureType {
    /// Its name in prose.
    pub title: String,
    /// What such a model is.
    pub summary: String,
    /// The template of its pre- and post-processing.
    pub pipeline: Pipeline,
    /// The tasks such models serve, by the names `transformers.pipeline` uses; the research ones by their own.
    pub tasks: Vec<String>,
    /// Families of such models.
    pub examples: Vec<String>,
    /// Published checkpoints of such models.
    pub checkpoints: Vec<String>,
    /// What it is declared to run on; all backends, in the order of the matrices.
    pub hardware: IndexMap<Hardware, HardwareEntry>,
    /// The fallback route: best backend first, `cpu` last. Backends left out are only used when named.
    pub preferred: Vec<Hardware>,
    /// What to use, in words.
    pub recommendation: String,
    /// What other sources say of the type as a whole.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub noted: Vec<Noted>,
}

/// The template of a model's pre- and post-processing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Pipeline {
    /// Text in, text, labels or vectors out.
    Text,
    /// Images in, labels, boxes or masks out.
    Image,
    /// Images and text in, scores or text out.
    VisionText,
    /// Audio in or out.
    Audio,
    /// Several kinds of input at once.
    Multimodal,
    /// Iterative generation of images.
    Diffusion,
    /// Text through sparsely activated experts.
    Moe,
    /// Text through a recurrent state.
    StateSpace,
    /// Text, with documents retrieved for it.
    Rag,
}

impl Pipeline {
    /// Its name in `architectures.yaml` and in front matter.
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Image => "image",
            Self::VisionText => "vision-text",
            Self::Audio => "audio",
            Self::Multimodal => "multimodal",
            Self::Diffusion => "diffusion",
            Self::Moe => "moe",
            Self::StateSpace => "state-space",
            Self::Rag => "rag",
        }
    }
}

/// What is declared for one backend. Declarations are claims; what was observed is in the results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HardwareEntry {
    /// How far it is supported.
    pub support: Support,
    /// Why not fully; needed unless `support` is `full`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Expected speed, in the sources' words (`baseline`, `moderate`, `good`, `excellent` …).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub performance: Option<String>,
    /// Expected memory use, in the sources' words (`low`, `medium`, `high` …).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<String>,
    /// How well each number format does, in the sources' words.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub precision: IndexMap<String, String>,
    /// What to know before using it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notes: Option<String>,
    /// Optimizations that apply.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub optimizations: Vec<String>,
    /// What other sources say, where they say something else or something more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub noted: Vec<Noted>,
}

/// What a source other than the chosen one says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Noted {
    /// The source, by its name in `sources`.
    pub source: String,
    /// Its word on support.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub support: Option<Support>,
    /// Its word on speed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub performance: Option<String>,
    /// Anything else it says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notes: Option<String>,
}

/// What a model's own spec says of one backend, on top of its architecture type.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HardwareOverride {
    /// How far it is supported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub support: Option<Support>,
    /// Why not fully.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Expected speed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub performance: Option<String>,
    /// Expected memory use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<String>,
    /// How well each number format does; replaces single formats.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub precision: IndexMap<String, String>,
    /// What to know before using it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notes: Option<String>,
    /// Optimizations that apply; replaces the type's list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub optimizations: Option<Vec<String>>,
}

impl HardwareEntry {
    /// This entry with a model's own words in place of the type's. A reason is kept only while it explains
    /// the support that is left: full support drops it.
    pub fn overridden(&self, own: &HardwareOverride) -> Self {
        let support = own.support.unwrap_or(self.support);
        let inherited = (support == self.support).then(|| self.reason.clone()).flatten();
        let mut precision = self.precision.clone();
        precision.extend(own.precision.clone());
        Self {
            support,
            reason: own.reason.clone().or(inherited).filter(|_| support != Support::Full),
            performance: own.performance.clone().or_else(|| self.performance.clone()),
            memory: own.memory.clone().or_else(|| self.memory.clone()),
            precision,
            notes: own.notes.clone().or_else(|| self.notes.clone()),
            optimizations: own.optimizations.clone().unwrap_or_else(|| self.optimizations.clone()),
            noted: self.noted.clone(),
        }
    }
}

impl Architectures {
    /// Reads `architectures.yaml` in the folder of the specs.
    ///
    /// # Errors
    /// Every problem found in it.
    pub fn load(model_specs: &Path) -> Result<Self, Problems> {
        let file = model_specs.join("architectures.yaml");
        let (all, text): (Self, String) = document::read(&file)?;
        let problems = all.check(&file, &text);
        problems.or(all)
    }

    /// The architecture type of that name.
    pub fn get(&self, name: &str) -> Option<&ArchitectureType> {
        self.architectures.get(name)
    }

    /// The name nearest to one that does not exist.
    pub fn nearest(&self, name: &str) -> Option<&str> {
        document::nearest_name(name, self.architectures.keys().map(String::as_str))
    }

    fn check(&self, file: &Path, text: &str) -> Problems {
        let mut problems = Problems::default();
        for (name, kind) in &self.architectures {
            let key = format!("architectures.{name}");
            let mut wrong =
                |at: String, message: String| problems.0.push(Problem::at(file, text, &at, message));
            for hardware in Hardware::ALL.into_iter().filter(|hardware| !kind.hardware.contains_key(hardware))
            {
                wrong(
                    format!("{key}.hardware"),
                    format!("lacks `{hardware}`: give its `support` and, if not full, a `reason`"),
                );
            }
            if kind.preferred.last() != Some(&Hardware::Cpu) {
                wrong(format!("{key}.preferred"), "must end with `cpu`, which every machine has".to_owned());
            }
            for (index, hardware) in kind.preferred.iter().enumerate() {
                if kind.preferred[..index].contains(hardware) {
                    wrong(format!("{key}.preferred"), format!("names `{hardware}` twice"));
                }
                if kind.hardware.get(hardware).is_some_and(|entry| entry.support == Support::No) {
                    wrong(
                        format!("{key}.preferred"),
                        format!("names `{hardware}`, which is declared unsupported"),
                    );
                }
            }
            for (hardware, entry) in &kind.hardware {
                let at = format!("{key}.hardware.{hardware}");
                if (entry.support == Support::Full) == entry.reason.is_some() {
                    let message = match entry.support {
                        Support::Full => "full support takes no `reason`; use `notes`",
                        _ => "support that is not full needs a `reason`",
                    };
                    wrong(at.clone(), message.to_owned());
                }
                for noted in entry.noted.iter().filter(|noted| !self.sources.contains_key(&noted.source)) {
                    wrong(format!("{at}.noted"), format!("`{}` is not one of the `sources`", noted.source));
                }
            }
        }
        problems
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PUBLISHED: &str = include_str!("../../../model_specs/architectures.yaml");

    /// What is wrong with the published file once one line of it is another.
    fn spoiled(line: &str, by: &str) -> String {
        let text = PUBLISHED.replacen(line, by, 1);
        assert_ne!(text, PUBLISHED, "no line `{line}`");
        let file = Path::new("architectures.yaml");
        match document::parse::<Architectures>(file, &text) {
            Ok(all) => all.check(file, &text).to_string(),
            Err(problem) => problem.to_string(),
        }
    }

    #[test]
    fn each_mistake_is_named_with_its_place() {
        let word = spoiled("        support: full\n", "        support: ful\n");
        assert!(word.contains("`architectures.encoder-only.hardware.cpu.support`"), "{word}");
        assert!(word.contains("unknown variant `ful`") && word.contains("did you mean `full`?"), "{word}");

        let backend = spoiled("      cuda:\n", "      cdua:\n");
        assert!(
            backend.contains("unknown variant `cdua`") && backend.contains("did you mean `cuda`?"),
            "{backend}"
        );

        let reason = spoiled("        support: full\n", "        support: limited\n");
        let line = PUBLISHED.lines().position(|line| line == "      cpu:").map_or(0, |index| index + 1);
        let want = format!(
            "architectures.yaml:{line}: `architectures.encoder-only.hardware.cpu`: support that is not full needs a `reason`"
        );
        assert_eq!(reason, want);

        let route = spoiled("preferred: [cuda, rocm, openvino, metal, qnn, cpu]", "preferred: [cuda, cuda]");
        assert!(route.contains("must end with `cpu`") && route.contains("names `cuda` twice"), "{route}");

        let source = spoiled("          - source: matrix\n", "          - source: hearsay\n");
        assert!(source.contains("`hearsay` is not one of the `sources`"), "{source}");
    }

    #[test]
    fn a_model_overrides_its_type() {
        let all: Architectures = document::parse(Path::new("architectures.yaml"), PUBLISHED).unwrap();
        let entry = &all.get("decoder-only").unwrap().hardware[&Hardware::Qnn];
        assert_eq!(entry.support, Support::No);
        let own = HardwareOverride { support: Some(Support::Full), ..HardwareOverride::default() };
        assert_eq!(entry.overridden(&own).reason, None);
        let own = HardwareOverride { notes: Some("small".into()), ..HardwareOverride::default() };
        assert_eq!(entry.overridden(&own).reason, entry.reason);
        assert_eq!(all.nearest("decoder_only"), Some("decoder-only"));
    }
}
