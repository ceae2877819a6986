//! The names and shapes of a file's tensors.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::files::{self, header};
use crate::{Error, Result};

/// The shapes of tensors below a prefix, by what follows it.
#[derive(Clone, Debug)]
pub(super) struct Shapes {
    path: PathBuf,
    prefix: String,
    shapes: BTreeMap<String, Vec<usize>>,
}

impl Shapes {
    pub(super) fn read(path: &Path) -> Result<Self> {
        let real = files::real(path).map_err(|e| Error::io(path, e))?;
        let (_, metadata) = header::read(&real, path)?;
        let shapes =
            metadata.tensors().into_iter().map(|(name, tensor)| (name, tensor.shape.clone())).collect();
        Ok(Self { path: path.to_owned(), prefix: String::new(), shapes })
    }

    #[cfg(test)]
    pub(super) fn of(shapes: &[(&str, &[usize])]) -> Self {
        let shapes = shapes.iter().map(|(name, shape)| ((*name).to_owned(), shape.to_vec())).collect();
        Self { path: "model.safetensors".into(), prefix: String::new(), shapes }
    }

    /// Those below a prefix.
    pub(super) fn below(&self, prefix: &str) -> Self {
        let below = self.shapes.range(prefix.to_owned()..);
        let below =
            below.map_while(|(name, shape)| Some((name.strip_prefix(prefix)?.to_owned(), shape.clone())));
        Self { path: self.path.clone(), prefix: format!("{}{prefix}", self.prefix), shapes: below.collect() }
    }

    /// Some of them.
    pub(super) fn only(&self, some: &[(&str, &[usize])]) -> Self {
        let shapes = some.iter().map(|(name, shape)| ((*name).to_owned(), shape.to_vec())).collect();
        Self { shapes, ..self.clone() }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// What stands before the names.
    pub(super) fn prefix(&self) -> &str {
        &self.prefix
    }

    pub(super) fn is_empty(&self) -> bool {
        self.shapes.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &[usize])> {
        self.shapes.iter().map(|(name, shape)| (name.as_str(), shape.as_slice()))
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.shapes.contains_key(name)
    }

    pub(super) fn get(&self, name: &str) -> Option<&[usize]> {
        self.shapes.get(name).map(Vec::as_slice)
    }

    /// Whether a name begins so.
    pub(super) fn begins(&self, prefix: &str) -> bool {
        self.shapes.range(prefix.to_owned()..).next().is_some_and(|(name, _)| name.starts_with(prefix))
    }

    /// The length of an axis of a tensor that must be there.
    pub(super) fn axis(&self, name: &str, axis: usize) -> Result<usize> {
        let shape = self.get(name).ok_or_else(|| self.lacks(name))?;
        shape.get(axis).copied().ok_or_else(|| {
            let problem = format!("tensor `{}{name}` is {shape:?}, which has no axis {axis}", self.prefix);
            Error::weights(&self.path, problem, "take the file as it was published")
        })
    }

    /// How many layers of a list there are: names that begin with `list`, a number from 0 on, and a dot.
    pub(super) fn count(&self, list: &str) -> usize {
        (0..).take_while(|index| self.begins(&format!("{list}{index}."))).count()
    }

    /// The same, of a list that must not be empty.
    pub(super) fn layers(&self, list: &str) -> Result<usize> {
        match self.count(list) {
            0 => Err(self.lacks(&format!("{list}0"))),
            layers => Ok(layers),
        }
    }

    /// That a tensor is missing.
    fn lacks(&self, name: &str) -> Error {
        let problem = format!("lacks `{}{name}`", self.prefix);
        Error::weights(
            &self.path,
            problem,
            "the file is incomplete: fetch it again, or take another one of this model",
        )
    }

    /// That a tensor has no place in its component.
    pub(super) fn unknown(&self, name: &str) -> Error {
        let problem = format!("holds `{}{name}`, which this layout does not have", self.prefix);
        let help = "take the file as it was published, or a folder in the layout of `diffusers`";
        Error::weights(&self.path, problem, help)
    }
}
