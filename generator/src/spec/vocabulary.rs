//! The words that specs share: backends, support, number formats, evidence, sizes of models.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Hardware {
    /// Any processor.
    Cpu,
    /// NVIDIA GPUs.
    Cuda,
    /// AMD GPUs.
    Rocm,
    /// Apple's GPU and neural engine.
    Metal,
    /// Intel processors, GPUs and NPUs.
    Openvino,
    /// Qualcomm's Hexagon processor.
    Qnn,
    /// Any GPU, through WebGPU, in a browser or outside.
    Webgpu,
    /// The browser's neural network interface.
    Webnn,
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
        }
    }

    /// The name of its type in the runtime.
    pub fn type_name(self) -> &'static str {
        match self {
            Self::Cpu => "Cpu",
            Self::Cuda => "Cuda",
            Self::Rocm => "Rocm",
            Self::Metal => "Metal",
            Self::Openvino => "Openvino",
            Self::Qnn => "Qnn",
            Self::Webgpu => "Webgpu",
            Self::Webnn => "Webnn",
        }
    }

    /// The backend of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|hardware| hardware.name() == name)
    }
}

impl fmt::Display for Hardware {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How far something is declared to be supported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Support {
    /// All of it.
    Full,
    /// Part of it, or with conditions.
    Limited,
    /// Not at all.
    No,
}

/// A number format, or the one that weights are quantized into.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Precision {
    /// IEEE single precision.
    F32,
    /// IEEE half precision.
    F16,
    /// bfloat16.
    Bf16,
    /// Weights of 8 bits.
    Int8,
    /// Weights of 4 bits.
    Int4,
    /// Weights of 4 bits, and of 8 where most is lost.
    #[serde(rename = "int4-mixed")]
    Int4Mixed,
    /// Weights of 3 bits.
    Int3,
    /// Weights of 2 bits.
    Int2,
}

impl Precision {
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

    /// The name of its variant in the runtime.
    pub fn type_name(self) -> &'static str {
        match self {
            Self::F32 => "F32",
            Self::F16 => "F16",
            Self::Bf16 => "Bf16",
            Self::Int8 => "Int8",
            Self::Int4 => "Int4",
            Self::Int4Mixed => "Int4Mixed",
            Self::Int3 => "Int3",
            Self::Int2 => "Int2",
        }
    }
}

/// How a result came about, strongest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EvidenceLevel {
    /// Ran on that hardware.
    Device,
    /// Ran on the vendor's emulator or a software device.
    Emulator,
    /// Every operator is in the published table, and the lowered graph gave the right numbers on the CPU.
    Lowered,
}

/// Sizes of models.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ModelSize {
    /// Under 100 million parameters.
    Tiny,
    /// 100 to 500 million.
    Small,
    /// 500 million to 1 billion.
    Base,
    /// 1 to 7 billion.
    Large,
    /// 7 to 13 billion.
    Xl,
    /// Over 13 billion.
    Xxl,
}
