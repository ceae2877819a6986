//! What Weft's generated crates call: the graph of a model, its weights, the engines of eight backends, the
//! processing before and after, and the harness that proves the result against the reference.
//!
//! A generated crate gives this library an [`Architecture`]: a typed configuration, a function that builds
//! the graph, and a matrix of backends. The library opens checkpoints, places graphs on hardware and runs
//! them; nothing in it names a model.

#![warn(missing_docs)]
#![deny(unsafe_code)]
#![cfg_attr(
    not(feature = "conformance"),
    allow(
        dead_code,
        unused_imports,
        unused_variables,
        reason = "what only the code of other features calls"
    )
)]

mod any_model;
#[cfg(feature = "audio")]
pub mod audio;
mod auto;
mod base64;
mod builders;
pub mod cli;
mod clock;
mod codebook;
pub mod config;
#[cfg(feature = "conformance")]
pub mod conformance;
#[cfg(feature = "diffusion")]
pub mod diffusion;
mod dtype;
mod dyn_architecture;
pub mod engine;
mod error;
mod files;
#[cfg(feature = "text")]
pub mod generation;
pub mod gguf;
pub mod golden;
pub mod graph;
mod hardware;
mod head;
#[cfg(target_family = "wasm")]
mod host;
pub mod hub;
#[cfg(feature = "image")]
pub mod image;
pub mod lower;
mod model;
pub mod multimodal;
pub mod nn;
pub mod onnx;
mod processing;
pub mod quantization;
#[cfg(any(feature = "audio", feature = "diffusion"))]
pub mod random;
mod registry;
mod session;
mod single_file;
mod small_floats;
mod task;
pub mod tasks;
#[cfg(feature = "text")]
pub mod text;
mod value;
#[cfg(feature = "video")]
pub mod video;
pub mod weights;

pub use any_model::{AnyModel, DynModel};
pub use dtype::Dtype;
pub use dyn_architecture::{DynArchitecture, DynLoader};
pub use error::{Error, Result};
pub use graph::{Dim, Graph, GraphKind, Scope, Tensor};
pub use hardware::{
    Backend, Cpu, Cuda, Declared, Hardware, Metal, Openvino, Precision, Qnn, Rocm, Support, Webgpu, Webnn,
};
pub use head::{FromOutputs, HeadModel, HeadOutput, IntoInput};
pub use model::{Configuration, Head, TaskHeads};
pub use processing::{Processing, ScoreFunction};
pub use quantization::Quantization;
pub use registry::{KnownModel, ModelRegistry};
pub use session::{
    Architecture, BackendVerdict, Cache, Calibration, ExpertUsage, Inspection, LayerUsage, Loader, Loads,
    MemoryNeed, Session, Timings, cached_weights, remove_cached_weights,
};
pub use task::Task;
pub use value::{Value, Values};
pub use weights::Names;
