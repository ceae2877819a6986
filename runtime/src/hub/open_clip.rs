//! Folders of `open_clip`, which have an `open_clip_config.json` in place of a `config.json`.

use serde_json::Value;

use super::Checkpoint;
use crate::{Error, Result};

/// Their configuration: `model_cfg` is what the model is made of.
pub(super) const CONFIG: &str = "open_clip_config.json";

impl Checkpoint {
    /// The configuration of a model of `open_clip`, which names its class by what it has: `CoCa` alone has a `multimodal_cfg`. It
    /// stands for the `config.json` that is not there.
    pub(super) fn open_clip(&self) -> Result<Option<Value>> {
        if self.path(CONFIG)?.is_none() {
            return Ok(None);
        }
        let mut json = self.json(CONFIG)?.unwrap_or_default();
        let Some(Value::Object(mut model)) = json.get_mut("model_cfg").map(Value::take) else {
            let path = self.require(CONFIG)?;
            return Err(Error::config(path, "has no object `model_cfg`", "fetch the file again"));
        };
        // It says with others which class reads the file.
        model.remove("custom_text");
        let class = if model.contains_key("multimodal_cfg") { "CoCa" } else { "CLIP" };
        model.insert("model_type".to_owned(), format!("open_clip:{class}").into());
        model.insert("architectures".to_owned(), vec![class].into());
        Ok(Some(model.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_model_has_names_its_class() {
        let folder = tempfile::tempdir().unwrap();
        let config = |text: &str| {
            std::fs::write(folder.path().join(CONFIG), text).unwrap();
            Checkpoint::open(folder.path().to_str().unwrap()).unwrap().json("config.json")
        };
        let json = config(r#"{"model_cfg": {"embed_dim": 512, "multimodal_cfg": {}}}"#).unwrap().unwrap();
        assert_eq!((&json["model_type"], &json["embed_dim"]), (&"open_clip:CoCa".into(), &512.into()));
        assert_eq!(json["architectures"][0], "CoCa");
        let json = config(r#"{"model_cfg": {"embed_dim": 512}}"#).unwrap().unwrap();
        assert_eq!(json["model_type"], "open_clip:CLIP");
        let text = config(r#"{"preprocess_cfg": {}}"#).unwrap_err().to_string();
        assert!(text.contains("open_clip_config.json") && text.contains("`model_cfg`"), "{text}");
        // The reference's own files go before.
        std::fs::write(folder.path().join("config.json"), r#"{"model_type": "clip"}"#).unwrap();
        assert_eq!(config("{}").unwrap().unwrap()["model_type"], "clip");
    }
}
