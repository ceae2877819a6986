//! The tensors of GGUF files under the checkpoint's names, each with what the converter did to it undone.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Weak};

mod blocks;
mod names;
mod rows;
mod splits;

use blocks::unpack;
use names::Names;
use rows::{RowOrder, Rows, turned};
use splits::{Found, Joined};

use super::{BlockQuantized, Bytes, WeightData};
use crate::gguf::architectures::Change;
use crate::gguf::file::{File, Tensor};
use crate::gguf::types::{Form, Kind};
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

/// How a change of the converter is undone.
#[derive(Clone, Debug)]
enum Undo {
    Order(RowOrder),
    Join(Arc<Joined>),
    MinusOne,
    /// The number that it is, of a list in the metadata.
    Listed(f32),
    /// So many rows of zeros before it.
    Behind(usize),
    Transpose,
    /// The logarithm of what is positive.
    Log,
    /// The logarithm of what is negative.
    LogOfNegative,
}

impl Tensors {
    pub(super) fn of(gguf: &Gguf) -> Result<Self> {
        let names = Names::of(gguf);
        let mut entries = HashMap::new();
        let mut seen = HashSet::new();
        let mut split = Found::default();
        // Layers of multi-token prediction come behind the others.
        let end = config::end_of_layers(gguf);
        for (file, content) in gguf.files.iter().enumerate() {
            for (index, tensor) in content.tensors.iter().enumerate() {
                if !seen.insert(&tensor.name) {
                    return Err(gguf.wrong(format!("has tensor `{}` in two shards", tensor.name)));
                }
                let number = tensor.name.strip_prefix("blk.").and_then(|rest| rest.split_once('.'));
                let number = number.and_then(|(number, _)| number.parse::<u64>().ok());
                let is_behind = end.zip(number).is_some_and(|(end, number)| number >= end);
                if is_behind || NOT_WEIGHTS.contains(&tensor.name.as_str()) {
                    continue;
                }
                let place = Place { file, tensor: index, expert: 0, experts: 1 };
                if split.take(gguf.architecture.splits, place, tensor) {
                    continue;
                }
                let (shape, undo) = undone(gguf, tensor)?;
                let entry = Entry { place, shape, undo };
                names.add(&tensor.name, entry, &mut entries);
            }
        }
        for (name, entry) in split.entries(gguf)?.into_iter().chain(listed(gguf)) {
            entries.entry(name).or_insert(entry);
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
        let (_, tensor) = self.tensor(entry.place);
        let bytes = self.bytes(entry.place);
        match (&tensor.kind.form, &entry.undo) {
            (_, Some(Undo::Listed(number))) => Ok((Dtype::F32, Bytes::memory(number.to_le_bytes().to_vec()))),
            (_, Some(Undo::Join(joined))) => self.join(entry.place, joined),
            (Form::Refused, _) => Err(refused(tensor.kind)),
            (Form::Plain(dtype), None) => Ok((*dtype, self.mapped(entry.place, *dtype))),
            (Form::Plain(dtype), Some(Undo::Order(order))) => {
                // A vector's rows are its elements.
                let row = if tensor.shape.len() == 1 { 1 } else { row_length(tensor) };
                let rows = Rows { parts: vec![bytes], length: row * dtype.size(), order };
                Ok((*dtype, Bytes::memory(rows.bytes())))
            }
            (Form::Blocks { .. }, None | Some(Undo::Order(_))) => {
                Ok((Dtype::F32, Bytes::Quantized(self.unpacked(entry)?)))
            }
            (_, Some(undo)) => {
                let mut values = self.values(entry)?;
                match undo {
                    Undo::MinusOne => values.iter_mut().for_each(|value| *value -= 1.0),
                    Undo::Log => values.iter_mut().for_each(|value| *value = value.ln()),
                    Undo::LogOfNegative => values.iter_mut().for_each(|value| *value = (-*value).ln()),
                    _ => {}
                }
                let columns = row_length(tensor);
                if let Undo::Behind(rows) = undo {
                    values.splice(..0, vec![0.0; rows * columns]);
                }
                let bytes = Dtype::F32.encoded(&values);
                Ok((
                    Dtype::F32,
                    Bytes::memory(match undo {
                        Undo::Transpose => turned(&bytes, [values.len() / columns, columns], 4),
                        _ => bytes,
                    }),
                ))
            }
        }
    }

    /// Numbers where they lie, if they may be read there.
    fn mapped(&self, place: Place, dtype: Dtype) -> Bytes {
        let (file, tensor) = self.tensor(place);
        let bytes = self.bytes(place);
        let offset = tensor.offset + place.expert * bytes.len();
        match offset % dtype.size() {
            0 => Bytes::File { path: file.path.clone(), offset: offset as u64, length: bytes.len() as u64 },
            _ => Bytes::memory(bytes.to_vec()),
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
        let (_, tensor) = self.tensor(entry.place);
        let columns = row_length(tensor);
        let rows = tensor.shape.iter().product::<usize>() / columns / entry.place.experts;
        let order = match &entry.undo {
            Some(Undo::Order(_)) if tensor.shape.len() == 1 => {
                return Err(format!("is a vector of type {}", tensor.kind.name));
            }
            Some(Undo::Order(order)) => order,
            _ => &RowOrder::Same,
        };
        let bytes = self.bytes(entry.place);
        self.shared(entry.place, || {
            let from = Rows { parts: vec![bytes], length: bytes.len() / rows.max(1), order };
            unpack(tensor.kind, &from, [rows, columns])
        })
    }

    /// What is unpacked of the tensors at a place; what a graph holds of them already, where one does.
    fn shared(
        &self,
        place: Place,
        unpack: impl FnOnce() -> Result<BlockQuantized, String>,
    ) -> Result<Arc<BlockQuantized>, String> {
        let known = self.unpacked.lock().ok().and_then(|known| known.get(&place)?.upgrade());
        if let Some(known) = known {
            return Ok(known);
        }
        let blocks = Arc::new(unpack()?);
        if let Ok(mut known) = self.unpacked.lock() {
            known.insert(place, Arc::downgrade(&blocks));
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

/// Tensors that are numbers of a list in the metadata; none of a file without other tensors.
fn listed(gguf: &Gguf) -> Vec<(String, Entry)> {
    let place = Place { file: 0, tensor: 0, expert: 0, experts: 1 };
    let file = gguf.files.first().filter(|file| !file.tensors.is_empty());
    let all =
        gguf.architecture.numbers.iter().filter_map(|listed| Some((listed, file?.numbers(listed.key)?)));
    all.flat_map(|(listed, numbers)| {
        numbers.into_iter().enumerate().map(move |(layer, number)| {
            let name = listed.name.replacen("{}", &layer.to_string(), 1);
            let undo = Some(Undo::Listed(number as f32));
            (name, Entry { place, shape: listed.shape.to_vec(), undo })
        })
    })
    .collect()
}

fn row_length(tensor: &Tensor) -> usize {
    tensor.shape.last().copied().unwrap_or(1)
}

fn refused(kind: &Kind) -> String {
    format!("is of type {}, which is not read: take a file of another type, such as Q4_K_M", kind.name)
}

/// A tensor's shape in the checkpoint, and how it comes to be as there.
fn undone(gguf: &Gguf, tensor: &Tensor) -> Result<(Vec<usize>, Option<Undo>)> {
    let mut shape = tensor.shape.clone();
    let change = gguf.architecture.changes.iter().find(|(ending, _)| tensor.name.ends_with(ending));
    let Some((_, change)) = change else { return Ok((shape, None)) };
    // A vector's rows are its elements.
    let rows = shape[0];
    let order = match change {
        Change::PlusOne => return Ok((shape, Some(Undo::MinusOne))),
        Change::BehindPadding if shape.len() < 2 => return Ok((shape, None)),
        Change::BehindPadding => {
            let rows = config::padding_rows(gguf) as usize;
            shape[0] = shape[0].saturating_add(rows);
            return Ok((shape, Some(Undo::Behind(rows))));
        }
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
            match shape[..] {
                [_, _] => shape.insert(1, 1),
                [1, _, _, _] => _ = shape.remove(0),
                _ => {}
            }
            return Ok((shape, None));
        }
        Change::Shaped => return Ok((vec![shape.iter().product()], None)),
        Change::NegativeExp => return Ok((shape, Some(Undo::LogOfNegative))),
        Change::NegativeExpHeads => {
            return Ok((vec![1, 1, shape.iter().product(), 1], Some(Undo::LogOfNegative)));
        }
        Change::ExpColumn => return Ok((vec![shape.iter().product()], Some(Undo::Log))),
        Change::NegativeExpColumn => return Ok((vec![shape.iter().product()], Some(Undo::LogOfNegative))),
        Change::RotaryQueries => RowOrder::halves(config::heads(gguf)? as usize, rows),
        Change::RotaryKeys => RowOrder::halves(config::kv_heads(gguf)? as usize, rows),
        Change::SplitHeads => {
            let (heads, groups) = (config::heads(gguf)? as usize, config::kv_heads(gguf)? as usize);
            RowOrder::grouped(groups, heads / groups.max(1), rows)
        }
    };
    let order = order.ok_or_else(|| {
        let name = &tensor.name;
        gguf.wrong(format!("tensor `{name}` has {rows} rows, which its heads do not divide"))
    })?;
    Ok((shape, Some(Undo::Order(order))))
}
