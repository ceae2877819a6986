//! The architectures of a build, and finding the one that a checkpoint's `model_type` names (`AutoModel`).

use serde_json::Value as Json;

use crate::hub::Checkpoint;
use crate::{DynArchitecture, DynLoader, Error, Result};

/// A model that a library knows, whether this build has it or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownModel {
    /// The name in the specs, which is that of the feature of its category's crate.
    pub name: &'static str,
    /// The category, which is the feature of the library that has it.
    pub category: &'static str,
    /// The values of `model_type` in `config.json` that it opens.
    pub model_types: &'static [&'static str],
}

/// The architectures of a build, by `model_type`.
#[derive(Clone, Copy, Debug)]
pub struct ModelRegistry {
    /// Those of each category that are in this build. Each is another crate's static, so that what they call is compiled there.
    pub architectures: &'static [&'static &'static [DynArchitecture]],
    /// Those of each category that could be.
    pub known: &'static [&'static [KnownModel]],
}

impl ModelRegistry {
    /// The architectures of this build.
    pub fn architectures(&self) -> impl Iterator<Item = &'static DynArchitecture> {
        self.architectures.iter().flat_map(|category| category.iter())
    }

    /// The models that builds of all categories have.
    pub fn known(&self) -> impl Iterator<Item = &'static KnownModel> {
        self.known.iter().copied().flatten()
    }

    /// Finds a checkpoint, a folder, a hub id or a GGUF file, and the architecture that its `model_type` names.
    ///
    /// # Errors
    /// When there is no such checkpoint, its `model_type` is known to nothing, or this build was made without it.
    pub fn open(&self, checkpoint: &str) -> Result<DynLoader> {
        let checkpoint = Checkpoint::open(checkpoint)?;
        if checkpoint.gguf().is_none() {
            checkpoint.require("config.json")?;
        }
        let config = checkpoint.json("config.json")?.unwrap_or_default();
        let model_type = match &config["model_type"] {
            Json::String(model_type) => model_type,
            _ => {
                let help = "add the one that `save_pretrained` writes, such as `\"model_type\": \"bert\"`";
                return Err(Error::config(checkpoint.dir().join("config.json"), "has no `model_type`", help));
            }
        };
        match self.of_type(model_type) {
            Ok(architecture) => Ok(architecture.loader(checkpoint)),
            Err((problem, help)) => Err(Error::config(checkpoint.dir().join("config.json"), problem, help)),
        }
    }

    /// The architecture that a `model_type` names; the problem and the way out where there is none.
    fn of_type(&self, model_type: &str) -> Result<&'static DynArchitecture, (String, String)> {
        let mut all = self.architectures();
        if let Some(found) = all.find(|architecture| architecture.model_types().contains(&model_type)) {
            return Ok(found);
        }
        if let Some(known) = self.known().find(|known| known.model_types.contains(&model_type)) {
            let problem = format!("`model_type` is `{model_type}`, which this build was made without");
            let help = format!(
                "build it with `--features weft-models/{}`, which has weft-{} among others",
                known.category, known.name
            );
            return Err((problem, help));
        }
        let near = nearest(model_type, self.known().flat_map(|known| known.model_types).copied());
        let near = near.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default();
        let help = format!("`cargo xtask new {}` drafts a spec for it", model_type.replace('_', "-"));
        Err((format!("`model_type` is `{model_type}`, which no crate opens{near}"), help))
    }
}

/// The name that a mistyped one most likely meant, if one is near enough.
pub(crate) fn nearest<'a>(found: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let near = names.map(|name| (strsim::levenshtein(found, name), name));
    near.filter(|(distance, name)| *distance <= 1 + name.len() / 4).min().map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    const REGISTRY: ModelRegistry = ModelRegistry {
        architectures: &[],
        known: &[
            &[KnownModel { name: "bert", category: "text-encoders", model_types: &["bert"] }],
            &[KnownModel { name: "clip", category: "vision-language", model_types: &["clip", "clip_model"] }],
        ],
    };

    fn refusal(config: &str) -> String {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("config.json"), config).unwrap();
        REGISTRY.open(folder.path().to_str().unwrap()).unwrap_err().to_string()
    }

    #[test]
    fn what_cannot_be_opened_says_why_and_what_to_do() {
        let text = refusal(r#"{"model_type": "bort"}"#);
        assert!(text.contains("`bort`, which no crate opens; did you mean `bert`?"), "{text}");
        let text = refusal(r#"{"model_type": "clip_model"}"#);
        assert!(
            text.contains("made without") && text.contains("--features weft-models/vision-language"),
            "{text}"
        );
        assert!(refusal("{}").contains("has no `model_type`"));
        let text = REGISTRY.open("/no/such/folder").unwrap_err().to_string();
        assert!(text.contains("no such folder"), "{text}");
        let empty = tempfile::tempdir().unwrap();
        let text = REGISTRY.open(empty.path().to_str().unwrap()).unwrap_err().to_string();
        assert!(text.contains("no config.json"), "{text}");
    }

    #[test]
    fn names_are_as_far_apart_as_their_edits() {
        assert_eq!(nearest("lama", ["llama", "gemma"].into_iter()), Some("llama"));
        assert_eq!(nearest("xyz", ["llama"].into_iter()), None);
    }
}
