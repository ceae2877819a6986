//! Files of the file system.

use std::fs::{self, File};
use std::io::{Read, Result, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// A whole file.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path)
}

/// Says what is used of files, by offset and length: the system reads what is asked for.
pub(crate) fn plan(_ranges: Vec<(&Path, [u64; 2])>) {}

/// Says what is read next of files, by offset and length: the system reads ahead by itself.
pub(crate) fn read_soon(_ranges: Vec<(&Path, [u64; 2])>) {}

/// So many bytes of a file.
pub(crate) fn range(path: &Path, offset: u64, length: u64) -> Result<Vec<u8>> {
    let mut bytes = vec![0; length as usize];
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(offset))?;
    file.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// What a file begins with, so many bytes at most.
#[cfg(feature = "video")]
pub(crate) fn start(path: &Path, most: u64) -> Result<Vec<u8>> {
    let mut bytes = vec![];
    File::open(path)?.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The path without links: engines map files themselves and follow no links out of a folder.
pub(crate) fn real(path: &Path) -> Result<PathBuf> {
    path.canonicalize()
}

/// Whether it is a file.
pub(crate) fn is_file(path: &Path) -> bool {
    path.is_file()
}

/// Whether it is a folder.
pub(crate) fn is_dir(path: &Path) -> bool {
    path.is_dir()
}
