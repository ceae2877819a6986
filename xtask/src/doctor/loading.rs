//! Loads the engines, in processes of a generated crate's tests: this program links none.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use weft_generator::spec::hardware::Hardware;

use crate::binaries::{self, Profile};
use crate::process::watch;
use crate::workspace;

/// Longer than the slowest engine takes; a driver that hangs must not hang this program.
const LIMIT: Duration = Duration::from_secs(120);

/// What an engine says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Loaded {
    /// Its name and version; none where it cannot be used.
    pub engine: Option<String>,
    /// The devices it finds.
    pub devices: Vec<String>,
    /// What is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing: Option<String>,
    /// The way to get it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
    /// What `Hardware::Auto` makes of it; none where it is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auto: Option<Auto>,
}

/// What `Hardware::Auto` makes of a backend.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Auto {
    /// The kind of device that it would run on: `gpu`, `processor`, `emulator` …
    pub device: String,
    pub verdicts: Vec<Verdict>,
}

/// Whether it is taken for models that are run in one way.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// `encoder`, `decoder` or `encoder-decoder`.
    pub workload: String,
    pub taken: bool,
    pub reason: String,
}

impl fmt::Display for Loaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.engine, &self.missing) {
            (Some(engine), _) => {
                write!(f, "loads {engine}")?;
                if !self.devices.is_empty() {
                    write!(f, ", on {}", self.devices.join("; "))?;
                }
                Ok(())
            }
            (None, missing) => {
                write!(f, "does not load: {}", missing.as_deref().unwrap_or("it gives no reason"))?;
                self.help.iter().try_for_each(|help| write!(f, "; {help}"))
            }
        }
    }
}

/// The tests of some generated crate.
pub fn binary() -> Result<PathBuf> {
    let members = workspace::select(workspace::root(), &[], &[])?;
    binaries::build_one(members.first().context("there is no generated crate")?, Profile::Dev)
}

/// Loads one backend's engine: in a process of its own, since a process holds one ONNX Runtime.
pub fn load(binary: &Path, hardware: Hardware) -> Loaded {
    let mut command = binaries::command(binary);
    command.args(["--doctor", hardware.name()]).envs(super::environment(hardware));
    let mut loaded = None;
    let outcome = watch(command, LIMIT, |line| {
        loaded = loaded.take().or_else(|| parsed(line));
        false
    });
    let missing = match outcome {
        Ok(outcome) => {
            let last = outcome.stderr.last().map(|last| format!(": {last}")).unwrap_or_default();
            format!("{}{last}", outcome.end.describe())
        }
        Err(error) => format!("{error:#}"),
    };
    loaded.unwrap_or(Loaded { missing: Some(missing), ..Loaded::default() })
}

/// The line that is an answer: drivers and libraries print others.
fn parsed(line: &str) -> Option<Loaded> {
    let loaded: Loaded = serde_json::from_str(line).ok()?;
    (loaded.engine.is_some() || loaded.missing.is_some()).then_some(loaded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_engine_says_what_it_is_or_what_is_missing() {
        let said = |line: &str| parsed(line).unwrap().to_string();
        assert_eq!([parsed("[QNN] version 2.7"), parsed("{}")], [None, None]);
        assert_eq!(
            said(r#"{"hardware":"cpu","engine":"ONNX Runtime 1.31.1","devices":["CPU by AMD"]}"#),
            "loads ONNX Runtime 1.31.1, on CPU by AMD"
        );
        assert_eq!(
            said(r#"{"hardware":"cuda","missing":"there is no driver","help":"install it"}"#),
            "does not load: there is no driver; install it"
        );
    }
}
