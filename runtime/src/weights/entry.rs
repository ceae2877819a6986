//! The place of one tensor in a file.

use std::path::PathBuf;

use safetensors::Dtype as Stored;

use crate::files as storage;

/// One tensor's place.
#[derive(Clone, Debug)]
pub struct Entry {
    pub(super) path: PathBuf,
    pub(super) stored: Stored,
    pub(super) shape: Vec<usize>,
    pub(super) offset: u64,
    pub(super) length: u64,
    /// What is done to its bytes when they are read.
    pub(super) change: Option<Change>,
}

/// What is done to a tensor's bytes when they are read: what a file of all components holds otherwise than it is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// The halves of its rows change places.
    Swapped,
    /// Rows are columns.
    Transposed,
    /// Ones on the diagonal, whatever the file holds.
    Identity,
}

impl Entry {
    /// Whether its elements lie where a processor reads such ones: engines take them from the mapped file as they are.
    pub(super) fn is_aligned(&self) -> bool {
        self.offset.is_multiple_of((self.stored.bitsize() as u64 / 8).max(1))
    }

    /// Its bytes.
    pub(super) fn read(&self) -> std::io::Result<Vec<u8>> {
        let bytes = || storage::range(&self.path, self.offset, self.length);
        let size = (self.stored.bitsize() / 8).max(1);
        Ok(match self.change {
            None => bytes()?,
            Some(Change::Swapped) => {
                let mut bytes = bytes()?;
                let half = bytes.len() / 2;
                bytes.rotate_left(half);
                bytes
            }
            Some(Change::Transposed) => {
                let (bytes, rows) = (bytes()?, self.shape.first().copied().unwrap_or(1));
                let columns = bytes.len() / size / rows.max(1);
                // The file has `columns` rows of `rows` elements.
                let element = |place: usize| {
                    let from = (place % columns * rows + place / columns) * size;
                    &bytes[from..from + size]
                };
                (0..rows * columns).flat_map(element).copied().collect()
            }
            Some(Change::Identity) => {
                let width = self.shape.first().copied().unwrap_or_default();
                let one = |place: usize| if place.is_multiple_of(width + 1) { 1.0_f32 } else { 0.0 };
                (0..width * width).flat_map(|place| one(place).to_le_bytes()).collect()
            }
        })
    }
}
