//! No GGUF files, which a page does not read: its checkpoints are folders of `safetensors` files.

use std::collections::BTreeMap;
use std::path::Path;

use super::WeightData;
use crate::Result;
use crate::gguf::Gguf;

/// The tensors of a GGUF file, of which there is none.
#[derive(Clone, Debug)]
pub enum Tensors {}

impl Tensors {
    pub(super) fn of(gguf: &Gguf) -> Result<Self> {
        Err(gguf.wrong("is not read in a page"))
    }

    /// Where the tensors come from, for messages.
    pub fn place(&self) -> &Path {
        match *self {}
    }

    /// The names of all tensors.
    pub fn names(&self) -> std::slice::Iter<'_, String> {
        match *self {}
    }

    pub(crate) fn stored_types(&self) -> BTreeMap<String, u64> {
        match *self {}
    }

    pub(crate) fn shapes(&self) -> std::slice::Iter<'_, Vec<usize>> {
        match *self {}
    }

    /// A tensor's shape.
    pub fn shape(&self, _: &str) -> Option<&[usize]> {
        match *self {}
    }

    /// The bytes of all tensors.
    pub fn size(&self) -> u64 {
        match *self {}
    }

    pub(crate) fn locate(&self, _: &str) -> Result<WeightData, String> {
        match *self {}
    }
}
