//! How hidden states become the vector of a text, as `sentence-transformers` has it in files of its own.

use serde_json::{Value as Json, json};

use super::Gguf;
use super::value::Value;
use crate::{Error, Result};

/// The folder of the pooling, as published checkpoints have it.
pub(super) const CONFIG: &str = "1_Pooling/config.json";

/// The poolings by their numbers in files, of which the rest are none.
const MODES: [(u64, &str); 3] = [(1, "mean"), (2, "cls"), (3, "lasttoken")];

/// `modules.json` of a file that says how it is pooled; none where the file is beside it.
///
/// # Errors
/// When dense layers follow, which are not read.
pub(super) fn modules(gguf: &Gguf) -> Result<Option<Json>> {
    if gguf.path().with_file_name("modules.json").is_file() {
        return Ok(None);
    }
    if gguf.tensor("dense_2.weight").is_some() {
        let help = "put the modules.json of the checkpoint that was converted beside the file, with the folders that it names";
        return Err(Error::weights(
            gguf.path(),
            "has dense layers behind its pooling, which are not read",
            help,
        ));
    }
    let module = |kind: &str, path: &str| json!({"type": format!("sentence_transformers.models.{kind}"), "path": path});
    Ok(mode(gguf).map(|_| json!([module("Transformer", ""), module("Pooling", "1_Pooling")])))
}

/// The pooling's `config.json`.
pub(super) fn config(gguf: &Gguf) -> Option<Json> {
    let beside = gguf.path().with_file_name(CONFIG).is_file();
    mode(gguf).filter(|_| !beside).map(|mode| json!({"pooling_mode": mode}))
}

fn mode(gguf: &Gguf) -> Option<&'static str> {
    let number = gguf.value("pooling_type").and_then(Value::whole)?;
    MODES.into_iter().find(|(known, _)| *known == number).map(|(_, mode)| mode)
}
