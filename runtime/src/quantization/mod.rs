//! Quantization: weights as codes of a few bits, with a scale for each block of them.

pub(crate) mod cache;
mod convolution;
mod gptq;
mod making;
pub(crate) mod panels;
mod rounding;
mod settings;
pub(crate) mod written;

pub use cache::CacheSize;
pub(crate) use convolution::quantize_by_row;
pub(crate) use making::quantize;
pub use settings::Quantization;
pub(crate) use settings::{Role, layer_index};
pub use written::{Recipe, Written};

pub use crate::weights::{BlockQuantized, Zeros};
