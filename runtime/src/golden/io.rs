//! `io.safetensors`: inputs and outputs by name.

use std::path::Path;

use half::{bf16, f16};
use ndarray::{ArrayD, IxDyn};
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};

use crate::{Error, Result, Value, Values};

/// Every tensor of a `safetensors` file, by its name; of 64 bits, floats in single precision.
///
/// # Errors
/// When the file cannot be read, or holds an element type that no case has.
pub fn tensors(path: &Path) -> Result<Values> {
    let bytes = std::fs::read(path).map_err(|e| Error::io(path, e))?;
    let damaged = |problem: String| Error::case(path, problem, "make it again");
    let file = SafeTensors::deserialize(&bytes).map_err(|e| damaged(format!("is damaged: {e}")))?;
    let read = |(name, view): (&str, TensorView<'_>)| match value(&view) {
        Ok(value) => Ok((name.to_owned(), value)),
        Err(problem) => Err(damaged(format!("tensor `{name}`: {problem}"))),
    };
    file.iter().map(read).collect()
}

/// The `in.`, the `out.` and the `state.` tensors.
pub(super) fn read(path: &Path) -> Result<[Values; 3]> {
    let bytes = std::fs::read(path).map_err(|e| Error::io(path, e))?;
    let damaged = |problem: String| Error::case(path, problem, "make the case again");
    let file = SafeTensors::deserialize(&bytes).map_err(|e| damaged(format!("is damaged: {e}")))?;
    let (mut inputs, mut outputs, mut states) = (Values::new(), Values::new(), Values::new());
    for (name, view) in file.iter() {
        let value = value(&view).map_err(|problem| damaged(format!("tensor `{name}`: {problem}")))?;
        match name.split_once('.') {
            Some(("in", name)) => inputs.insert(name.to_owned(), value),
            Some(("out", name)) => outputs.insert(name.to_owned(), value),
            Some(("state", name)) => states.insert(name.to_owned(), value),
            _ => {
                return Err(damaged(format!(
                    "tensor `{name}` begins with neither `in.` nor `out.` nor `state.`"
                )));
            }
        };
    }
    Ok([inputs, outputs, states])
}

fn value(view: &TensorView<'_>) -> Result<Value, String> {
    let data = view.data();
    let shape = IxDyn(view.shape());
    let floats = |values: Vec<f32>| array(shape.clone(), values).map(Value::F32);
    let integers = |values: Vec<i64>| array(shape.clone(), values).map(Value::I64);
    match view.dtype() {
        Dtype::F32 => floats(chunks(data, f32::from_le_bytes)),
        Dtype::F64 => floats(chunks(data, |b| f64::from_le_bytes(b) as f32)),
        Dtype::F16 => floats(chunks(data, |b| f16::from_le_bytes(b).to_f32())),
        Dtype::BF16 => floats(chunks(data, |b| bf16::from_le_bytes(b).to_f32())),
        Dtype::I64 => integers(chunks(data, i64::from_le_bytes)),
        Dtype::I32 => integers(chunks(data, |b| i64::from(i32::from_le_bytes(b)))),
        Dtype::U8 => integers(data.iter().map(|&b| i64::from(b)).collect()),
        Dtype::BOOL => array(shape, data.iter().map(|&b| b != 0).collect()).map(Value::Bool),
        other => Err(format!("{other:?} is not read; use F32, I64 or BOOL")),
    }
}

fn chunks<const N: usize, T>(data: &[u8], of: impl Fn([u8; N]) -> T) -> Vec<T> {
    data.as_chunks::<N>().0.iter().map(|&bytes| of(bytes)).collect()
}

fn array<T>(shape: IxDyn, values: Vec<T>) -> Result<ArrayD<T>, String> {
    ArrayD::from_shape_vec(shape, values).map_err(|e| e.to_string())
}
