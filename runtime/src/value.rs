//! Tensors at the edge of a model: what `forward` takes and gives, by the reference's names.

use std::collections::BTreeMap;

use ndarray::ArrayD;

use crate::graph::Dtype;
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
    /// Truth values: masks.
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

    /// The tensor as truth values, or an error that names it.
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
