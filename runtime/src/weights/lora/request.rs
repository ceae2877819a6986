//! Low-rank updates that a loader is asked to add.

use std::path::{Path, PathBuf};

use crate::Result;
use crate::weights::{Names, Weights};

/// A file of low-rank updates and how often it is added, with what adds it: programs that never ask are linked without that.
#[derive(Clone, Debug)]
pub(crate) struct LoraRequest {
    path: PathBuf,
    scale: f32,
    add: fn(Weights, &Path, f32, &Names) -> Result<Weights>,
}

impl LoraRequest {
    pub(crate) fn new(path: &Path, scale: f32) -> Self {
        Self { path: path.to_owned(), scale, add: Weights::with_lora }
    }

    /// The weights with the updates added.
    ///
    /// # Errors
    /// As [`Weights::with_lora`].
    pub(crate) fn add_to(&self, weights: Weights, names: &Names) -> Result<Weights> {
        (self.add)(weights, &self.path, self.scale, names)
    }
}
