//! The layout of transformers.js: the checkpoint's files, and `onnx/` with a model for each dtype.

use std::fs;

use serde_json::{Value as Json, json};
use weft::Result;
use weft::onnx::{Graph, dimension};

use super::seq2seq::Form;
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
        let mut stored = vec![];
        for (stem, mut lowered) in graphs::lowered(export, *dtype, Form::Merged)? {
            lowered.model.graph.iter_mut().for_each(name_batches);
            let stem = format!("{stem}{}", dtype.suffix());
            stored.extend(graphs::write(lowered, &folder, &stem, storage)?);
        }
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

/// Calls the batch what transformers.js begins caches by; lengths that it does not know are 0 in these.
fn name_batches(graph: &mut Graph) {
    for value in graph.input.iter_mut().chain(&mut graph.output) {
        let tensor = value.kind.as_mut().and_then(|kind| kind.tensor.as_mut());
        let lengths = tensor.and_then(|tensor| tensor.shape.as_mut()).map(|shape| &mut shape.dim);
        for length in lengths.into_iter().flatten() {
            if let Some(dimension::Value::Parameter(symbol)) = &mut length.value
                && symbol == "batch"
            {
                "batch_size".clone_into(symbol);
            }
        }
    }
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
