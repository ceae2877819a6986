//! ONNX models as protocol buffers: the interchange format of every engine.
//!
//! Field numbers: `onnx.proto` of the ONNX project, IR version 11.

mod proto;

pub use proto::{
    Attribute, Entry, Graph, Model, Node, OperatorSet, Tensor, TensorShape, TensorType, Type, ValueInfo,
    dimension,
};

use crate::graph::{Dim, Dtype};

/// The IR version written; opset 23 and 24 need 11 or later.
pub const IR_VERSION: i64 = 11;

/// `TensorProto.DataType` of two codes of 4 bits a byte, the first in the low bits.
pub const UINT4: i32 = 21;

/// `TensorProto.DataType`.
pub fn data_type(dtype: Dtype) -> i32 {
    match dtype {
        Dtype::F32 => 1,
        Dtype::U8 => 2,
        Dtype::I32 => 6,
        Dtype::I64 => 7,
        Dtype::Bool => 9,
        Dtype::F16 => 10,
        Dtype::Bf16 => 16,
    }
}

impl Attribute {
    /// A floating-point attribute.
    pub fn float(name: &str, value: f32) -> Self {
        Self { name: name.to_owned(), kind: 1, f: Some(value), ..Self::default() }
    }

    /// An integer attribute.
    pub fn int(name: &str, value: i64) -> Self {
        Self { name: name.to_owned(), kind: 2, i: Some(value), ..Self::default() }
    }

    /// A text attribute.
    pub fn string(name: &str, value: &str) -> Self {
        Self { name: name.to_owned(), kind: 3, s: Some(value.as_bytes().to_vec()), ..Self::default() }
    }

    /// A graph, as the branches of `If` are.
    pub fn graph(name: &str, graph: Graph) -> Self {
        Self { name: name.to_owned(), kind: 5, g: Some(Box::new(graph)), ..Self::default() }
    }

    /// A list of integers.
    pub fn ints(name: &str, values: Vec<i64>) -> Self {
        Self { name: name.to_owned(), kind: 7, ints: values, ..Self::default() }
    }
}

impl Tensor {
    /// A tensor whose bytes (little-endian, row-major) stand in the model.
    pub fn inline(name: &str, dtype: Dtype, dims: &[usize], bytes: Vec<u8>) -> Self {
        Self { raw_data: Some(bytes), ..Self::header(name, dtype, dims) }
    }

    /// A tensor whose bytes stand in another file.
    pub fn external(
        name: &str,
        dtype: Dtype,
        dims: &[usize],
        location: &str,
        offset: u64,
        length: u64,
    ) -> Self {
        let entry = |key: &str, value: String| Entry { key: key.to_owned(), value };
        let external_data = vec![
            entry("location", location.to_owned()),
            entry("offset", offset.to_string()),
            entry("length", length.to_string()),
        ];
        Self { external_data, data_location: Some(1), ..Self::header(name, dtype, dims) }
    }

    fn header(name: &str, dtype: Dtype, dims: &[usize]) -> Self {
        Self {
            name: name.to_owned(),
            data_type: data_type(dtype),
            dims: dims.iter().map(|&n| n as i64).collect(),
            ..Self::default()
        }
    }
}

impl ValueInfo {
    /// A value's name, type and shape; lengths that are no number become parameters.
    pub fn new(name: &str, dtype: Dtype, shape: &[Dim]) -> Self {
        let dim = shape.iter().map(|dim| {
            let value = match dim {
                Dim::Fixed(n) => dimension::Value::Number(*n as i64),
                other => dimension::Value::Parameter(other.to_string()),
            };
            dimension::Dimension { value: Some(value) }
        });
        let shape = TensorShape { dim: dim.collect() };
        let tensor = TensorType { elem_type: data_type(dtype), shape: Some(shape) };
        Self { name: name.to_owned(), kind: Some(Type { tensor: Some(tensor) }) }
    }
}
