//! Which form each operation takes on each backend.

use std::collections::BTreeMap;

use crate::graph::Dtype;
use crate::{Hardware, Precision};

/// The forms of one backend.
#[derive(Clone, Debug, PartialEq)]
pub struct Rules {
    /// `x · wᵀ + b`.
    pub linear: LinearForm,
    /// Scaled dot-product attention.
    pub attention: AttentionForm,
    /// GELU.
    pub gelu: GeluForm,
    /// Root-mean-square normalisation.
    pub rms_norm: RmsNormForm,
    /// What floating-point values are computed in.
    pub float: Dtype,
    /// Symbols that are numbers in the lowered graph, for backends that need fixed shapes.
    pub dims: BTreeMap<String, usize>,
    /// Whether the backend needs every length to be a number.
    pub fixed_shapes: bool,
    /// Whether the backend has floating-point arithmetic alone, and little more than the basic operators of it.
    pub basic: bool,
    /// ONNX's operator set.
    pub opset: i64,
    /// Whether convolutions over 6, 9, 15 … channels, multiples of 3 that are none of 4, get channels of zeros.
    pub pads_channels: bool,
    /// Whether integers and truth values are cut and summed up as floating-point numbers, integers reduced as those of
    /// 32 bits, and choices beside convolutions made by products.
    pub narrow_reads: bool,
    /// Whether floating-point numbers become truth values by a comparison with zero, not by a cast.
    pub compares_to_zero: bool,
    /// Whether bicubic resizing is two products with the weights of the curves.
    pub multiplies_cubic: bool,
}

/// How a linear layer is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinearForm {
    /// `Gemm(transB)` on two axes, between two `Reshape`s.
    Gemm,
    /// `com.microsoft.FusedMatMul(transB)`, then `Add`.
    FusedMatMul,
    /// `Transpose` of the weight, `MatMul`, `Add`.
    Transposed,
}

/// How attention is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttentionForm {
    /// ONNX's `Attention`, opset 23.
    Standard,
    /// `com.microsoft.MultiHeadAttention`, an additive mask.
    MultiHead,
    /// `MatMul`, `Softmax`, `MatMul`.
    Plain,
}

/// How GELU is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GeluForm {
    /// ONNX's `Gelu`, opset 20.
    Standard,
    /// `com.microsoft.Gelu` and `com.microsoft.FastGelu`.
    Contrib,
    /// By `Erf` or `Tanh`.
    Plain,
}

/// How root-mean-square normalisation is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RmsNormForm {
    /// ONNX's `RMSNormalization`, opset 23.
    Standard,
    /// ONNX Runtime's `SimplifiedLayerNormalization`.
    Contrib,
    /// By the mean of the squares.
    Plain,
}

impl Rules {
    /// The forms that run best on a backend.
    pub fn of(hardware: Hardware, precision: Precision) -> Self {
        let float = match precision {
            Precision::F32 => Dtype::F32,
            Precision::F16 => Dtype::F16,
            Precision::Bf16 => Dtype::Bf16,
        };
        let fused = Self {
            linear: LinearForm::Gemm,
            attention: AttentionForm::Standard,
            gelu: GeluForm::Standard,
            rms_norm: RmsNormForm::Standard,
            float,
            dims: BTreeMap::new(),
            fixed_shapes: false,
            basic: false,
            opset: 23,
            pads_channels: false,
            narrow_reads: false,
            compares_to_zero: false,
            multiplies_cubic: false,
        };
        let plain = Self {
            linear: LinearForm::Transposed,
            attention: AttentionForm::Plain,
            gelu: GeluForm::Plain,
            rms_norm: RmsNormForm::Plain,
            float,
            dims: BTreeMap::new(),
            fixed_shapes: false,
            basic: false,
            opset: 21,
            pads_channels: false,
            narrow_reads: false,
            compares_to_zero: false,
            multiplies_cubic: false,
        };
        match hardware {
            Hardware::Cpu | Hardware::Auto => fused,
            // The newest set that every operator here has a kernel for: those of `Pad` and `Equal` end with it. Attention
            // and the norms have kernels of ONNX Runtime's own.
            Hardware::Cuda => Self {
                attention: AttentionForm::MultiHead,
                gelu: GeluForm::Contrib,
                rms_norm: RmsNormForm::Contrib,
                opset: 18,
                ..fused
            },
            // OpenVINO fuses the plain forms itself, and computes in a precision that it is told beside the graph.
            Hardware::Openvino => Self { float: Dtype::F32, ..plain },
            // A browser has no 64-bit integers to compute lengths with. Convolutions read three channels at a time
            // where those are a multiple of 3, and give wrong numbers unless they are just 3:
            // https://github.com/microsoft/onnxruntime/issues/29651
            Hardware::Webgpu => Self {
                fixed_shapes: crate::engine::in_browser(hardware),
                pads_channels: true,
                narrow_reads: true,
                ..plain
            },
            // MIGraphX documents operator sets up to 19, finds attention and GELU in the plain forms itself, and compiles
            // a graph anew for other lengths.
            Hardware::Rocm => Self { opset: 19, fixed_shapes: true, ..plain },
            // Core ML has GELU, but neither ONNX's attention nor lengths that change.
            // Neither it nor browsers resize by cubic curves.
            Hardware::Metal => Self {
                gelu: GeluForm::Standard,
                fixed_shapes: true,
                basic: true,
                multiplies_cubic: true,
                ..plain
            },
            // The tensor processor casts integers to truth values, but no half-precision numbers.
            Hardware::Qnn => Self { fixed_shapes: true, compares_to_zero: true, ..plain },
            Hardware::Webnn => Self { fixed_shapes: true, multiplies_cubic: true, ..plain },
        }
    }
}
