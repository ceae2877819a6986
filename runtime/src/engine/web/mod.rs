//! ONNX Runtime Web in the page that this code runs in; one engine for all backends.

use crate::engine::{Compiled, Options};
use crate::lower::Lowered;
use crate::{Error, Hardware, Result, Value};

/// A tensor in the engine's memory; it keeps none there.
pub(super) enum Held {}

/// What a tensor in the engine's memory holds.
pub(super) fn value(_hardware: Hardware, held: &Held) -> Result<Value> {
    match *held {}
}

/// Refuses.
pub(super) fn compile(
    hardware: Hardware,
    _lowered: &Lowered,
    _options: &Options,
) -> Result<Box<dyn Compiled>> {
    Err(absent(hardware))
}

/// Refuses.
pub(super) fn version(hardware: Hardware) -> Result<String> {
    Err(absent(hardware))
}

/// A page is not told what it runs on.
pub(super) fn devices(_hardware: Hardware) -> Result<Vec<String>> {
    Ok(vec![])
}

fn absent(hardware: Hardware) -> Error {
    Error::unavailable(hardware, "there is no engine for pages yet", "run the model outside of a page")
}
