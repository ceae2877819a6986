//! Quantization: weights as codes of a few bits, with a scale for each block of them.

mod blocks;
mod forms;
mod making;
pub(crate) mod published;
mod rounding;
mod settings;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod written;

pub use blocks::{BlockQuantized, Zeros};
pub(crate) use forms::floats;
pub(crate) use making::quantize;
pub use settings::Quantization;
pub(crate) use settings::{Role, layer_index};
pub use written::{Recipe, Written};
