//! Folders of pipelines of `diffusers`, which have a `model_index.json` and no configuration of all.

use super::{Checkpoint, INDEX};
use crate::{Error, Result};

impl Checkpoint {
    /// The configuration of a pipeline of `diffusers`, whose parts are those of the components that have one: what stands for
    /// the `config.json` that it lacks.
    pub(super) fn pipeline(&self) -> Result<Option<serde_json::Value>> {
        if self.implied(INDEX)?.is_none() && self.path(INDEX)?.is_none() {
            return Ok(None);
        }
        let path = self.require(INDEX)?;
        let Some(index) = self.json(INDEX)?.and_then(|index| index.as_object().cloned()) else {
            return Err(Error::config(path, "is no JSON object", "fetch the file again"));
        };
        let mut config = serde_json::Map::new();
        for (name, value) in index {
            let component =
                value.as_array().is_some_and(|pair| pair.iter().any(serde_json::Value::is_string));
            if !component {
                if !value.is_array() {
                    config.insert(name, value);
                }
            } else if let Some(own) = self.component(&name).json("config.json")? {
                config.insert(name, own);
            }
        }
        Ok(Some(config.into()))
    }
}

/// The class that a `config.json` of `diffusers` names, where those of `transformers` name theirs.
pub(super) fn class_name(json: &mut serde_json::Value) {
    let Some(fields) = json.as_object_mut().filter(|fields| !fields.contains_key("model_type")) else {
        return;
    };
    if let Some(class) = fields.get("_class_name").and_then(|class| class.as_str()).map(str::to_owned) {
        fields.insert("model_type".to_owned(), format!("diffusers:{class}").into());
        fields.entry("architectures").or_insert_with(|| vec![class].into());
    }
}
