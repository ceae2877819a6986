//! Weights as ONNX Runtime Web can take them: files as they are; bfloat16, which it has no kernels for, widened.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use super::server::{BINARY, Resource};
use crate::graph::Dtype;
use crate::lower::{Lowered, Memory};
use crate::onnx::{self, Model, Tensor};
use crate::{Error, Result};

/// Where the model finds the weights that were widened.
const WIDENED: &str = "widened.float32";

/// A model and the files that it names.
pub(super) struct Served {
    pub model: Model,
    /// By the location that the model gives.
    pub data: BTreeMap<String, Resource>,
}

/// The model with what its tab must be able to fetch.
pub(super) fn prepare(lowered: &Lowered) -> Result<Served> {
    let mut model = lowered.model.clone();
    let folder = lowered.folder.as_deref().unwrap_or(Path::new(""));
    let mut data = BTreeMap::new();
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
            let resource = || match lowered.memory.get(location) {
                Some(bytes) => Resource::Bytes { bytes: bytes.to_vec().into(), kind: BINARY },
                None => Resource::File { path: folder.join(location), kind: BINARY },
            };
            data.entry(location.to_owned()).or_insert_with(resource);
        }
    }
    if !widened.is_empty() {
        data.insert(WIDENED.to_owned(), Resource::Bytes { bytes: widened.into(), kind: BINARY });
    }
    Ok(Served { model, data })
}

fn entry<'a>(weight: &'a Tensor, key: &str) -> Option<&'a str> {
    weight.external_data.iter().find(|entry| entry.key == key).map(|entry| entry.value.as_str())
}

/// A weight's bytes, from the model or from its file.
fn bytes(weight: &Tensor, folder: &Path, memory: &Memory) -> Result<Vec<u8>> {
    let Some(location) = entry(weight, "location") else {
        return Ok(weight.raw_data.clone().unwrap_or_default());
    };
    let number = |key| entry(weight, key).and_then(|value| value.parse::<u64>().ok()).unwrap_or_default();
    if let Some(bytes) = memory.get(location) {
        return Ok(bytes.to_vec());
    }
    let path = folder.join(location);
    let mut read = vec![];
    File::open(&path)
        .and_then(|mut file| {
            file.seek(SeekFrom::Start(number("offset")))?;
            file.take(number("length")).read_to_end(&mut read)
        })
        .map_err(|e| Error::io(&path, e))?;
    if read.len() as u64 != number("length") {
        let problem = format!("ends within tensor `{}`", weight.name);
        return Err(Error::weights(path, problem, "download the file again"));
    }
    Ok(read)
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
        let served = prepare(&lowered).unwrap();
        let weights = &served.model.graph.unwrap().initializer;
        let places: Vec<_> = weights.iter().map(|w| (entry(w, "location"), entry(w, "offset"))).collect();
        let widened = Some(WIDENED);
        assert_eq!(places, [(widened, Some("0")), (Some(file), Some("4")), (widened, Some("4"))]);
        assert!(weights.iter().all(|weight| weight.data_type == onnx::data_type(Dtype::F32)));
        let Some(Resource::Bytes { bytes, .. }) = served.data.get(WIDENED) else {
            panic!("nothing was widened")
        };
        assert_eq!(bytes[..], [(-1.5_f32).to_le_bytes(), 2.0_f32.to_le_bytes()].concat());
        assert!(matches!(served.data.get(file), Some(Resource::File { .. })));

        let short = Tensor::external("narrow", Dtype::Bf16, &[9], file, 2, 18);
        lowered.model.graph.as_mut().unwrap().initializer.push(short);
        assert!(prepare(&lowered).err().unwrap().to_string().contains("ends within tensor `narrow`"));
    }
}
