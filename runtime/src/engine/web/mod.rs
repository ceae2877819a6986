//! ONNX Runtime Web in the page that this code runs in; one engine for all backends. The page's script holds the models
//! ([`crate::host`]): they are told apart by number here.

#[path = "../browser/placement.rs"]
mod placement;
mod running;
#[path = "../browser/tensors.rs"]
mod tensors;

use super::{Compiled, Options};
use crate::lower::Lowered;
use crate::{Error, Hardware, Result, Value, host};

/// A tensor in the engine's memory; it keeps none there.
pub(super) enum Held {}

/// What a tensor in the engine's memory holds.
pub(super) fn value(_hardware: Hardware, held: &Held) -> Result<Value> {
    match *held {}
}

/// Opens a model.
pub(super) fn compile(hardware: Hardware, lowered: &Lowered, options: &Options) -> Result<Box<dyn Compiled>> {
    Ok(Box::new(running::Running::open(hardware, lowered, options)?))
}

/// `ONNX Runtime Web 1.30.0 (WebGPU)`, or what this browser lacks.
pub(super) fn version(hardware: Hardware) -> Result<String> {
    let found = host::version(hardware.name());
    found.map(|found| found.as_string().unwrap_or_default()).map_err(|missing| {
        let help = "choose another `device`: `wasm` runs in every browser";
        Error::unavailable(hardware, host::words(&missing), help)
    })
}

/// A page is not told what it runs on.
pub(super) fn devices(_hardware: Hardware) -> Result<Vec<String>> {
    Ok(vec![])
}
