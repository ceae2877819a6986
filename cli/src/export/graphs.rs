//! The graphs of a class as ONNX files, with the inputs that exporters give them.

use std::fs;
use std::path::Path;

use weft::lower::Lowered;
use weft::{GraphKind, Result};

use super::storage::{self, Storage, Stored};
use super::{DtypeName, Export, defaults, form, io};
use crate::terminal::bad_input;

/// Writes the graph of the class: with a KV cache where it has one, else the forward pass.
pub fn write(
    export: &Export<'_>,
    dtype: DtypeName,
    folder: &Path,
    stem: &str,
    storage: Storage,
) -> Result<Vec<Stored>> {
    let lowered = lowered(export, dtype)?;
    let data = format!("{stem}.onnx_data");
    let (model, mut stored) = storage::place(lowered, folder, &data, storage)?;
    let path = folder.join(format!("{stem}.onnx"));
    let bytes = prost::Message::encode_to_vec(&model);
    if bytes.len() as u64 > MOST_BYTES {
        let help = "leave the weights beside it";
        return Err(bad_input("model", format!("is {} bytes as one protocol buffer", bytes.len()), help));
    }
    fs::write(&path, &bytes).map_err(|source| io(&path, source))?;
    stored.insert(0, Stored { path: format!("{stem}.onnx"), bytes: bytes.len() as u64 });
    Ok(stored)
}

/// The most bytes of a protocol buffer.
pub const MOST_BYTES: u64 = (1 << 31) - 1;

/// The graph, lowered.
pub fn lowered(export: &Export<'_>, dtype: DtypeName) -> Result<Lowered> {
    let precision = dtype.precision();
    let mut loader = export.loader.clone();
    if precision.is_quantized() {
        loader = loader.precision(precision);
    }
    let kinds = loader.graph_kinds(export.task)?;
    if kinds.contains(&GraphKind::Encoder) || kinds.contains(&GraphKind::Prefill) {
        let problem = "is of several graphs (an encoder and a decoder, or images and a decoder), which no layout here has";
        let help = "export the class of its encoder alone with `--class`, or run it with `weft run`";
        return Err(bad_input("class", problem, help));
    }
    let kind = if kinds.contains(&GraphKind::Decode) { GraphKind::Decode } else { GraphKind::Forward };
    let mut lowered = loader.lower(export.task, kind, form::target(precision))?;
    if let Some(graph) = &mut lowered.model.graph {
        let inputs = loader.inputs(export.task, kind)?;
        defaults::compute(graph, &inputs, kind.is_cached());
    }
    Ok(lowered)
}
