//! Diffusion pipelines: schedulers, and the reference's random numbers.

pub mod schedulers;

pub use crate::random::{self, Generator};
