//! Quantization: weights as codes of a few bits, with a scale for each block of them.

mod blocks;

pub use blocks::{BlockQuantized, Zeros};
