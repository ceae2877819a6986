//! Files that a page's script fetches; a path is a URL, and a folder's URL is any that its files' begin with.

use std::collections::BTreeMap;
use std::io::{Error, ErrorKind, Result};
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::host;

/// A whole file.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>> {
    range(path, 0, length(path)?)
}

/// So many bytes of a file.
pub(crate) fn range(path: &Path, offset: u64, length: u64) -> Result<Vec<u8>> {
    let bytes = host::read(url(path)?, offset as f64, length as f64).map_err(failed)?.to_vec();
    match bytes.len() as u64 == length {
        true => Ok(bytes),
        false => Err(Error::new(ErrorKind::UnexpectedEof, "ends before what was asked for")),
    }
}

/// What a file begins with, so many bytes at most.
#[cfg(feature = "video")]
pub(crate) fn start(path: &Path, most: u64) -> Result<Vec<u8>> {
    range(path, 0, length(path)?.min(most))
}

/// Says what is used of files, by offset and length, so that what lies side by side is fetched and kept together.
pub(crate) fn plan(ranges: Vec<(&Path, [u64; 2])>) {
    tell(ranges, host::plan);
}

/// Says what is read next of files, by offset and length, so that it is fetched meanwhile.
pub(crate) fn read_soon(ranges: Vec<(&Path, [u64; 2])>) {
    tell(ranges, host::expect);
}

/// Tells the page of the ranges of each file.
fn tell(ranges: Vec<(&Path, [u64; 2])>, what: fn(&str, &str)) {
    let mut by_file: BTreeMap<&str, Vec<[u64; 2]>> = BTreeMap::new();
    for (path, range) in ranges {
        by_file.entry(path.to_str().unwrap_or_default()).or_default().push(range);
    }
    for (url, ranges) in by_file {
        what(url, &json!(ranges).to_string());
    }
}

/// How many bytes a file has.
pub(crate) fn length(path: &Path) -> Result<u64> {
    let length = host::size(url(path)?).map_err(failed)?;
    match length >= 0.0 {
        true => Ok(length as u64),
        false => Err(Error::new(ErrorKind::NotFound, "the server has no such file")),
    }
}

/// URLs have no links.
pub(crate) fn real(path: &Path) -> Result<PathBuf> {
    Ok(path.to_path_buf())
}

/// Whether it is a file.
pub(crate) fn is_file(path: &Path) -> bool {
    length(path).is_ok()
}

/// Whether it may be a folder: only its files tell.
pub(crate) fn is_dir(path: &Path) -> bool {
    path.to_str().is_some_and(|url| url.contains("://"))
}

fn url(path: &Path) -> Result<&str> {
    path.to_str().ok_or_else(|| Error::new(ErrorKind::InvalidInput, "is not UTF-8"))
}

fn failed(error: wasm_bindgen::JsValue) -> Error {
    Error::other(host::words(&error))
}
