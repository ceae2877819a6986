//! Weights as ONNX Runtime Web takes them: ranges of the checkpoint's files; bfloat16, which it has no kernels for, widened.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::graph::Dtype;
use crate::lower::{Lowered, Memory};
use crate::onnx::{self, Model, Tensor};
use crate::{Error, Result, files};

/// Where the model finds the weights that were widened.
const WIDENED: &str = "widened.float32";

/// A model and the files that it names.
pub(super) struct Prepared {
    pub model: Model,
    /// What lies in files, by the location that the model gives: where the file is, and offsets and lengths of what is read.
    pub files: BTreeMap<String, (PathBuf, Vec<[u64; 2]>)>,
    /// What is in memory, by the location that the model gives.
    pub memory: BTreeMap<String, Vec<u8>>,
}

/// The model with what it names.
pub(super) fn prepare(lowered: &Lowered) -> Result<Prepared> {
    let mut model = lowered.model.clone();
    let folder = lowered.folder.as_deref().unwrap_or(Path::new(""));
    let mut files: BTreeMap<String, (PathBuf, Vec<[u64; 2]>)> = BTreeMap::new();
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
                    let file = || (folder.join(location), vec![]);
                    let range = [number(weight, "offset"), number(weight, "length")];
                    files.entry(location.to_owned()).or_insert_with(file).1.push(range);
                }
            }
        }
    }
    if !widened.is_empty() {
        memory.insert(WIDENED.to_owned(), widened);
    }
    Ok(Prepared { model, files, memory })
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
    range.map_err(|e| match e.kind() {
        ErrorKind::UnexpectedEof => {
            let problem = format!("ends within tensor `{}`", weight.name);
            Error::weights(path, problem, "download the file again")
        }
        _ => Error::io(path, e),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bfloat16_is_widened_and_the_rest_stays_in_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let half = half::bf16::from_f32(-1.5).to_le_bytes();
        std::fs::write(folder.path().join("model.safetensors"), [&[9, 9][..], &half, &[7; 4]].concat())
            .unwrap();
        let file = "model.safetensors";
        let inline =
            Tensor::inline("inline", Dtype::Bf16, &[1], half::bf16::from_f32(2.0).to_le_bytes().to_vec());
        let initializer = vec![
            Tensor::external("narrow", Dtype::Bf16, &[1], file, 2, 2),
            Tensor::external("kept", Dtype::F32, &[1], file, 4, 4),
            inline,
        ];
        let graph = onnx::Graph { initializer, ..onnx::Graph::default() };
        let model = Model { graph: Some(graph), ..Model::default() };
        let mut lowered = Lowered {
            model,
            folder: Some(folder.path().to_path_buf()),
            memory: BTreeMap::new(),
            operators: BTreeMap::new(),
        };
        let prepared = prepare(&lowered).unwrap();
        let weights = &prepared.model.graph.unwrap().initializer;
        let places: Vec<_> = weights.iter().map(|w| (entry(w, "location"), entry(w, "offset"))).collect();
        let widened = Some(WIDENED);
        assert_eq!(places, [(widened, Some("0")), (Some(file), Some("4")), (widened, Some("4"))]);
        assert!(weights.iter().all(|weight| weight.data_type == onnx::data_type(Dtype::F32)));
        assert_eq!(prepared.memory[WIDENED], [(-1.5_f32).to_le_bytes(), 2.0_f32.to_le_bytes()].concat());
        assert_eq!(prepared.files[file], (folder.path().join(file), vec![[4, 4]]));

        let short = Tensor::external("narrow", Dtype::Bf16, &[9], file, 2, 18);
        lowered.model.graph.as_mut().unwrap().initializer.push(short);
        assert!(prepare(&lowered).err().unwrap().to_string().contains("ends within tensor `narrow`"));
    }
}
