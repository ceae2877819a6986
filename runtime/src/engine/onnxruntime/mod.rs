//! ONNX Runtime: one environment per process, one session per compiled graph.

mod placement;
mod provider;
mod session;

use std::sync::OnceLock;

use ort::environment::Environment;

use super::{Compiled, Options, library};
use crate::lower::Lowered;
use crate::{Error, Hardware, Result};

/// Makes a session.
pub(super) fn compile(hardware: Hardware, lowered: &Lowered, options: &Options) -> Result<Box<dyn Compiled>> {
    let environment = environment()?;
    Ok(Box::new(session::Running::new(environment, hardware, lowered, options)?))
}

/// The library's version; an error where the backend's provider or device is missing.
pub(super) fn version(hardware: Hardware) -> Result<String> {
    provider::Provider::of(environment()?, hardware)?;
    // `info` begins with "ORT Build Info: git-branch=rel-1.31.1, …".
    let info = ort::info();
    let version = info.split("git-branch=rel-").nth(1).and_then(|rest| rest.split(',').next());
    Ok(format!("ONNX Runtime {}", version.unwrap_or("of an unknown version")))
}

/// The process's environment, made once.
fn environment() -> Result<&'static Environment> {
    static ENVIRONMENT: OnceLock<std::result::Result<Environment, String>> = OnceLock::new();
    // A missing library is not remembered: it may be set up while the process runs.
    let path = match ENVIRONMENT.get() {
        Some(Ok(environment)) => return Ok(environment),
        _ => library::onnxruntime()?,
    };
    let made = ENVIRONMENT.get_or_init(|| {
        let builder = ort::init_from(&path).map_err(|e| e.to_string())?;
        builder.with_name("weft").with_telemetry(false).build().map_err(|e| e.to_string())
    });
    made.as_ref().map_err(|reason| {
        let problem = format!("{} cannot be loaded: {reason}", path.display());
        Error::unavailable(Hardware::Cpu, problem, "run `cargo xtask setup --hw cpu --force`")
    })
}
