//! Every way in which the runtime can refuse: each message names the thing, the place and the way out.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::hardware::{Hardware, Precision};

/// The runtime's result.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong, where, and what to do about it.
///
/// `problem` says what was found and what was expected; `help` says how to get on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file could not be read or written.
    #[error("{}: {source}{}", path.display(), way_out(source))]
    Io {
        /// The file.
        path: PathBuf,
        /// The operating system's reason.
        source: std::io::Error,
    },
    /// A checkpoint's JSON file (`config.json`, `modules.json`, …) is not what the model needs.
    #[error("{}: {problem}\n  help: {help}", path.display())]
    Config {
        /// The file.
        path: PathBuf,
        /// What is wrong, with the field's name.
        problem: String,
        /// The way out.
        help: String,
    },
    /// A weights file or a tensor in it does not fit the model.
    #[error("{}: {problem}\n  help: {help}", path.display())]
    Weights {
        /// The `safetensors` file, or the folder where it was expected.
        path: PathBuf,
        /// What is wrong, with the tensor's name.
        problem: String,
        /// The way out.
        help: String,
    },
    /// An operation does not fit its operands.
    #[error("{op} in {scope}: {problem}")]
    Graph {
        /// The operation, by its ONNX name.
        op: String,
        /// The scope, by its checkpoint name.
        scope: String,
        /// Both shapes or dtypes, and the rule they break.
        problem: String,
    },
    /// A tokenizer is missing or cannot be read.
    #[error("{}: {problem}\n  help: {help}", path.display())]
    Tokenizer {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
        /// The way out.
        help: String,
    },
    /// A checkpoint id or folder leads to no checkpoint.
    #[error("{id}: {problem}\n  help: {help}")]
    Hub {
        /// The id or path as given.
        id: String,
        /// What was looked for, and where.
        problem: String,
        /// The way out.
        help: String,
    },
    /// An input of `forward` or of a task is missing, has the wrong shape or is out of range.
    #[error("input {name}: {problem}\n  help: {help}")]
    Input {
        /// The input, by the reference's name.
        name: String,
        /// What is wrong.
        problem: String,
        /// The way out.
        help: String,
    },
    /// The backend is not available on this machine: its library or its device is missing.
    #[error("{hardware} is not available: {problem}\n  help: {help}")]
    Unavailable {
        /// The backend.
        hardware: Hardware,
        /// What is missing.
        problem: String,
        /// The command that installs it, or what hardware it needs.
        help: String,
    },
    /// The engine refused the graph or failed while running it.
    #[error("{hardware}: {problem}")]
    Engine {
        /// The backend.
        hardware: Hardware,
        /// The engine's own words, and what was being done.
        problem: String,
    },
    /// A case folder is not complete or not consistent.
    #[error("{}: {problem}\n  help: {help}", path.display())]
    Case {
        /// The folder or the file in it.
        path: PathBuf,
        /// What is wrong.
        problem: String,
        /// The way out.
        help: String,
    },
}

/// What helps against the file system's most common refusals.
fn way_out(refusal: &std::io::Error) -> &'static str {
    match refusal.kind() {
        ErrorKind::NotFound => "\n  help: check the path",
        ErrorKind::PermissionDenied => "\n  help: run as a user who may, or change the file's permissions",
        ErrorKind::StorageFull => "\n  help: make room on the disk",
        _ => "",
    }
}

impl Error {
    pub(crate) fn io(path: impl AsRef<Path>, source: std::io::Error) -> Self {
        Self::Io { path: path.as_ref().to_path_buf(), source }
    }

    pub(crate) fn config(
        path: impl AsRef<Path>,
        problem: impl Into<String>,
        help: impl Into<String>,
    ) -> Self {
        Self::Config { path: path.as_ref().to_path_buf(), problem: problem.into(), help: help.into() }
    }

    pub(crate) fn weights(
        path: impl AsRef<Path>,
        problem: impl Into<String>,
        help: impl Into<String>,
    ) -> Self {
        Self::Weights { path: path.as_ref().to_path_buf(), problem: problem.into(), help: help.into() }
    }

    pub(crate) fn tokenizer(
        path: impl AsRef<Path>,
        problem: impl Into<String>,
        help: impl Into<String>,
    ) -> Self {
        Self::Tokenizer { path: path.as_ref().to_path_buf(), problem: problem.into(), help: help.into() }
    }

    pub(crate) fn hub(id: impl Into<String>, problem: impl Into<String>, help: impl Into<String>) -> Self {
        Self::Hub { id: id.into(), problem: problem.into(), help: help.into() }
    }

    pub(crate) fn input(
        name: impl Into<String>,
        problem: impl Into<String>,
        help: impl Into<String>,
    ) -> Self {
        Self::Input { name: name.into(), problem: problem.into(), help: help.into() }
    }

    pub(crate) fn engine(hardware: Hardware, problem: impl Into<String>) -> Self {
        Self::Engine { hardware, problem: problem.into() }
    }

    pub(crate) fn unavailable(
        hardware: Hardware,
        problem: impl Into<String>,
        help: impl Into<String>,
    ) -> Self {
        Self::Unavailable { hardware, problem: problem.into(), help: help.into() }
    }

    pub(crate) fn case(path: impl AsRef<Path>, problem: impl Into<String>, help: impl Into<String>) -> Self {
        Self::Case { path: path.as_ref().to_path_buf(), problem: problem.into(), help: help.into() }
    }
}

impl FromStr for Precision {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|precision| precision.name() == name).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            Error::input("precision", format!("`{name}` is no precision"), format!("one of {names}"))
        })
    }
}

impl FromStr for Hardware {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let all = Self::ALL.into_iter().chain([Self::Auto]);
        all.clone().find(|hardware| hardware.name() == name).ok_or_else(|| {
            let names: Vec<_> = all.map(Self::name).collect();
            Error::input(
                "hardware",
                format!("unknown backend `{name}`"),
                format!("one of {}", names.join(", ")),
            )
        })
    }
}
