//! The eight backends, by name and as types, and the precisions they compute in.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Where a model runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Hardware {
    /// Any processor, through ONNX Runtime.
    Cpu,
    /// NVIDIA GPUs, through ONNX Runtime's CUDA provider.
    Cuda,
    /// AMD GPUs, through ONNX Runtime's MIGraphX provider.
    Rocm,
    /// Apple's GPU and neural engine, through ONNX Runtime's CoreML provider.
    Metal,
    /// Intel processors, GPUs and NPUs, through OpenVINO itself.
    Openvino,
    /// Qualcomm's Hexagon processor, through ONNX Runtime's QNN provider.
    Qnn,
    /// Any GPU with a Vulkan, Metal or Direct3D 12 driver, through ONNX Runtime's WebGPU provider.
    Webgpu,
    /// The browser's neural network interface, through ONNX Runtime Web.
    Webnn,
    /// The first backend of the model's fallback route that runs on a real device, or is measured to be faster than the CPU;
    /// says what it chose and why. Never an emulator or a software device.
    Auto,
}

impl Hardware {
    /// Every backend, in the order of the matrices.
    pub const ALL: [Self; 8] = [
        Self::Cpu,
        Self::Cuda,
        Self::Rocm,
        Self::Metal,
        Self::Openvino,
        Self::Qnn,
        Self::Webgpu,
        Self::Webnn,
    ];

    /// The name used on the command line, in specs and in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Cuda => "cuda",
            Self::Rocm => "rocm",
            Self::Metal => "metal",
            Self::Openvino => "openvino",
            Self::Qnn => "qnn",
            Self::Webgpu => "webgpu",
            Self::Webnn => "webnn",
            Self::Auto => "auto",
        }
    }

    /// What it computes in where no precision is asked for; the tensor processor has half precision alone.
    pub fn default_precision(self) -> Precision {
        if self == Self::Qnn { Precision::F16 } else { Precision::F32 }
    }
}

impl fmt::Display for Hardware {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The number format a backend computes in, or the one that weights are quantized into when a checkpoint opens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Precision {
    /// IEEE single precision, as most checkpoints are published.
    #[default]
    F32,
    /// IEEE half precision.
    F16,
    /// bfloat16: single precision's range with eight bits of mantissa.
    Bf16,
    /// Weights in blocks of 32 codes of 8 bits; so are embeddings and heads in all that follow. See
    /// [`Quantization::of`](crate::Quantization::of).
    Int8,
    /// Weights in blocks of 32 codes of 4 bits.
    Int4,
    /// [`Precision::Int4`] with 8 bits for those layers that lose most, where llama.cpp's `use_more_bits` holds.
    #[serde(rename = "int4-mixed")]
    Int4Mixed,
    /// Weights in blocks of 32 codes of 3 bits, which run as 4.
    Int3,
    /// Weights in blocks of 32 codes of 2 bits.
    Int2,
}

impl Precision {
    /// All of them.
    pub const ALL: [Self; 8] =
        [Self::F32, Self::F16, Self::Bf16, Self::Int8, Self::Int4, Self::Int4Mixed, Self::Int3, Self::Int2];

    /// Whether weights are quantized.
    pub fn is_quantized(self) -> bool {
        !matches!(self, Self::F32 | Self::F16 | Self::Bf16)
    }

    /// What a backend computes in, where weights may be quantized: half precision on those whose kernels of quantized weights
    /// or whose units have nothing else.
    pub(crate) fn computed_in(self, hardware: Hardware) -> Self {
        match hardware {
            _ if !self.is_quantized() => self,
            Hardware::Cuda | Hardware::Metal | Hardware::Qnn => Self::F16,
            _ => Self::F32,
        }
    }

    /// The name used on the command line, in specs and in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
            Self::Int8 => "int8",
            Self::Int4 => "int4",
            Self::Int4Mixed => "int4-mixed",
            Self::Int3 => "int3",
            Self::Int2 => "int2",
        }
    }
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A backend as a type, so that a generated crate can say at compile time which ones its model runs on.
pub trait Backend {
    /// The same backend as a value.
    const HARDWARE: Hardware;
}

macro_rules! backends {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name;

        impl Backend for $name {
            const HARDWARE: Hardware = Hardware::$name;
        }
    )*};
}

backends! {
    /// [`Hardware::Cpu`].
    Cpu,
    /// [`Hardware::Cuda`].
    Cuda,
    /// [`Hardware::Rocm`].
    Rocm,
    /// [`Hardware::Metal`].
    Metal,
    /// [`Hardware::Openvino`].
    Openvino,
    /// [`Hardware::Qnn`].
    Qnn,
    /// [`Hardware::Webgpu`].
    Webgpu,
    /// [`Hardware::Webnn`].
    Webnn,
}

/// What a model's spec declares for one backend; what was observed lives in the results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Declared {
    /// The backend.
    pub hardware: Hardware,
    /// Whether the spec claims that the model runs there.
    pub support: Support,
    /// The reason for anything less than full support; empty otherwise.
    pub reason: &'static str,
    /// Expected speed, in the vocabulary of the specs (`baseline`, `good`, `excellent` …).
    pub performance: &'static str,
    /// Expected memory use, in the vocabulary of the specs.
    pub memory: &'static str,
    /// What to know before using it.
    pub notes: &'static str,
}

/// How far a spec claims support.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Support {
    /// All of the model.
    Full,
    /// Part of it, or with conditions: the reason says which.
    Limited,
    /// None; the reason says why.
    No,
}
