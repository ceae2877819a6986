//! Quantization: weights as codes of a few bits, with a scale for each block of them.

mod blocks;
mod forms;
pub(crate) mod published;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod written;

pub use blocks::{BlockQuantized, Zeros};
pub(crate) use forms::floats;
pub use written::{Recipe, Written};
