//! Quantized checkpoints, written: the linear layers of a checkpoint as compressed-tensors has them, which `transformers`
//! loads, with all its other files.

mod calibrated;
mod folder;
mod rounding;
mod tensors;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::{Value as Json, json};

use crate::hub::Checkpoint;
use crate::weights::Files;
use crate::{Error, Result};
pub(crate) use calibrated::Grams;
use calibrated::Solved;
use folder::Folder;

/// How linear layers are written: whole numbers in groups of a row's columns that share a scale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recipe {
    /// Bits of a weight: 4 (`pack-quantized`) or 8 (`int-quantized`).
    pub bits: usize,
    /// How many columns share a scale: 16, 32, 64, 128 or 256.
    pub group: usize,
    /// Whether zero is in the middle of the codes; each group has a zero point otherwise.
    pub symmetric: bool,
}

impl Default for Recipe {
    /// Four bits in symmetric groups of 32.
    fn default() -> Self {
        Self { bits: 4, group: 32, symmetric: true }
    }
}

/// What was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// How many weights were quantized.
    pub quantized: usize,
    /// How many of these were calibrated: their inputs were seen.
    pub calibrated: usize,
    /// How many tensors are as they were.
    pub kept: usize,
    /// Bytes of all weights before.
    pub before: u64,
    /// Bytes of all weights now.
    pub after: u64,
}

/// A checkpoint that is about to be written with the weights of some linear layers quantized; those whose rows no whole groups
/// make up stay.
pub(crate) struct Writing {
    files: Files,
    from: PathBuf,
    config: Json,
    recipe: Recipe,
    plan: tensors::Plan,
    solved: Solved,
    folder: Folder,
}

impl Writing {
    /// Checks what can be checked before anything is made.
    ///
    /// # Errors
    /// When the folder is there already, the recipe is none, nothing is to be quantized or all is already, or a file cannot be
    /// read or written.
    pub(crate) fn new(
        checkpoint: &Checkpoint,
        linear: &BTreeSet<String>,
        recipe: Recipe,
        out: &Path,
    ) -> Result<Self> {
        if ![4, 8].contains(&recipe.bits) || ![16, 32, 64, 128, 256].contains(&recipe.group) {
            let problem = format!("there are no groups of {} with {} bits", recipe.group, recipe.bits);
            return Err(Error::input(
                "quantization",
                problem,
                "choose 4 or 8 bits, and 16, 32, 64, 128 or 256",
            ));
        }
        let files = Files::open(checkpoint)?;
        let config = checkpoint.json("config.json")?.unwrap_or_default();
        if files.are_quantized() {
            let help = "quantize the checkpoint that it was made from";
            return Err(Error::weights(files.place(), "is quantized already", help));
        }
        let plan = tensors::Plan::new(&files, linear, recipe);
        if plan.quantized.is_empty() {
            let problem = format!("has no linear layer whose rows groups of {} make up", recipe.group);
            return Err(Error::weights(files.place(), problem, "choose smaller groups"));
        }
        let (from, folder) = (checkpoint.dir().to_path_buf(), Folder::new(out)?);
        Ok(Self { files, from, config, recipe, plan, solved: Solved::default(), folder })
    }

    /// The weights that are quantized, by the names they are stored under.
    pub(crate) fn quantized(&self) -> &BTreeSet<String> {
        &self.plan.quantized
    }

    /// Quantizes the weights of which the inputs were seen, by these.
    ///
    /// # Errors
    /// When a weight is not finite or cannot be read.
    pub(crate) fn calibrate(&mut self, grams: &Grams) -> Result<()> {
        self.solved.add(&self.files, grams, self.recipe)
    }

    /// Writes all, what was not calibrated rounded to nearest. Whatever stops it, the folder is whole or not there.
    ///
    /// # Errors
    /// When a weight is not finite, or a file cannot be read or written.
    pub(crate) fn finish(mut self) -> Result<Written> {
        let calibrated = self.solved.len();
        self.config["quantization_config"] = configuration(self.recipe, &self.plan.left, calibrated > 0);
        self.folder.copy_others(&self.from)?;
        self.folder.put("config.json", &format!("{:#}\n", self.config))?;
        let after = self.plan.write(&self.files, self.recipe, &self.solved, &self.folder)?;
        self.folder.finish()?;
        let (quantized, all) = (self.plan.quantized.len(), self.files.names().count());
        Ok(Written { quantized, calibrated, kept: all - quantized, before: self.files.size(), after })
    }
}

/// `quantization_config`, with the linear layers that stay as they are.
fn configuration(recipe: Recipe, left: &BTreeSet<String>, calibrated: bool) -> Json {
    let form = if recipe.bits == 8 { "int-quantized" } else { "pack-quantized" };
    let weights = json!({
        "num_bits": recipe.bits,
        "type": "int",
        "symmetric": recipe.symmetric,
        "strategy": "group",
        "group_size": recipe.group,
        // Columns went in another order, and stand in their own.
        "actorder": calibrated.then_some("static"),
        "dynamic": false,
        "observer": "minmax",
    });
    let group = json!({
        "targets": ["Linear"],
        "weights": weights,
        "input_activations": null,
        "output_activations": null,
        "format": form,
    });
    json!({
        "quant_method": "compressed-tensors",
        "format": form,
        "quantization_status": "compressed",
        "config_groups": {"group_0": group},
        "ignore": left,
        "kv_cache_scheme": null,
        "global_compression_ratio": null,
    })
}
