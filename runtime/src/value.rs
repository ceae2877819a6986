//! Tensors at the edge of a model: what `forward` takes and gives, by the reference's names.

use std::collections::BTreeMap;

use ndarray::{ArrayD, Axis, Slice};

use crate::dtype::Dtype;
use crate::{Error, Result};

/// Named tensors, as `forward` takes and gives them.
pub type Values = BTreeMap<String, Value>;

/// One dense tensor, row-major.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// 32-bit floating point; outputs are always given in it, whatever precision the backend ran in.
    F32(ArrayD<f32>),
    /// 64-bit integers: ids, positions, labels.
    I64(ArrayD<i64>),
    /// Booleans: masks.
    Bool(ArrayD<bool>),
}

impl Value {
    /// The element type.
    pub fn dtype(&self) -> Dtype {
        match self {
            Self::F32(_) => Dtype::F32,
            Self::I64(_) => Dtype::I64,
            Self::Bool(_) => Dtype::Bool,
        }
    }

    /// The length of each axis.
    pub fn shape(&self) -> &[usize] {
        match self {
            Self::F32(a) => a.shape(),
            Self::I64(a) => a.shape(),
            Self::Bool(a) => a.shape(),
        }
    }

    /// The tensor as `f32`, or an error that names it.
    pub fn f32(&self, name: &str) -> Result<&ArrayD<f32>> {
        match self {
            Self::F32(a) => Ok(a),
            other => Err(wrong_dtype(name, Dtype::F32, other)),
        }
    }

    /// The tensor as `i64`, or an error that names it.
    pub fn i64(&self, name: &str) -> Result<&ArrayD<i64>> {
        match self {
            Self::I64(a) => Ok(a),
            other => Err(wrong_dtype(name, Dtype::I64, other)),
        }
    }

    /// The tensor as booleans, or an error that names it.
    pub fn bool(&self, name: &str) -> Result<&ArrayD<bool>> {
        match self {
            Self::Bool(a) => Ok(a),
            other => Err(wrong_dtype(name, Dtype::Bool, other)),
        }
    }
}

fn wrong_dtype(name: &str, wanted: Dtype, found: &Value) -> Error {
    Error::input(
        name,
        format!("expected {wanted}, found {} of shape {:?}", found.dtype(), found.shape()),
        format!("give it as {wanted}"),
    )
}

impl From<ArrayD<f32>> for Value {
    fn from(a: ArrayD<f32>) -> Self {
        Self::F32(a)
    }
}

impl From<ArrayD<i64>> for Value {
    fn from(a: ArrayD<i64>) -> Self {
        Self::I64(a)
    }
}

impl From<ArrayD<bool>> for Value {
    fn from(a: ArrayD<bool>) -> Self {
        Self::Bool(a)
    }
}

/// The last positions along an axis; zeros come before them where there are fewer.
pub(crate) fn last_positions(value: &Value, axis: usize, length: usize) -> Value {
    match value {
        Value::F32(a) => Value::F32(last(a, axis, length)),
        Value::I64(a) => Value::I64(last(a, axis, length)),
        Value::Bool(a) => Value::Bool(last(a, axis, length)),
    }
}

/// What a value has at these places along an axis, in this order.
pub(crate) fn selected(value: &Value, axis: usize, places: &[usize]) -> Value {
    match value {
        Value::F32(a) => Value::F32(a.select(Axis(axis), places)),
        Value::I64(a) => Value::I64(a.select(Axis(axis), places)),
        Value::Bool(a) => Value::Bool(a.select(Axis(axis), places)),
    }
}

/// A value without its last positions along an axis.
pub(crate) fn without_last(value: &Value, axis: usize, count: usize) -> Value {
    fn first<T: Copy>(a: &ArrayD<T>, axis: usize, count: usize) -> ArrayD<T> {
        let kept = a.len_of(Axis(axis)).saturating_sub(count);
        a.slice_axis(Axis(axis), Slice::from(..kept)).as_standard_layout().into_owned()
    }
    match value {
        Value::F32(a) => Value::F32(first(a, axis, count)),
        Value::I64(a) => Value::I64(first(a, axis, count)),
        Value::Bool(a) => Value::Bool(first(a, axis, count)),
    }
}

fn last<T: Copy + Default>(a: &ArrayD<T>, axis: usize, length: usize) -> ArrayD<T> {
    let mut shape = a.raw_dim();
    let found = std::mem::replace(&mut shape[axis], length);
    let kept = found.min(length) as isize;
    let mut all = ArrayD::default(shape);
    let from = |length: usize| Slice::from(length as isize - kept..length as isize);
    all.slice_axis_mut(Axis(axis), from(length)).assign(&a.slice_axis(Axis(axis), from(found)));
    all
}

#[cfg(test)]
mod tests {
    use ndarray::array;

    use super::*;

    #[test]
    fn the_last_positions_are_kept() {
        let value = Value::I64(array![[1, 2, 3], [4, 5, 6]].into_dyn());
        assert_eq!(last_positions(&value, 1, 2), Value::I64(array![[2, 3], [5, 6]].into_dyn()));
        assert_eq!(last_positions(&value, 1, 4), Value::I64(array![[0, 1, 2, 3], [0, 4, 5, 6]].into_dyn()));
        let none = Value::F32(ArrayD::zeros(ndarray::IxDyn(&[1, 0, 2])));
        assert_eq!(last_positions(&none, 1, 3).shape(), [1, 3, 2]);
    }

    #[test]
    fn the_last_positions_are_left_out() {
        let value = Value::I64(array![[1, 2, 3], [4, 5, 6]].into_dyn());
        assert_eq!(without_last(&value, 1, 2), Value::I64(array![[1], [4]].into_dyn()));
        assert_eq!(without_last(&value, 0, 3).shape(), [0, 3]);
    }
}
