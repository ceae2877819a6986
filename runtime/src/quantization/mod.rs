//! Quantization: weights as codes of a few bits, with a scale for each block of them.

mod gptq;
mod making;
mod rounding;
mod settings;
pub(crate) mod written;

pub(crate) use making::quantize;
pub use settings::Quantization;
pub(crate) use settings::{Role, layer_index};
pub use written::{Recipe, Written};

pub use crate::weights::{BlockQuantized, Zeros};
