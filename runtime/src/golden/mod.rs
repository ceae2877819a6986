//! A case: a checkpoint folder with inputs and the reference's outputs beside it.
//!
//! ```text
//! config.json        the model's configuration, with `model_type` and `architectures`
//! io.safetensors     `in.<argument>` and `out.<field>`, by the reference's own names
//! case.json          the reference's version and class, a tolerance of its own; optional
//! model.safetensors  the weights; without them the weight rule gives them
//! model.gguf         in place of config.json and weights
//! ```

mod compare;
mod io;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub use compare::{OutputReport, compare};
pub use io::tensors;
use serde::Deserialize;

use crate::weights::{FILE_NAMES, Weights};
use crate::{Error, Result, Values};

/// Everything that a case folder holds.
#[derive(Clone, Debug)]
pub struct Case {
    /// The folder.
    pub dir: PathBuf,
    /// The folder's name.
    pub name: String,
    /// What the model is given.
    pub inputs: Values,
    /// What the reference gave for it.
    pub outputs: Values,
    /// What layers of fixed size left in the reference's cache, by `{layer}.conv` and `{layer}.recurrent`, in the axes of Weft's; none
    /// where the case says nothing of them.
    pub states: Values,
    /// Who made it, and how it is compared; empty where the folder has no `case.json`.
    pub meta: Meta,
}

/// `case.json`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Meta {
    /// The format's version.
    pub format: Option<u32>,
    /// The model's name in the specs.
    pub model: Option<String>,
    /// The reference's class.
    pub class: Option<String>,
    /// The reference's packages and their versions.
    pub reference: BTreeMap<String, String>,
    /// `rule` or `file`.
    pub weights: Option<String>,
    /// A tolerance of its own, relative to `max(1, max|want|)`.
    pub tolerance: Option<f64>,
    /// Why it has one.
    pub tolerance_reason: Option<String>,
    /// What it exercises.
    pub notes: String,
    /// The reference model's parameters and their shapes.
    pub parameters: BTreeMap<String, Vec<usize>>,
    /// What else the reference's `forward` was told.
    pub forward: Forward,
}

/// Arguments of the reference's `forward` that are no tensors.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Forward {
    /// Whether images have other sizes than the configuration's, and what positions add is resized.
    pub interpolate_pos_encoding: bool,
}

const FORMAT: u32 = 1;

/// The largest relative difference where nothing else is said: single precision on CPU.
pub(crate) const TOLERANCE: f64 = 1e-4;

impl Case {
    /// Reads a case folder.
    ///
    /// # Errors
    /// When a file is missing or damaged, the format is a later one, or there are no outputs to compare.
    pub fn open(dir: &Path) -> Result<Self> {
        let help = "make the case again with `cargo xtask reference`";
        let meta = meta(dir)?;
        let path = dir.join("io.safetensors");
        if !path.is_file() {
            let help = "put the reference's inputs and outputs there, as `in.<argument>` and `out.<field>`";
            return Err(Error::case(dir, "has no io.safetensors", help));
        }
        let [inputs, outputs, states] = io::read(&path)?;
        if inputs.is_empty() || outputs.is_empty() {
            return Err(Error::case(
                path,
                "has no `in.` or no `out.` tensors: nothing could be compared",
                help,
            ));
        }
        let name = dir.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        Ok(Self { dir: dir.to_path_buf(), name, inputs, outputs, states, meta })
    }

    /// Weights by the rule, where the case has no files of its own.
    ///
    /// # Errors
    /// When it has neither.
    pub fn weights(&self) -> Result<Option<Weights>> {
        rule(&self.dir, &self.meta)
    }
}

/// Weights by the rule for a folder without weight files.
pub(crate) fn rule(dir: &Path, meta: &Meta) -> Result<Option<Weights>> {
    let files = FILE_NAMES.iter().flat_map(|(single, index)| [*single, *index]).chain(["model.gguf"]);
    if files.into_iter().any(|file| dir.join(file).exists()) {
        return Ok(None);
    }
    if meta.parameters.is_empty() {
        let problem = "has neither model.safetensors nor a `parameters` list for the weight rule";
        return Err(Error::case(dir, problem, "save the model there with `save_pretrained`"));
    }
    Ok(Some(Weights::Rule(meta.parameters.clone())))
}

/// Weights by the rule, where a folder's `case.json` lists parameters and there are no weight files.
pub(crate) fn rule_of(dir: &Path) -> Result<Option<Weights>> {
    let meta = meta(dir)?;
    if meta.parameters.is_empty() { Ok(None) } else { rule(dir, &meta) }
}

fn meta(dir: &Path) -> Result<Meta> {
    let path = dir.join("case.json");
    if !path.exists() {
        return Ok(Meta::default());
    }
    let text = std::fs::read(&path).map_err(|e| Error::io(&path, e))?;
    let meta: Meta = serde_json::from_slice(&text)
        .map_err(|e| Error::case(&path, e.to_string(), "make the case again with `cargo xtask reference`"))?;
    meta.check(&path)?;
    Ok(meta)
}

impl Meta {
    /// Refuses later formats, and tolerances that nobody answers for.
    pub(crate) fn check(&self, path: &Path) -> Result<()> {
        if self.format.is_some_and(|format| format > FORMAT) {
            let problem =
                format!("is of format {}, this release reads {FORMAT}", self.format.unwrap_or_default());
            return Err(Error::case(path, problem, "update Weft"));
        }
        if self.tolerance.is_some() && self.tolerance_reason.as_deref().unwrap_or_default().trim().is_empty()
        {
            let help = "write down why, or take the tolerance away";
            return Err(Error::case(path, "has a `tolerance` without `tolerance_reason`", help));
        }
        Ok(())
    }

    /// How far outputs may be off on a backend that is allowed `usual`; one that computes less exactly than the
    /// default keeps its bound where the case's own is stricter.
    pub(crate) fn tolerance(&self, usual: f64) -> f64 {
        match self.tolerance {
            Some(own) if usual > TOLERANCE => own.max(usual),
            Some(own) => own,
            None => usual,
        }
    }
}
