//! Task cases: text in, the answer of the reference's pipeline out; and `--task`, which runs a task for
//! `cargo xtask demo`.

use std::path::Path;
use std::process::ExitCode;

use super::run::Target;
use super::{Record, Suite};
use crate::Result;
use crate::model::Architecture;

/// Runs a task case.
pub(super) fn golden<A: Architecture>(dir: &Path, target: Target<'_>) -> Record {
    let name = dir.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    Record::new(A::NAME, &name, target.kind, target.hardware, target.precision)
}

/// `--task TASK --checkpoint DIR`.
pub(super) fn main<A: Architecture>(_suite: &Suite, _arguments: &[String]) -> Result<ExitCode> {
    Ok(ExitCode::FAILURE)
}
