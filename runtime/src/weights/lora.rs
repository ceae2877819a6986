//! Low-rank updates of weights (LoRA, arXiv:2106.09685) as files of `diffusers`, PEFT and kohya-ss hold them, added to a model's
//! weights as these are read: `W + scale * alpha / rank * up * down`.

mod adapter;
mod names;
mod request;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use half::{bf16, f16};
use safetensors::{Dtype as Stored, SafeTensors};

use super::WeightData;
use crate::files as storage;
use crate::files::header::{damaged, explain};
use crate::graph::Dtype;
use crate::weights::{Bytes, Names, Run};
use crate::{Error, Result};
use adapter::Adapter;
use names::{Part, Stem, candidates, part};
pub(crate) use request::LoraRequest;

/// What is added to weights as they are read.
pub(super) trait Merge: std::fmt::Debug + Send + Sync {
    /// The rows of a weight, which are this run of all, with their update, in single precision; as they are where
    /// the weight has none.
    fn merged(&self, weight: WeightData, run: Run) -> std::result::Result<WeightData, String>;

    /// Whether a tensor is updated.
    fn updates(&self, name: &str) -> bool;
}

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
    /// Whether the factor is over the square root of the rank (rsLoRA, arXiv:2312.03732).
    rank_stabilized: bool,
    /// Whether the weight is stored by its inputs, `[inputs, outputs]`.
    transposed: bool,
}

#[derive(Clone, Debug)]
struct Matrix {
    rows: usize,
    values: Vec<f32>,
}

impl Lora {
    /// The updates of a file, or of a folder of PEFT or `diffusers`, that are made to these tensors.
    ///
    /// # Errors
    /// When a file is damaged, has updates of another kind (DoRA, LoHa, LoKr), or such as no tensor fits.
    pub(super) fn open<'a>(
        path: &Path,
        scale: f32,
        stored: impl Iterator<Item = (&'a String, &'a [usize])> + Clone,
        renamed: &Names,
    ) -> Result<Self> {
        if !scale.is_finite() {
            let problem = format!("is to be added {scale} times");
            return Err(Error::weights(path, problem, "give a number, such as 0.8"));
        }
        let (file, adapter) = Adapter::find(path)?;
        let path = file.as_path();
        let mut read = read(path, adapter.as_ref())?;
        let layers = names::layers_per_block(stored.clone().map(|(name, _)| name.as_str()));
        let today: HashMap<String, Stem> =
            read.keys().flat_map(|stem| names::stored(stem, renamed)).collect();
        let mut updates = HashMap::new();
        for (name, shape) in stored {
            let Some(module) = name.strip_suffix(".weight") else { continue };
            let found = candidates(module, layers).into_iter().find(|stem| read.contains_key(stem));
            let Some(stem) = found.as_ref().or_else(|| today.get(name)) else { continue };
            let Some(update) = read.remove(stem) else { continue };
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
}

impl Merge for Lora {
    fn merged(&self, weight: WeightData, run: Run) -> std::result::Result<WeightData, String> {
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
        if !up.rows.is_multiple_of(run.of.max(1)) {
            return Err(place());
        }
        let rows = run.within(up.rows).len();
        let (rank, width) = (down.rows.max(1), (values.len() / rows.max(1)).max(1));
        let up = &up.values[run.within(up.values.len())];
        for (row, factors) in values.chunks_exact_mut(width).zip(up.chunks_exact(rank)) {
            for (factor, inputs) in factors.iter().zip(down.values.chunks_exact(width)) {
                row.iter_mut().zip(inputs).for_each(|(x, input)| *x += factor * input);
            }
        }
        let bytes = Bytes::memory(values.iter().flat_map(|x| x.to_le_bytes()).collect());
        Ok(WeightData { dtype: Dtype::F32, bytes, ..weight })
    }

    fn updates(&self, name: &str) -> bool {
        self.updates.contains_key(name)
    }
}

impl Update {
    /// The update times its factor, which its upper half then has.
    fn scaled(mut self, scale: f32) -> Self {
        let rank = self.down.as_ref().map_or(1, |down| down.rows).max(1) as f32;
        let share = if self.rank_stabilized { rank.sqrt() } else { rank };
        let factor = scale * self.alpha.map_or(1.0, |alpha| alpha / share);
        if let Some(up) = &mut self.up {
            up.values.iter_mut().for_each(|x| *x *= factor);
        }
        self
    }

    /// The update, whose product has as many rows and columns as the weight.
    fn fitting(mut self, shape: &[usize]) -> std::result::Result<Self, String> {
        let (Some(down), Some(up)) = (&self.down, &self.up) else {
            return Err("has one of its two matrices alone".to_owned());
        };
        let elements: usize = shape.iter().product();
        let outputs = shape.first().copied().unwrap_or_default();
        let inputs = elements.checked_div(outputs).unwrap_or_default();
        let fits = |down: &Matrix, up: &Matrix| {
            up.rows == outputs
                && up.values.len() == outputs * down.rows
                && down.values.len() == down.rows * inputs
        };
        if self.transposed {
            // The field is one for all modules, of which some may be stored by their outputs nevertheless.
            let turned = (up.transposed(), down.transposed());
            if fits(&turned.0, &turned.1) {
                (self.down, self.up) = (Some(turned.0), Some(turned.1));
                return Ok(self);
            }
        }
        if !fits(down, up) {
            let (rank, wide) = (down.rows, down.values.len() / down.rows.max(1));
            return Err(format!("is {} by {wide} of rank {rank}, the weight {outputs} by {inputs}", up.rows));
        }
        Ok(self)
    }
}

impl Matrix {
    fn transposed(&self) -> Self {
        let columns = self.values.len() / self.rows.max(1);
        let column = |column: usize| self.values.iter().skip(column).step_by(columns.max(1)).copied();
        Self { rows: columns, values: (0..columns).flat_map(column).collect() }
    }
}

/// The updates of a file by the modules that it names; what there is to know of the adapter stands beside it or within.
fn read(path: &Path, adapter: Option<&Adapter>) -> Result<BTreeMap<Stem, Update>> {
    let bytes = storage::read(path).map_err(|error| Error::io(path, error))?;
    let broken = |error| damaged(path, explain(&error, &bytes));
    let tensors = SafeTensors::deserialize(&bytes).map_err(broken)?;
    let (_, metadata) = SafeTensors::read_metadata(&bytes).map_err(broken)?;
    let within = metadata.metadata().as_ref().and_then(|fields| fields.get("lora_adapter_metadata"));
    let within = within.map(|text| Adapter::of_components(path, text)).transpose()?.unwrap_or_default();
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
        let component = stem.split_once('.').and_then(|(root, inner)| Some((within.get(root)?, inner)));
        let said = component.or(adapter.map(|adapter| (adapter, stem.as_str())));
        let alpha = said.and_then(|(adapter, module)| adapter.alpha(module));
        let settings = said.map(|(adapter, _)| (adapter.rank_stabilized, adapter.transposed));
        let rows = tensor.shape().first().copied().unwrap_or(1);
        if let (Part::Down, Some((adapter, module))) = (part, said)
            && let Some(rank) = adapter.rank(module).filter(|rank| *rank != rows)
        {
            let problem = format!("tensor `{name}` has rank {rows}, its configuration {rank}");
            return Err(Error::weights(path, problem, "take both from one adapter"));
        }
        let update = updates.entry(stem).or_default();
        update.alpha = update.alpha.or(alpha);
        (update.rank_stabilized, update.transposed) = settings.unwrap_or_default();
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
