//! Whole diffusion checkpoints in one `safetensors` file, as CompVis, Stability AI, Black Forest Labs and others publish them and user
//! interfaces write them: tensors under the names of the original code, and no configuration.
//!
//! Reference: `from_single_file` of `diffusers`, whose marks of layouts (`infer_diffusers_model_type`) and names these are.
//! Configurations follow from shapes and from the layout; what neither says (tokenizers, components that the file lacks) is in the
//! folder beside the file, or in the repository that the layout was published in.

mod clip;
mod configs;
mod flux;
mod layout;
mod qwen_image;
mod rules;
mod schedulers;
mod sd3;
mod shapes;
mod t5;
#[cfg(test)]
mod tests;
mod unet;
mod vae;
mod z_image;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value as Json;

use crate::{Error, Result};
use layout::Layout;
use shapes::Shapes;

/// How such files end.
pub(crate) const ENDING: &str = ".safetensors";

/// The layout of a file, the configurations that follow from it, and its tensors by their component.
#[derive(Debug)]
pub(crate) struct SingleFile {
    path: PathBuf,
    layout: Layout,
    /// What stands for files of the pipeline's folder, by their names in it.
    files: BTreeMap<String, Json>,
    tensors: BTreeMap<&'static str, Vec<Tensor>>,
}

/// A tensor of a component, under the name that `diffusers` or `transformers` has for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tensor {
    /// Today's name.
    pub name: String,
    /// The name in the file.
    pub stored: String,
    /// What of it.
    pub piece: Piece,
}

/// What of a stored tensor a weight is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    /// All of it.
    Whole,
    /// Some of its rows.
    Rows { first: usize, count: usize },
    /// All of it, without axes of length 1 behind the second one: the convolution that a linear layer was.
    Squeezed,
    /// The second half of its rows before the first.
    Swapped,
    /// Its rows as columns.
    Transposed,
    /// Nothing: the identity of so many rows.
    Identity(usize),
}

impl SingleFile {
    /// Reads a file's header.
    ///
    /// # Errors
    /// When it is no such file, its layout has no pipeline here, or it lacks tensors.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let shapes = Shapes::read(path)?;
        let layout = Layout::of(&shapes)?;
        let mut files = BTreeMap::new();
        let mut tensors = BTreeMap::new();
        for component in layout.components() {
            if let Some((config, own)) = component.read(&shapes, layout)? {
                files.insert(format!("{}/config.json", component.name), config);
                tensors.insert(component.name, own);
            }
        }
        files.insert("scheduler/scheduler_config.json".to_owned(), schedulers::config(layout));
        let has = |name: &str| tensors.contains_key(name);
        files.insert("model_index.json".to_owned(), configs::index(layout, has));
        Ok(Self { path: path.to_owned(), layout, files, tensors })
    }

    /// The file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The repository that its kind was published in, which has the tokenizers.
    pub(crate) fn repository(&self) -> &'static str {
        self.layout.repository()
    }

    /// What stands for a file of the pipeline's folder.
    pub(crate) fn json(&self, file: &str) -> Option<&Json> {
        self.files.get(file)
    }

    /// The tensors of a component; none where the file lacks it.
    pub(crate) fn tensors(&self, component: &str) -> Option<&[Tensor]> {
        self.tensors.get(component).map(Vec::as_slice)
    }

    /// That neither the file nor this folder has a component.
    pub(crate) fn lacks(&self, component: &str, dir: &Path) -> Error {
        let problem =
            format!("holds no tensors of the `{component}`, and {} has no such folder", dir.display());
        let help = format!(
            "put the folders that {} has of `{component}` and the tokenizers beside the file, with its model_index.json, or \
             fetch that repository into the cache",
            self.repository()
        );
        Error::weights(self.path(), problem, help)
    }
}
