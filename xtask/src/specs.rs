//! The specs of this repository, resolved: which models there are, and which one a `config.json` belongs to.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use weft_generator::spec::architectures::Architectures;
use weft_generator::spec::document::{Problem, nearest_name};
use weft_generator::spec::load::{self, Folder};
use weft_generator::spec::model::ModelSpec;
use weft_generator::spec::not_yet::NotYet;

use crate::terminal::Usage;
use crate::workspace::{self, Member};

/// Everything declared.
pub struct Catalog {
    pub architectures: Architectures,
    /// By model, each with what it inherits.
    pub models: BTreeMap<String, ModelSpec>,
    /// What the reference has, and why what is no model here is none.
    pub not_yet: NotYet,
}

impl Catalog {
    /// Reads `model_specs/`; a single problem in it is an error, as it is for `generate`.
    pub fn load() -> Result<Self> {
        let dir = workspace::root().join("model_specs");
        let shown = Path::new("model_specs");
        let architectures = Architectures::load(&dir)?;
        let not_yet = NotYet::load(&dir)?;
        let folder = Folder { dir, label: "model_specs".into(), shown: shown.into(), generate: true };
        let files = load::find(&[folder]).map_err(|problems| problem(&problems))?;
        let categories: Vec<_> = architectures.categories.keys().map(String::as_str).collect();
        let specs = load::Specs::read(files, &categories);
        let mut models = BTreeMap::new();
        let mut problems = Vec::new();
        for index in 0..specs.files.len() {
            match specs.resolve(index) {
                Ok(resolved) => {
                    let mut spec = resolved.spec;
                    if spec.category.is_none() {
                        spec.category.clone_from(&specs.files[index].folder);
                    }
                    models.insert(spec.model.clone(), spec);
                }
                Err(found) => problems.extend(found),
            }
        }
        if problems.is_empty() {
            Ok(Self { architectures, models, not_yet })
        } else {
            Err(problem(&problems))
        }
    }

    /// The model whose checkpoints say this `model_type`.
    pub fn of_type(&self, model_type: &str) -> Option<&ModelSpec> {
        self.models.values().find(|spec| model_types(spec).any(|known| known == model_type))
    }

    /// The generated crate for the `config.json` in `dir`.
    pub fn crate_for(&self, dir: &Path) -> Result<Member> {
        let (config, open_clip) = (dir.join("config.json"), dir.join("open_clip_config.json"));
        self.crate_of(if !config.is_file() && open_clip.is_file() { &open_clip } else { &config })
    }

    /// The generated crate for a `config.json`.
    pub fn crate_of(&self, path: &Path) -> Result<Member> {
        let model_type = model_type(path)?;
        let Some(spec) = self.of_type(&model_type) else {
            let known = self.models.values().flat_map(model_types);
            let near = nearest_name(&model_type, known)
                .map(|n| format!("; did you mean `{n}`?"))
                .unwrap_or_default();
            bail!(
                "{}: no spec describes model_type `{model_type}`{near}\n  help: draft one with `cargo xtask new {} --from {}`",
                path.display(),
                model_type.replace('_', "-"),
                path.display()
            );
        };
        let members = workspace::generated(workspace::root())?;
        members
            .into_iter()
            .find(|member| member.model == spec.model)
            .with_context(|| format!("`{}` has a spec and no crate: run `cargo xtask generate`", spec.model))
    }
}

/// The values of `model_type` that a spec stands for.
pub fn model_types(spec: &ModelSpec) -> impl Iterator<Item = &str> {
    let own = spec.model_types.is_empty().then_some(spec.model.as_str());
    own.into_iter().chain(spec.model_types.iter().map(String::as_str))
}

/// A `config.json`.
pub fn config(path: &Path) -> Result<serde_json::Map<String, serde_json::Value>> {
    let text = fs::read_to_string(path)
        .map_err(|error| Usage(format!("{} cannot be read: {error}", path.display())))?;
    match json(&text).with_context(|| format!("{} is not JSON", path.display()))? {
        serde_json::Value::Object(config) => Ok(config),
        _ => bail!("{} holds no object: is it a model's config.json?", path.display()),
    }
}

/// JSON, also with Python's `Infinity` as a bare word, which published files hold: as the largest number.
fn json(text: &str) -> serde_json::Result<serde_json::Value> {
    let read = |error| {
        // Every other piece between quotation marks lies in a string.
        let pieces = text.split('"').enumerate().map(|(index, piece)| match index % 2 {
            0 => piece.replace("Infinity", "1e308"),
            _ => piece.to_owned(),
        });
        serde_json::from_str(&pieces.collect::<Vec<_>>().join("\"")).map_err(|_| error)
    };
    serde_json::from_str(text).or_else(read)
}

fn model_type(path: &Path) -> Result<String> {
    let config = config(path)?;
    match config.get("model_type") {
        Some(serde_json::Value::String(name)) => Ok(name.clone()),
        // A configuration of diffusers.
        None if config.get("_class_name").is_some_and(serde_json::Value::is_string) => {
            Ok(format!("diffusers:{}", config["_class_name"].as_str().unwrap_or_default()))
        }
        // A configuration of open_clip, as the runtime reads it.
        None if config.get("model_cfg").is_some_and(|model| model.get("multimodal_cfg").is_some()) => {
            Ok("open_clip:CoCa".to_owned())
        }
        Some(other) => bail!("{}: `model_type` is {other}, expected a name such as \"bert\"", path.display()),
        None => bail!("{} has no `model_type`: add the one that `save_pretrained` writes", path.display()),
    }
}

/// All problems, one a line.
fn problem(problems: &[Problem]) -> anyhow::Error {
    let lines: Vec<_> = problems.iter().map(ToString::to_string).collect();
    anyhow::anyhow!("the specs have problems\n{}", lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::json;

    #[test]
    fn infinity_outside_texts_is_the_largest_number() {
        let read =
            json(r#"{"time_step_limit": [0.0, Infinity], "least": -Infinity, "said": "Infinity"}"#).unwrap();
        let want = serde_json::json!({"time_step_limit": [0.0, 1e308], "least": -1e308, "said": "Infinity"});
        assert_eq!(read, want);
        assert!(json("{\"a\": Inf}").unwrap_err().to_string().contains("line 1 column 7"));
    }
}
