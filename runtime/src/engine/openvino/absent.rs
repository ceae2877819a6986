//! What stands in for OpenVINO's engine in a build without it.

use crate::engine::{Compiled, Options};
use crate::lower::Lowered;
use crate::{Error, Hardware, Result};

/// Refuses.
pub(super) fn compile(_lowered: &Lowered, _options: &Options) -> Result<Box<dyn Compiled>> {
    Err(absent())
}

/// Refuses.
pub(super) fn set_up() -> Result<()> {
    Err(absent())
}

/// Refuses.
pub(super) fn version() -> Result<String> {
    Err(absent())
}

/// Refuses.
pub(super) fn devices() -> Result<Vec<String>> {
    Err(absent())
}

fn absent() -> Error {
    let problem = "this build has no engine for it";
    Error::unavailable(Hardware::Openvino, problem, "build weft with the feature `openvino`")
}
