//! Low-rank updates of weights (LoRA, arXiv:2106.09685) as files of `diffusers`, PEFT and kohya-ss hold them, added to a model's
//! weights as these are read: `W + scale * alpha / rank * up * down`.

mod names;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use half::{bf16, f16};
use safetensors::{Dtype as Stored, SafeTensors};

use super::WeightData;
use super::header::{damaged, explain};
use crate::graph::Dtype;
use crate::weights::Bytes;
use crate::{Error, Result};
use names::{Part, Stem, candidates, part};

/// The updates of one file, each of a stored tensor.
#[derive(Debug)]
pub(super) struct Lora {
    place: PathBuf,
    updates: HashMap<String, Update>,
}

/// The update of one weight.
#[derive(Clone, Debug, Default)]
struct Update {
    /// `[rank, inputs..]`.
    down: Option<Matrix>,
    /// `[outputs, rank, ..]`.
    up: Option<Matrix>,
    alpha: Option<f32>,
}

#[derive(Clone, Debug)]
struct Matrix {
    rows: usize,
    values: Vec<f32>,
}

impl Lora {
    /// The updates of a file that are made to these tensors.
    ///
    /// # Errors
    /// When the file is damaged, has updates of another kind (DoRA, LoHa, LoKr), or such as no tensor fits.
    pub(super) fn open<'a>(
        path: &Path,
        scale: f32,
        stored: impl Iterator<Item = (&'a String, &'a [usize])> + Clone,
    ) -> Result<Self> {
        let mut read = read(path)?;
        let layers = names::layers_per_block(stored.clone().map(|(name, _)| name.as_str()));
        let mut updates = HashMap::new();
        for (name, shape) in stored {
            let Some(module) = name.strip_suffix(".weight") else { continue };
            let Some(stem) = candidates(module, layers).into_iter().find(|stem| read.contains_key(stem))
            else {
                continue;
            };
            let Some(update) = read.remove(&stem) else { continue };
            updates.insert(
                name.clone(),
                update.scaled(scale).fitting(shape).map_err(|problem| {
                    let help = "take a file that was trained for this model";
                    Error::weights(path, format!("the update `{stem}` {problem}"), help)
                })?,
            );
        }
        if read.is_empty() {
            return Ok(Self { place: path.to_owned(), updates });
        }
        let shown: Vec<_> = read.keys().take(5).map(|name| format!("`{name}`")).collect();
        let more = read.len() - shown.len();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let problem = format!("updates {}{more}, which the model has not", shown.join(", "));
        Err(Error::weights(path, problem, "take a file that was trained for this model"))
    }

    /// A weight with its update, in single precision; as it is where it has none.
    pub(super) fn merged(&self, weight: WeightData) -> std::result::Result<WeightData, String> {
        let Some(Update { down: Some(down), up: Some(up), .. }) = self.updates.get(&weight.stored_as) else {
            return Ok(weight);
        };
        let bytes = weight.bytes.read().map_err(|error| error.to_string())?;
        let stored = match weight.dtype {
            Dtype::F16 => Stored::F16,
            Dtype::Bf16 => Stored::BF16,
            _ => Stored::F32,
        };
        let place = || format!("{} cannot be added to `{}`", self.place.display(), weight.stored_as);
        let mut values = floats(&bytes, stored).ok_or_else(place)?;
        let (rank, width) = (down.rows, values.len() / up.rows.max(1));
        for (row, factors) in values.chunks_exact_mut(width.max(1)).zip(up.values.chunks_exact(rank.max(1))) {
            for (factor, inputs) in factors.iter().zip(down.values.chunks_exact(width.max(1))) {
                row.iter_mut().zip(inputs).for_each(|(x, input)| *x += factor * input);
            }
        }
        let bytes = Bytes::memory(values.iter().flat_map(|x| x.to_le_bytes()).collect());
        Ok(WeightData { dtype: Dtype::F32, bytes, ..weight })
    }

    /// Whether a tensor is updated.
    pub(super) fn updates(&self, name: &str) -> bool {
        self.updates.contains_key(name)
    }
}

impl Update {
    /// The update times its factor, which its upper half then has.
    fn scaled(mut self, scale: f32) -> Self {
        let rank = self.down.as_ref().map_or(1, |down| down.rows).max(1) as f32;
        let factor = scale * self.alpha.unwrap_or(rank) / rank;
        if let Some(up) = &mut self.up {
            up.values.iter_mut().for_each(|x| *x *= factor);
        }
        self
    }

    /// The update, whose product has as many rows and columns as the weight.
    fn fitting(self, shape: &[usize]) -> std::result::Result<Self, String> {
        let (Some(down), Some(up)) = (&self.down, &self.up) else {
            return Err("has one of its two matrices alone".to_owned());
        };
        let elements: usize = shape.iter().product();
        let outputs = shape.first().copied().unwrap_or_default();
        let inputs = elements.checked_div(outputs).unwrap_or_default();
        if up.rows != outputs
            || up.values.len() != outputs * down.rows
            || down.values.len() != down.rows * inputs
        {
            let (rank, wide) = (down.rows, down.values.len() / down.rows.max(1));
            return Err(format!("is {} by {wide} of rank {rank}, the weight {outputs} by {inputs}", up.rows));
        }
        Ok(self)
    }
}

/// The updates of a file by the modules that it names.
fn read(path: &Path) -> Result<BTreeMap<Stem, Update>> {
    let bytes = std::fs::read(path).map_err(|error| Error::io(path, error))?;
    let broken = |error| damaged(path, explain(&error, &bytes));
    let tensors = SafeTensors::deserialize(&bytes).map_err(broken)?;
    let (_, metadata) = SafeTensors::read_metadata(&bytes).map_err(broken)?;
    // What `save_lora_weights` of today knows of an adapter: `lora_alpha` of each component.
    let adapter = metadata.metadata().as_ref().and_then(|fields| fields.get("lora_adapter_metadata"));
    let adapter: serde_json::Value =
        adapter.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    let mut updates: BTreeMap<Stem, Update> = BTreeMap::new();
    for (name, tensor) in tensors.iter() {
        let Some((stem, part)) = part(name) else {
            let help = "convert it to a LoRA of two matrices for each weight; others (DoRA, LoHa, LoKr) are not read";
            return Err(Error::weights(
                path,
                format!("has a tensor `{name}`, which is no low-rank update"),
                help,
            ));
        };
        let values = floats(tensor.data(), tensor.dtype()).ok_or_else(|| {
            let problem = format!("tensor `{name}` is {:?}", tensor.dtype());
            Error::weights(path, problem, "save it in F32, F16 or BF16")
        })?;
        let alpha = stem.split('.').next().and_then(|root| adapter[format!("{root}.lora_alpha")].as_f64());
        let update = updates.entry(stem).or_default();
        update.alpha = update.alpha.or(alpha.map(|alpha| alpha as f32));
        let rows = tensor.shape().first().copied().unwrap_or(1);
        match part {
            Part::Down => update.down = Some(Matrix { rows, values }),
            Part::Up => update.up = Some(Matrix { rows, values }),
            Part::Alpha => update.alpha = values.first().copied(),
        }
    }
    Ok(updates)
}

/// Numbers of a type of floating point.
fn floats(bytes: &[u8], stored: Stored) -> Option<Vec<f32>> {
    let pairs = || bytes.chunks_exact(2).map(|pair| [pair[0], pair[1]]);
    let fours = || bytes.chunks_exact(4).map(|four| [four[0], four[1], four[2], four[3]]);
    Some(match stored {
        Stored::F32 => fours().map(f32::from_le_bytes).collect(),
        Stored::F16 => pairs().map(|pair| f16::from_le_bytes(pair).to_f32()).collect(),
        Stored::BF16 => pairs().map(|pair| bf16::from_le_bytes(pair).to_f32()).collect(),
        _ => return None,
    })
}
