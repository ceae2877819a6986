//! The compiler for pages: rustup's, where it has the target, or Debian's, which builds the standard library as well.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::terminal::Usage;
use crate::workspace::{cargo, root, target_dir};

/// What pages run.
pub const TARGET: &str = "wasm32-unknown-unknown";

/// A cargo that compiles for pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Toolchain {
    /// The one that runs here; rustup has the target's standard library.
    Rustup,
    /// Debian's `rustc-web`, with the sources of the standard library.
    Debian,
}

impl Toolchain {
    /// The one that is there.
    ///
    /// # Errors
    /// Says what to install where there is none.
    pub fn find() -> Result<Self> {
        let listed = Command::new("rustup").args(["target", "list", "--installed"]).output();
        let listed = listed.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
        if listed.is_ok_and(|listed| listed.lines().any(|target| target.trim() == TARGET)) {
            return Ok(Self::Rustup);
        }
        if ["rustc", "cargo"].iter().all(|tool| Path::new(BIN).join(tool).is_file()) && sources().is_some() {
            return Ok(Self::Debian);
        }
        let problem = format!("neither rustup's target {TARGET} nor Debian's rustc-web is there");
        let help = format!(
            "`rustup target add {TARGET}`, or on Debian: `apt install rustc-web cargo-web rust-web-src`"
        );
        Err(Usage(format!("{problem}: {help}")).into())
    }

    /// A command of cargo, for pages, in a target folder of its own.
    pub fn cargo(self, verb: &str) -> Command {
        let mut command = match self {
            Self::Rustup => cargo(),
            Self::Debian => debian(),
        };
        command.arg(verb);
        if self == Self::Debian {
            command.arg("-Zbuild-std=std,panic_abort");
        }
        command.args(["--target", TARGET, "--target-dir"]).arg(target_dir().join("wasm"));
        command
    }
}

impl fmt::Display for Toolchain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Rustup => "rustup's toolchain",
            Self::Debian => "Debian's rustc-web",
        })
    }
}

/// Where Debian's tools are.
const BIN: &str = "/usr/bin";

/// Debian's cargo, with its compiler and not the one that cargo's variables name here.
fn debian() -> Command {
    let mut command = Command::new(Path::new(BIN).join("cargo"));
    command.current_dir(root());
    for name in removed(&cargo()).iter().map(String::as_str).chain(["RUSTUP_TOOLCHAIN", "CARGO", "RUSTFLAGS"])
    {
        command.env_remove(name);
    }
    command.env("PATH", format!("{BIN}:/bin")).env("RUSTC", Path::new(BIN).join("rustc"));
    // The standard library is built by an option that a released compiler has for itself alone.
    command.env("RUSTC_BOOTSTRAP", "1");
    command
}

/// The variables that a command is started without.
fn removed(command: &Command) -> Vec<String> {
    let removed = command.get_envs().filter(|(_, value)| value.is_none());
    removed.map(|(name, _)| name.to_string_lossy().into_owned()).collect()
}

/// The sources of the standard library of Debian's compiler.
fn sources() -> Option<PathBuf> {
    let output = Command::new(Path::new(BIN).join("rustc")).args(["--print", "sysroot"]).output().ok()?;
    let root = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim());
    let sources = root.join("lib/rustlib/src/rust/library");
    sources.is_dir().then_some(sources)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debians_compiler_is_started_without_what_names_another() {
        let command = Toolchain::Debian.cargo("check");
        let value = |name: &str| {
            command.get_envs().find(|(own, _)| *own == name).map(|(_, v)| v.map(std::ffi::OsStr::to_owned))
        };
        assert_eq!(command.get_program(), "/usr/bin/cargo");
        assert_eq!(value("RUSTUP_TOOLCHAIN"), Some(None));
        assert_eq!(value("RUSTC"), Some(Some("/usr/bin/rustc".into())));
        let arguments: Vec<_> = command.get_args().map(|a| a.to_string_lossy().into_owned()).collect();
        assert!(arguments.starts_with(&["check".into(), "-Zbuild-std=std,panic_abort".into()]));
        let rustup = Toolchain::Rustup.cargo("check");
        assert!(!rustup.get_args().any(|argument| argument.to_string_lossy().starts_with("-Z")));
    }
}
