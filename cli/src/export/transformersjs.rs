//! The layout of transformers.js: the checkpoint's files, and `onnx/` with a model for each dtype.

use std::fs;

use serde_json::{Value as Json, json};
use weft::Result;

use super::storage::{Storage, Stored};
use super::{Export, copy_files, create, graphs, io};

/// From so many bytes of weights on, they stand beside the model.
const MOST_INLINE: u64 = 1 << 30;

/// Writes the folder.
pub fn write(export: &Export<'_>) -> Result<Vec<Stored>> {
    let folder = export.out.join("onnx");
    create(&folder)?;
    let large = weights(export) >= MOST_INLINE;
    let storage = if large { Storage::Pack } else { Storage::Inline };
    let mut all = vec![];
    for dtype in &export.dtypes {
        let stem = format!("model{}", dtype.suffix());
        let stored = graphs::write(export, *dtype, &folder, &stem, storage)?;
        let inside = |file: Stored| Stored { path: format!("onnx/{}", file.path), ..file };
        all.extend(stored.into_iter().map(inside));
    }
    copy_files(export.loader.checkpoint(), export.out)?;
    if large {
        let path = export.out.join("config.json");
        let mut config = export.loader.checkpoint().json("config.json")?.unwrap_or_default();
        config["transformers.js_config"] = json!({ "use_external_data_format": true });
        let text = serde_json::to_string_pretty(&config).unwrap_or_default();
        fs::write(&path, text).map_err(|source| io(&path, source))?;
    }
    Ok(all)
}

/// The bytes of the checkpoint's weight files.
fn weights(export: &Export<'_>) -> u64 {
    let folder = export.loader.checkpoint().dir();
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    let weights = files.filter(|file| file.path().extension().is_some_and(|ending| ending == "safetensors"));
    weights.filter_map(|file| Some(fs::metadata(file.path()).ok()?.len())).sum()
}

/// A field of `config.json`, or of the configuration of its text model.
pub fn field<'a>(config: &'a Json, name: &str) -> &'a Json {
    match &config[name] {
        Json::Null => &config["text_config"][name],
        found => found,
    }
}
