//! What stands in for the browser engine in a build without it.

use crate::engine::{Compiled, Options};
use crate::lower::Lowered;
use crate::{Error, Hardware, Result};

/// Refuses.
pub(crate) fn compile(
    hardware: Hardware,
    _lowered: &Lowered,
    _options: &Options,
) -> Result<Box<dyn Compiled>> {
    Err(absent(hardware))
}

/// Refuses.
pub(crate) fn version(hardware: Hardware) -> Result<String> {
    Err(absent(hardware))
}

fn absent(hardware: Hardware) -> Error {
    let problem = "this build has no browser engine";
    Error::unavailable(hardware, problem, "build weft with the feature `browser`")
}
