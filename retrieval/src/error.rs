//! Every way in which an index can refuse: each message names the thing, the place and the way out.

use std::path::PathBuf;

/// This crate's result.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong, where, and what to do about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file could not be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The operating system's reason.
        source: std::io::Error,
    },
    /// The index is not there, is another's, or is of another model.
    #[error("{}: {problem}\n  help: {help}", path.display())]
    Index {
        /// The index's folder.
        path: PathBuf,
        /// What is wrong.
        problem: String,
        /// The way out.
        help: String,
    },
    /// The database below the index failed.
    #[error("{}: {problem}", path.display())]
    Storage {
        /// The index's folder.
        path: PathBuf,
        /// What the database says.
        problem: String,
    },
    /// A model failed.
    #[error(transparent)]
    Model(#[from] weft::Error),
}
