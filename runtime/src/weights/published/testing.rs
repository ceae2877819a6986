//! Tiny checkpoints of quantized tensors, for the tests of the formats.

use std::fs;

use serde_json::{Map, Value as Json, json};

use crate::graph::Weight;
use crate::hub::Checkpoint;
use crate::weights::{Bytes, Files, Names, Weights};

/// A tensor: name, dtype, shape, bytes.
pub(super) type Tensor<'a> = (&'a str, &'a str, &'a [usize], Vec<u8>);

pub(super) fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

pub(super) fn singles(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// The values of `x.weight`, or of `x` where the name has no module, of a checkpoint with these tensors; what refuses it else.
pub(super) fn values(
    config: &Json,
    tensors: &[Tensor<'_>],
    name: &str,
    shape: &[usize],
) -> Result<Vec<f32>, String> {
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let (mut header, mut data) = (Map::new(), vec![]);
    for (name, dtype, shape, bytes) in tensors {
        let end = data.len() + bytes.len();
        let info = json!({"dtype": dtype, "shape": shape, "data_offsets": [data.len(), end]});
        header.insert((*name).to_owned(), info);
        data.extend(bytes);
    }
    let header = Json::Object(header).to_string();
    let file = [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &data].concat();
    let config = json!({"dtype": "float32", "quantization_config": config}).to_string();
    fs::write(folder.path().join("model.safetensors"), file).map_err(|e| e.to_string())?;
    fs::write(folder.path().join("config.json"), config).map_err(|e| e.to_string())?;
    let located = Checkpoint::open(&folder.path().to_string_lossy())
        .and_then(|checkpoint| Files::open(&checkpoint))
        .and_then(|files| {
            let wanted = Weight::new(name, shape);
            let weights = Weights::Files(files);
            let located = weights.locate(&[wanted], &Names::default())?;
            assert_eq!(weights.unread(&located, &[], &Names::default()), Vec::<String>::new());
            Ok(located)
        })
        .map_err(|error| error.to_string())?;
    assert_eq!(located[0].shape, shape);
    let bytes = match &located[0].bytes {
        Bytes::Quantized(blocks) => return blocks.dequantize().map_err(|e| e.to_string()),
        other => other.read().map_err(|e| e.to_string())?,
    };
    Ok(bytes.chunks_exact(4).map(|x| f32::from_le_bytes([x[0], x[1], x[2], x[3]])).collect())
}
