//! Quantization: weights as codes of a few bits, with a scale for each block of them.

mod blocks;
mod forms;
#[cfg(test)]
pub(crate) mod testing;

pub use blocks::{BlockQuantized, Zeros};
pub(crate) use forms::floats;
