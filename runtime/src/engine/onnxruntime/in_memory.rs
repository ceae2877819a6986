//! Weights that a session reads where they lie in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::c_void;
use std::fs::File;
use std::path::Path;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use memmap2::Mmap;
use ort::AsPointer;
use ort::memory::{Allocator, MemoryInfo};
use ort::session::builder::SessionBuilder;
use ort::value::DynValue;

use super::placement::check;
use crate::lower::Lowered;
use crate::onnx::Tensor;
use crate::weights::map;
use crate::{Error, Result};

/// Above so many weights in files, these are mapped here, once each. ONNX Runtime maps every weight by itself, and a process
/// may have 65,530 maps on Linux: three graphs of a mixture of experts with a tensor for each have more.
const OWN_MAPS: usize = 4_096;

/// The files of a graph's weights as memory, by their locations in its model.
#[derive(Default)]
pub(super) struct Maps(BTreeMap<String, Mmap>);

impl Maps {
    /// Maps the files, where a graph has so many weights that ONNX Runtime cannot.
    ///
    /// # Errors
    /// A file that is not there any more.
    pub(super) fn of(lowered: &Lowered) -> Result<Self> {
        let locations = || weights(lowered).filter_map(location);
        let stored = |location: &&str| !lowered.memory.contains_key(*location);
        let mut maps = BTreeMap::new();
        if locations().filter(stored).count() <= OWN_MAPS {
            return Ok(Self(maps));
        }
        let folder = lowered.folder.as_deref().unwrap_or(Path::new(""));
        for location in locations().filter(stored).collect::<BTreeSet<_>>() {
            let path = folder.join(location);
            let map = File::open(&path).and_then(|file| map(&file)).map_err(|e| Error::io(&path, e))?;
            maps.insert(location.to_owned(), map);
        }
        Ok(Self(maps))
    }

    /// The bytes of a weight in a mapped file.
    fn bytes(&self, weight: &Tensor) -> Option<&[u8]> {
        let number = |key: &str| {
            let entry = weight.external_data.iter().find(|entry| entry.key == key)?;
            entry.value.parse::<usize>().ok()
        };
        let map = self.0.get(location(weight)?)?;
        map.get(number("offset")?..)?.get(..number("length")?)
    }
}

/// Hands a session the weights that its model refers to in memory. They must live as long as the session.
pub(super) fn give(
    mut builder: SessionBuilder,
    lowered: &Lowered,
    maps: &Maps,
) -> ort::Result<SessionBuilder> {
    for weight in weights(lowered) {
        let held = location(weight).and_then(|location| lowered.memory.get(location));
        if let Some(bytes) = held.map(|bytes| bytes.as_slice()).or_else(|| maps.bytes(weight)) {
            builder = builder.with_external_initializer(&weight.name, Arc::new(value(weight, bytes)?))?;
        }
    }
    Ok(builder)
}

/// The bytes of a graph's weights that stay in files.
pub(super) fn stored_bytes(lowered: &Lowered) -> u64 {
    let lengths =
        weights(lowered).flat_map(|weight| weight.external_data.iter().filter(|entry| entry.key == "length"));
    lengths.filter_map(|entry| entry.value.parse::<u64>().ok()).sum()
}

fn weights(lowered: &Lowered) -> impl Iterator<Item = &Tensor> {
    lowered.model.graph.iter().flat_map(|graph| &graph.initializer)
}

fn location(weight: &Tensor) -> Option<&str> {
    let location = weight.external_data.iter().find(|entry| entry.key == "location");
    location.map(|location| location.value.as_str())
}

/// A tensor over bytes, which are only read.
#[allow(unsafe_code)]
fn value(weight: &Tensor, bytes: &[u8]) -> ort::Result<DynValue> {
    let info = MemoryInfo::default();
    let mut made = ptr::null_mut();
    // ONNX numbers its element types as the C interface does.
    let element = ort::value::TensorElementType::from(match weight.data_type {
        1 => ort::sys::ONNXTensorElementDataType::ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT,
        2 => ort::sys::ONNXTensorElementDataType::ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8,
        7 => ort::sys::ONNXTensorElementDataType::ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64,
        10 => ort::sys::ONNXTensorElementDataType::ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16,
        16 => ort::sys::ONNXTensorElementDataType::ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16,
        other => return Err(ort::Error::new(format!("weights in memory are of no type {other}"))),
    });
    // SAFETY: the shape and the place of the result are valid for the call; the bytes are as many as are said, and the model
    // that is made ready keeps them; engines do not write to initializers. The value is owned by what is returned.
    unsafe {
        check((ort::api().CreateTensorWithDataAsOrtValue)(
            info.ptr(),
            bytes.as_ptr().cast_mut().cast::<c_void>(),
            bytes.len(),
            weight.dims.as_ptr(),
            weight.dims.len(),
            element.into(),
            &raw mut made,
        ))?;
        let made = NonNull::new(made).ok_or_else(|| ort::Error::new("a weight became no tensor"))?;
        Ok(DynValue::from_ptr(made, Some(&Allocator::default())))
    }
}
