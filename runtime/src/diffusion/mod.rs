//! Diffusion pipelines: the reference's random numbers, and schedulers.

pub mod random;
pub mod schedulers;

pub use random::Generator;
