//! The messages of `onnx.proto` that a model graph needs.

/// `ModelProto`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Model {
    /// The version of the format.
    #[prost(int64, optional, tag = "1")]
    pub ir_version: Option<i64>,
    /// Who wrote it.
    #[prost(string, tag = "2")]
    pub producer_name: String,
    /// The version of the writer.
    #[prost(string, tag = "3")]
    pub producer_version: String,
    /// The computation.
    #[prost(message, optional, tag = "7")]
    pub graph: Option<Graph>,
    /// The operator sets it is written in.
    #[prost(message, repeated, tag = "8")]
    pub opset_import: Vec<OperatorSet>,
}

/// `OperatorSetIdProto`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct OperatorSet {
    /// Empty for ONNX's own.
    #[prost(string, tag = "1")]
    pub domain: String,
    /// The version.
    #[prost(int64, optional, tag = "2")]
    pub version: Option<i64>,
}

/// `GraphProto`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Graph {
    /// The operations, each after those it depends on.
    #[prost(message, repeated, tag = "1")]
    pub node: Vec<Node>,
    /// The graph's name.
    #[prost(string, tag = "2")]
    pub name: String,
    /// Weights and literals.
    #[prost(message, repeated, tag = "5")]
    pub initializer: Vec<Tensor>,
    /// What it takes.
    #[prost(message, repeated, tag = "11")]
    pub input: Vec<ValueInfo>,
    /// What it gives.
    #[prost(message, repeated, tag = "12")]
    pub output: Vec<ValueInfo>,
    /// Types of values in between that engines would not infer.
    #[prost(message, repeated, tag = "13")]
    pub value_info: Vec<ValueInfo>,
}

/// `NodeProto`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Node {
    /// Names of operands; empty for an optional one left out.
    #[prost(string, repeated, tag = "1")]
    pub input: Vec<String>,
    /// Names of results.
    #[prost(string, repeated, tag = "2")]
    pub output: Vec<String>,
    /// The node's name, as profiles show it.
    #[prost(string, tag = "3")]
    pub name: String,
    /// The operator.
    #[prost(string, tag = "4")]
    pub op_type: String,
    /// Its attributes.
    #[prost(message, repeated, tag = "5")]
    pub attribute: Vec<Attribute>,
    /// The operator's domain; empty for ONNX's own.
    #[prost(string, tag = "7")]
    pub domain: String,
}

/// `AttributeProto`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Attribute {
    /// The attribute's name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// A number.
    #[prost(float, optional, tag = "2")]
    pub f: Option<f32>,
    /// An integer.
    #[prost(int64, optional, tag = "3")]
    pub i: Option<i64>,
    /// A text.
    #[prost(bytes = "vec", optional, tag = "4")]
    pub s: Option<Vec<u8>>,
    /// A branch or a body, which may read the values of the graph around it.
    #[prost(message, optional, boxed, tag = "6")]
    pub g: Option<Box<Graph>>,
    /// Integers.
    #[prost(int64, repeated, packed = "false", tag = "8")]
    pub ints: Vec<i64>,
    /// Which of them it is.
    #[prost(int32, tag = "20")]
    pub kind: i32,
}

/// `TensorProto`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Tensor {
    /// The lengths of all axes.
    #[prost(int64, repeated, packed = "false", tag = "1")]
    pub dims: Vec<i64>,
    /// The element type.
    #[prost(int32, tag = "2")]
    pub data_type: i32,
    /// The initializer's name.
    #[prost(string, tag = "8")]
    pub name: String,
    /// The bytes, little-endian.
    #[prost(bytes = "vec", optional, tag = "9")]
    pub raw_data: Option<Vec<u8>>,
    /// Where the bytes stand otherwise.
    #[prost(message, repeated, tag = "13")]
    pub external_data: Vec<Entry>,
    /// 1 where they stand elsewhere.
    #[prost(int32, optional, tag = "14")]
    pub data_location: Option<i32>,
}

/// `StringStringEntryProto`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Entry {
    /// The key.
    #[prost(string, tag = "1")]
    pub key: String,
    /// The value.
    #[prost(string, tag = "2")]
    pub value: String,
}

/// `ValueInfoProto`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ValueInfo {
    /// The value's name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Its type.
    #[prost(message, optional, tag = "2")]
    pub kind: Option<Type>,
}

/// `TypeProto`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Type {
    /// A dense tensor.
    #[prost(message, optional, tag = "1")]
    pub tensor: Option<TensorType>,
}

/// `TypeProto.Tensor`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TensorType {
    /// The element type.
    #[prost(int32, tag = "1")]
    pub elem_type: i32,
    /// The lengths of all axes.
    #[prost(message, optional, tag = "2")]
    pub shape: Option<TensorShape>,
}

/// `TensorShapeProto`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TensorShape {
    /// One per axis.
    #[prost(message, repeated, tag = "1")]
    pub dim: Vec<dimension::Dimension>,
}

/// `TensorShapeProto.Dimension`.
pub mod dimension {
    /// The length of one axis.
    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Dimension {
        /// A number or a name.
        #[prost(oneof = "Value", tags = "1, 2")]
        pub value: Option<Value>,
    }

    /// A number or a name.
    #[derive(Clone, PartialEq, prost::Oneof)]
    pub enum Value {
        /// Known.
        #[prost(int64, tag = "1")]
        Number(i64),
        /// A symbol.
        #[prost(string, tag = "2")]
        Parameter(String),
    }
}
