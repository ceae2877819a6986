//! Activation functions, by the names that `config.json` uses.

use serde::{Deserialize, Serialize};

/// An activation function; the reference's table is `transformers.activations.ACT2FN`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Activation {
    /// `x · Φ(x)`, by the error function.
    #[serde(alias = "gelu_python")]
    Gelu,
    /// GELU by its hyperbolic-tangent approximation.
    #[serde(
        alias = "gelu_fast",
        alias = "gelu_pytorch_tanh",
        alias = "gelu_python_tanh",
        alias = "gelu_accurate"
    )]
    GeluNew,
    /// `x · σ(1.702 x)`.
    QuickGelu,
    /// `max(x, 0)`.
    Relu,
    /// `max(x, 0)²`.
    Relu2,
    /// `min(max(x, 0), 6)`.
    Relu6,
    /// `x · σ(x)`.
    #[serde(alias = "swish")]
    Silu,
    /// `σ(x)`.
    Sigmoid,
    /// Hyperbolic tangent.
    Tanh,
    /// `x`, or `eˣ − 1` below 0.
    Elu,
    /// `x · tanh(ln(1 + eˣ))`.
    Mish,
    /// `x · min(max(x + 3, 0), 6) / 6`.
    Hardswish,
    /// `min(max(x + 3, 0), 6) / 6`.
    Hardsigmoid,
    /// `x` itself.
    Linear,
}

impl Activation {
    /// The name used in errors and in the names of nodes.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gelu | Self::GeluNew => "Gelu",
            Self::QuickGelu => "QuickGelu",
            Self::Relu | Self::Relu2 => "Relu",
            Self::Relu6 => "Relu6",
            Self::Silu => "Silu",
            Self::Sigmoid => "Sigmoid",
            Self::Tanh => "Tanh",
            Self::Elu => "Elu",
            Self::Mish => "Mish",
            Self::Hardswish => "HardSwish",
            Self::Hardsigmoid => "HardSigmoid",
            Self::Linear => "Identity",
        }
    }
}
