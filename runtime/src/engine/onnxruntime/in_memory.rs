//! Weights that a session reads where they lie in memory.

use std::ffi::c_void;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use ort::AsPointer;
use ort::memory::{Allocator, MemoryInfo};
use ort::session::builder::SessionBuilder;
use ort::value::DynValue;

use super::placement::check;
use crate::lower::Lowered;
use crate::onnx::Tensor;

/// Hands a session the weights that its model refers to in memory. They must live as long as the session.
pub(super) fn give(mut builder: SessionBuilder, lowered: &Lowered) -> ort::Result<SessionBuilder> {
    for weight in lowered.model.graph.iter().flat_map(|graph| &graph.initializer) {
        let location = weight.external_data.iter().find(|entry| entry.key == "location");
        if let Some(bytes) = location.and_then(|location| lowered.memory.get(&location.value)) {
            builder = builder.with_external_initializer(&weight.name, Arc::new(value(weight, bytes)?))?;
        }
    }
    Ok(builder)
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
