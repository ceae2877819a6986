//! ONNX Runtime Web in a headless Chromium: WebNN, and WebGPU as pages have it.
//!
//! The browser is driven over its DevTools protocol; models, weights and tensors go over HTTP on loopback.

mod devtools;
mod placement;
mod process;
mod programs;
mod running;
mod server;
mod shared;
mod tensors;

use super::{Compiled, Options};
use crate::lower::Lowered;
use crate::{Hardware, Result};

/// Opens a graph in a tab; [`Hardware::Webgpu`] or [`Hardware::Webnn`].
pub(super) fn compile(hardware: Hardware, lowered: &Lowered, options: &Options) -> Result<Box<dyn Compiled>> {
    Ok(Box::new(running::Running::open(hardware, lowered, options)?))
}

/// `ONNX Runtime Web 1.30.0 in Chromium 153 (WebNN)`, or what is missing.
pub(super) fn version(hardware: Hardware) -> Result<String> {
    let programs = programs::find(hardware)?;
    let interface = if hardware == Hardware::Webgpu { "WebGPU" } else { "WebNN" };
    Ok(format!("ONNX Runtime Web {} in {} ({interface})", programs.version, programs.name))
}
