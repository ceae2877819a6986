//! The graphs of a class as ONNX files, with the inputs that exporters give them.

use std::fs;
use std::path::Path;

use weft::lower::Lowered;
use weft::{GraphKind, Result};

use super::defaults::{self, Ids};
use super::seq2seq::{self, Form};
use super::storage::{self, Storage, Stored};
use super::{DtypeName, Export, form, io};
use crate::terminal::bad_input;

/// The stem of the file of a class with one graph.
pub const MODEL: &str = "model";

/// Writes the graphs of the class, the stems of their files followed by what stands for the dtype.
pub fn write_all(
    export: &Export<'_>,
    dtype: DtypeName,
    folder: &Path,
    suffix: &str,
    storage: Storage,
) -> Result<Vec<Stored>> {
    let mut all = vec![];
    for (stem, lowered) in lowered(export, dtype, Form::Merged)? {
        all.extend(write(lowered, folder, &format!("{stem}{suffix}"), storage)?);
    }
    Ok(all)
}

/// Writes a graph.
pub fn write(lowered: Lowered, folder: &Path, stem: &str, storage: Storage) -> Result<Vec<Stored>> {
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

/// The graphs, lowered, by the stems of their files: with a KV cache where the class has one, else the forward pass.
pub fn lowered(
    export: &Export<'_>,
    dtype: DtypeName,
    of_seq2seq: Form,
) -> Result<Vec<(&'static str, Lowered)>> {
    let precision = dtype.precision();
    let mut loader = export.loader.clone();
    if precision.is_quantized() {
        loader = loader.precision(precision);
    }
    let kinds = loader.graph_kinds(export.task)?;
    if kinds.contains(&GraphKind::Encoder) {
        return seq2seq::lowered(&loader, export.task, dtype, of_seq2seq);
    }
    if kinds.contains(&GraphKind::Prefill) {
        let problem = "has a prompt of images or audio beside tokens, which no layout here has";
        return Err(bad_input("class", problem, "run it with `weft run`"));
    }
    if kinds.contains(&GraphKind::AtKeypoints) {
        let problem = "chooses keypoints between two graphs, which no layout here has";
        return Err(bad_input("class", problem, "run it with `weft run`"));
    }
    let kind = if kinds.contains(&GraphKind::Decode) { GraphKind::Decode } else { GraphKind::Forward };
    let mut lowered = loader.lower(export.task, kind, form::target(precision))?;
    if let Some(graph) = &mut lowered.model.graph {
        let inputs = loader.inputs(export.task, kind)?;
        defaults::compute(graph, &inputs, Ids::of(kind.is_cached()));
    }
    Ok(vec![(MODEL, lowered)])
}
