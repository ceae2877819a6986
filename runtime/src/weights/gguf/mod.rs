//! The tensors of GGUF files under the checkpoint's names, each with what the converter did to it undone.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Weak};

mod rows;

use rows::{RowOrder, reorder, unpack};

use super::{BlockQuantized, Bytes, WeightData};
use crate::gguf::architectures::Change;
use crate::gguf::file::{File, Tensor};
use crate::gguf::types::Form;
use crate::gguf::{Gguf, config};
use crate::{Dtype, Result};

/// Tensors that the configuration stands for, and no weight.
const NOT_WEIGHTS: [&str; 3] = ["rope_freqs.weight", "rope_factors_long.weight", "rope_factors_short.weight"];

/// All tensors of a checkpoint.
#[derive(Clone, Debug)]
pub struct Tensors {
    place: PathBuf,
    files: Vec<Arc<File>>,
    entries: HashMap<String, Entry>,
    /// Whether what is quantized is given in single precision.
    dequantize: bool,
    /// What was unpacked and is still held, so that several graphs of one model share it.
    unpacked: Arc<Mutex<HashMap<Place, Weak<BlockQuantized>>>>,
}

/// Where a weight is: a tensor of a file, or one of the experts that it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Place {
    file: usize,
    tensor: usize,
    /// Which one.
    expert: usize,
    /// Of how many.
    experts: usize,
}

/// One tensor of the checkpoint.
#[derive(Clone, Debug)]
struct Entry {
    place: Place,
    /// As the checkpoint has it.
    shape: Vec<usize>,
    undo: Option<Undo>,
}

/// More experts than any model has.
const MOST_EXPERTS: usize = 1 << 12;

/// How a change of the converter is undone.
#[derive(Clone, Copy, Debug)]
enum Undo {
    Order(RowOrder),
    MinusOne,
    Transpose,
    /// The logarithm of what is negative.
    LogOfNegative,
}

impl Tensors {
    pub(super) fn of(gguf: &Gguf) -> Result<Self> {
        let names = Names::of(gguf);
        let mut entries = HashMap::new();
        let mut seen = HashSet::new();
        for (file, content) in gguf.files.iter().enumerate() {
            for (index, tensor) in content.tensors.iter().enumerate() {
                if !seen.insert(&tensor.name) {
                    return Err(gguf.wrong(format!("has tensor `{}` in two shards", tensor.name)));
                }
                if NOT_WEIGHTS.contains(&tensor.name.as_str()) {
                    continue;
                }
                let (shape, undo) = undone(gguf, tensor)?;
                let place = Place { file, tensor: index, expert: 0, experts: 1 };
                let entry = Entry { place, shape, undo };
                names.add(&tensor.name, entry, &mut entries);
            }
        }
        Ok(Self {
            place: gguf.path().to_owned(),
            files: gguf.files.clone(),
            entries,
            dequantize: false,
            unpacked: Arc::default(),
        })
    }

    /// The same with what is quantized in single precision, which no kernel rounds.
    #[must_use]
    pub fn dequantized(self) -> Self {
        Self { dequantize: true, ..self }
    }

    /// Where the tensors come from, for messages.
    pub fn place(&self) -> &Path {
        &self.place
    }

    /// The names of all tensors, in no order.
    pub fn names(&self) -> impl Iterator<Item = &String> {
        self.entries.keys()
    }

    /// The bytes of all tensors by the files' element types.
    pub(crate) fn stored_types(&self) -> BTreeMap<String, u64> {
        let mut types = BTreeMap::new();
        for tensor in self.files.iter().flat_map(|file| &file.tensors) {
            *types.entry(tensor.kind.name.to_owned()).or_default() += tensor.length as u64;
        }
        types
    }

    pub(crate) fn shapes(&self) -> impl Iterator<Item = &Vec<usize>> {
        self.entries.values().map(|entry| &entry.shape)
    }

    /// A tensor's shape.
    pub fn shape(&self, name: &str) -> Option<&[usize]> {
        self.entries.get(name).map(|entry| entry.shape.as_slice())
    }

    /// The bytes of all tensors.
    pub fn size(&self) -> u64 {
        self.files.iter().flat_map(|file| &file.tensors).map(|tensor| tensor.length as u64).sum()
    }

    /// A tensor: where it lies in the file where it can be read as it is, else in memory.
    pub(crate) fn locate(&self, name: &str) -> Result<WeightData, String> {
        let entry = self.entries.get(name).ok_or_else(|| format!("tensor `{name}` is missing"))?;
        let (dtype, bytes) = self.read(entry).map_err(|problem| format!("tensor `{name}` {problem}"))?;
        let bytes = match (self.dequantize, &bytes) {
            (true, Bytes::Quantized(_)) => {
                Bytes::memory(bytes.read().map_err(|error| error.to_string())?.into_owned())
            }
            _ => bytes,
        };
        Ok(WeightData { dtype, shape: entry.shape.clone(), stored_as: name.to_owned(), bytes })
    }

    fn read(&self, entry: &Entry) -> Result<(Dtype, Bytes), String> {
        let (file, tensor) = self.tensor(entry.place);
        let bytes = self.bytes(entry.place);
        match (&tensor.kind.form, entry.undo) {
            (Form::Refused, _) => {
                let kind = tensor.kind.name;
                Err(format!(
                    "is of type {kind}, which is not read: take a file of another type, such as Q4_K_M"
                ))
            }
            (Form::Plain(dtype), None) => {
                let offset = tensor.offset + entry.place.expert * bytes.len();
                let found = match offset % dtype.size() {
                    0 => Bytes::File {
                        path: file.path.clone(),
                        offset: offset as u64,
                        length: bytes.len() as u64,
                    },
                    _ => Bytes::memory(bytes.to_vec()),
                };
                Ok((*dtype, found))
            }
            (Form::Plain(dtype), Some(Undo::Order(order))) => {
                // A vector's rows are its elements.
                let row = if tensor.shape.len() == 1 { 1 } else { row_length(tensor) };
                Ok((*dtype, Bytes::memory(reorder(bytes, row * dtype.size(), order))))
            }
            (Form::Blocks { .. }, None | Some(Undo::Order(_))) => {
                Ok((Dtype::F32, Bytes::Quantized(self.unpacked(entry)?)))
            }
            (_, Some(undo)) => {
                let mut values = self.values(entry)?;
                match undo {
                    Undo::MinusOne => values.iter_mut().for_each(|value| *value -= 1.0),
                    Undo::LogOfNegative => values.iter_mut().for_each(|value| *value = (-*value).ln()),
                    _ => values = transposed(&values, row_length(tensor)),
                }
                Ok((Dtype::F32, Bytes::memory(values.iter().flat_map(|x| x.to_le_bytes()).collect())))
            }
        }
    }

    fn tensor(&self, place: Place) -> (&File, &Tensor) {
        let file = &self.files[place.file];
        (file, &file.tensors[place.tensor])
    }

    fn bytes(&self, place: Place) -> &[u8] {
        let (file, tensor) = self.tensor(place);
        let length = tensor.length / place.experts;
        &file.bytes(tensor)[place.expert * length..][..length]
    }

    fn unpacked(&self, entry: &Entry) -> Result<Arc<BlockQuantized>, String> {
        let known = self.unpacked.lock().ok().and_then(|known| known.get(&entry.place)?.upgrade());
        if let Some(known) = known {
            return Ok(known);
        }
        let (_, tensor) = self.tensor(entry.place);
        let columns = row_length(tensor);
        let rows = tensor.shape.iter().product::<usize>() / columns / entry.place.experts;
        let order = match entry.undo {
            Some(Undo::Order(_)) if tensor.shape.len() == 1 => {
                return Err(format!("is a vector of type {}", tensor.kind.name));
            }
            Some(Undo::Order(order)) => Some(order),
            _ => None,
        };
        let blocks = Arc::new(unpack(tensor.kind, self.bytes(entry.place), [rows, columns], order)?);
        if let Ok(mut known) = self.unpacked.lock() {
            known.insert(entry.place, Arc::downgrade(&blocks));
        }
        Ok(blocks)
    }

    /// The values in single precision, as they are stored.
    fn values(&self, entry: &Entry) -> Result<Vec<f32>, String> {
        let bytes = self.bytes(entry.place);
        Ok(match self.tensor(entry.place).1.kind.form {
            Form::Plain(dtype) => dtype.decoded(bytes),
            _ => self.unpacked(entry)?.dequantize().map_err(|error| error.to_string())?,
        })
    }
}

fn row_length(tensor: &Tensor) -> usize {
    tensor.shape.last().copied().unwrap_or(1)
}

/// Rows of so many values as columns.
fn transposed(values: &[f32], columns: usize) -> Vec<f32> {
    let rows = values.len() / columns;
    (0..columns).flat_map(|column| (0..rows).map(move |row| values[row * columns + column])).collect()
}

/// A tensor's shape in the checkpoint, and how it comes to be as there.
fn undone(gguf: &Gguf, tensor: &Tensor) -> Result<(Vec<usize>, Option<Undo>)> {
    let mut shape = tensor.shape.clone();
    let change = gguf.architecture.changes.iter().find(|(ending, _)| tensor.name.ends_with(ending));
    let Some((_, change)) = change else { return Ok((shape, None)) };
    // A vector's rows are its elements.
    let rows = shape[0];
    let halves = |heads: u64| {
        let heads = heads as usize;
        RowOrder { outer: heads, first: 2, second: rows / heads.max(1) / 2, inner: 1 }
    };
    let order = match change {
        Change::PlusOne => return Ok((shape, Some(Undo::MinusOne))),
        Change::Transposed => {
            shape.reverse();
            return Ok((shape, Some(Undo::Transpose)));
        }
        Change::Flattened => {
            if shape.len() == 1 {
                shape.insert(0, 1);
            }
            return Ok((shape, None));
        }
        Change::Squeezed => {
            if shape.len() == 2 {
                shape.insert(1, 1);
            }
            return Ok((shape, None));
        }
        Change::Shaped => return Ok((vec![shape.iter().product()], None)),
        Change::NegativeExp => return Ok((shape, Some(Undo::LogOfNegative))),
        Change::NegativeExpColumn => return Ok((vec![shape.iter().product()], Some(Undo::LogOfNegative))),
        Change::RotaryQueries => halves(config::heads(gguf)?),
        Change::RotaryKeys => halves(config::kv_heads(gguf)?),
        Change::SplitHeads => {
            let heads = config::heads(gguf)? as usize;
            RowOrder { outer: 1, first: heads, second: 3, inner: rows / heads.max(1) / 3 }
        }
    };
    if order.rows() != Some(rows) {
        let problem = format!("tensor `{}` has {rows} rows, which its heads do not divide", tensor.name);
        return Err(gguf.wrong(problem));
    }
    Ok((shape, Some(Undo::Order(order))))
}

/// The checkpoint's names by the file's.
struct Names(HashMap<&'static str, &'static str>);

impl Names {
    fn of(gguf: &Gguf) -> Self {
        Self(gguf.architecture.tensors.iter().copied().flatten().copied().collect())
    }

    /// Adds a tensor under its name, or under those of all experts that it holds; under its own where it has no other.
    fn add(&self, name: &str, entry: Entry, entries: &mut HashMap<String, Entry>) {
        if let Some(found) = self.named(name) {
            entries.insert(found, entry);
            return;
        }
        let (stem, ending) = match name.rsplit_once('.') {
            Some((stem, ending @ ("weight" | "bias"))) => (stem, Some(ending)),
            _ => (name, None),
        };
        let found = self.named(stem);
        let named = |stem: &str| ending.map_or_else(|| stem.to_owned(), |ending| format!("{stem}.{ending}"));
        match found {
            None => _ = entries.insert(name.to_owned(), entry),
            Some(found) if found.contains("{}") && entry.shape.len() > 1 => {
                let experts = entry.shape[0].min(MOST_EXPERTS);
                for expert in 0..experts {
                    let place = Place { expert, experts: entry.shape[0], ..entry.place };
                    let entry = Entry { place, shape: entry.shape[1..].to_vec(), ..entry };
                    entries.insert(named(&found.replace("{}", &expert.to_string())), entry);
                }
            }
            Some(found) => _ = entries.insert(named(&found), entry),
        }
    }

    /// What a name stands for, with the number of its layer.
    fn named(&self, name: &str) -> Option<String> {
        match name.strip_prefix("blk.").and_then(|rest| rest.split_once('.')) {
            Some((layer, rest)) => {
                self.0.get(format!("blk.{{}}.{rest}").as_str()).map(|found| found.replacen("{}", layer, 1))
            }
            None => self.0.get(name).map(|found| (*found).to_owned()),
        }
    }
}
