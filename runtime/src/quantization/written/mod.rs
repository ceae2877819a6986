//! Quantized checkpoints, written: the linear layers of a checkpoint as compressed-tensors has them, which `transformers`
//! loads, with all its other files.

mod folder;
mod rounding;
mod tensors;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value as Json, json};

use crate::hub::Checkpoint;
use crate::weights::Files;
use crate::{Error, Result};
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
    /// How many tensors are as they were.
    pub kept: usize,
    /// Bytes of all weights before.
    pub before: u64,
    /// Bytes of all weights now.
    pub after: u64,
}

/// Writes a checkpoint with the weights of these linear layers quantized; those whose rows no whole groups make up stay.
///
/// Whatever stops it, the folder is whole or not there.
///
/// # Errors
/// When the folder is there already, the recipe is none, a weight is not finite or quantized already, or a file cannot be
/// read or written.
pub(crate) fn write(
    checkpoint: &Checkpoint,
    linear: &BTreeSet<String>,
    recipe: Recipe,
    out: &Path,
) -> Result<Written> {
    if ![4, 8].contains(&recipe.bits) || ![16, 32, 64, 128, 256].contains(&recipe.group) {
        let problem = format!("there are no groups of {} with {} bits", recipe.group, recipe.bits);
        return Err(Error::input("quantization", problem, "choose 4 or 8 bits, and 16, 32, 64, 128 or 256"));
    }
    let files = Files::open(checkpoint)?;
    let mut config = checkpoint.json("config.json")?.unwrap_or_default();
    if files.are_quantized() {
        let help = "quantize the checkpoint that it was made from";
        return Err(Error::weights(files.place(), "is quantized already", help));
    }
    let plan = tensors::Plan::new(&files, linear, recipe);
    if plan.quantized.is_empty() {
        let problem = format!("has no linear layer whose rows groups of {} make up", recipe.group);
        return Err(Error::weights(files.place(), problem, "choose smaller groups"));
    }
    config["quantization_config"] = configuration(recipe, &plan.left);
    let folder = Folder::new(out)?;
    folder.copy_others(checkpoint.dir())?;
    folder.put("config.json", &format!("{config:#}\n"))?;
    let after = plan.write(&files, recipe, &folder)?;
    folder.finish()?;
    let (quantized, all) = (plan.quantized.len(), files.names().count());
    Ok(Written { quantized, kept: all - quantized, before: files.size(), after })
}

/// `quantization_config`, with the linear layers that stay as they are.
fn configuration(recipe: Recipe, left: &BTreeSet<String>) -> Json {
    let form = if recipe.bits == 8 { "int-quantized" } else { "pack-quantized" };
    let weights = json!({
        "num_bits": recipe.bits,
        "type": "int",
        "symmetric": recipe.symmetric,
        "strategy": "group",
        "group_size": recipe.group,
        "actorder": null,
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
