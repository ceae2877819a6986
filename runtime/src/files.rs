//! The files of checkpoints: those of the file system, or in a page those that its script fetches by their URLs.

use std::io::{Error, ErrorKind, Result};
use std::path::Path;

#[cfg(not(target_family = "wasm"))]
mod disk;
#[cfg(target_family = "wasm")]
#[path = "files/fetched.rs"]
mod disk;

pub(crate) mod header;

#[cfg(target_family = "wasm")]
pub(crate) use disk::length;
#[cfg(feature = "video")]
pub(crate) use disk::start;
pub(crate) use disk::{is_dir, is_file, plan, range, read, read_soon, real};

/// A whole file as text.
pub(crate) fn read_to_string(path: &Path) -> Result<String> {
    String::from_utf8(read(path)?).map_err(|_| Error::new(ErrorKind::InvalidData, "is not UTF-8"))
}
