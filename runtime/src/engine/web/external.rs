//! Weights as ONNX Runtime Web takes them: ranges of the checkpoint's files; bfloat16, which it has no kernels for, widened.

use std::collections::BTreeMap;
use std::path::Path;

use crate::graph::Dtype;
use crate::lower::{Lowered, Memory};
use crate::onnx::{self, Model, Tensor};
use crate::{Error, Result, files};

/// Where the model finds the weights that were widened.
const WIDENED: &str = "widened.float32";

/// A model and the files that it names.
pub(super) struct Prepared {
    pub model: Model,
    /// What is fetched, by the location that the model gives: the file's URL, and the ranges that are read.
    pub fetched: BTreeMap<String, (String, Vec<[u64; 2]>)>,
    /// What is in memory, by the location that the model gives.
    pub memory: BTreeMap<String, Vec<u8>>,
}

/// The model with what it names.
pub(super) fn prepare(lowered: &Lowered) -> Result<Prepared> {
    let mut model = lowered.model.clone();
    let folder = lowered.folder.as_deref().unwrap_or(Path::new(""));
    let mut fetched: BTreeMap<String, (String, Vec<[u64; 2]>)> = BTreeMap::new();
    let mut memory = BTreeMap::new();
    let mut widened = vec![];
    for weight in model.graph.iter_mut().flat_map(|graph| &mut graph.initializer) {
        if weight.data_type == onnx::data_type(Dtype::Bf16) {
            let narrow = bytes(weight, folder, &lowered.memory)?;
            let offset = widened.len() as u64;
            // A bfloat16 is the upper half of a float32.
            widened.extend(narrow.as_chunks::<2>().0.iter().flat_map(|[low, high]| [0, 0, *low, *high]));
            let dims: Vec<usize> = weight.dims.iter().map(|&n| n as usize).collect();
            let length = widened.len() as u64 - offset;
            *weight = Tensor::external(&weight.name, Dtype::F32, &dims, WIDENED, offset, length);
        } else if let Some(location) = entry(weight, "location") {
            match lowered.memory.get(location) {
                Some(bytes) => drop(memory.entry(location.to_owned()).or_insert_with(|| bytes.to_vec())),
                None => {
                    let url = || (folder.join(location).to_string_lossy().into_owned(), vec![]);
                    let range = [number(weight, "offset"), number(weight, "length")];
                    fetched.entry(location.to_owned()).or_insert_with(url).1.push(range);
                }
            }
        }
    }
    if !widened.is_empty() {
        memory.insert(WIDENED.to_owned(), widened);
    }
    Ok(Prepared { model, fetched, memory })
}

fn entry<'a>(weight: &'a Tensor, key: &str) -> Option<&'a str> {
    weight.external_data.iter().find(|entry| entry.key == key).map(|entry| entry.value.as_str())
}

fn number(weight: &Tensor, key: &str) -> u64 {
    entry(weight, key).and_then(|value| value.parse().ok()).unwrap_or_default()
}

/// A weight's bytes, from the model or from its file.
fn bytes(weight: &Tensor, folder: &Path, memory: &Memory) -> Result<Vec<u8>> {
    let Some(location) = entry(weight, "location") else {
        return Ok(weight.raw_data.clone().unwrap_or_default());
    };
    if let Some(bytes) = memory.get(location) {
        return Ok(bytes.to_vec());
    }
    let path = folder.join(location);
    let range = files::range(&path, number(weight, "offset"), number(weight, "length"));
    range.map_err(|e| Error::io(path, e))
}
