//! Where a model's weights are: byte ranges of `safetensors` files, or the weight rule of the test cases.

mod blocks;
mod decoded;
mod entry;
mod files;
mod forms;
#[cfg(not(target_family = "wasm"))]
mod gguf;
#[cfg(target_family = "wasm")]
#[path = "gguf/absent.rs"]
mod gguf;
mod lora;
mod names;
pub(crate) mod pages;
mod places;
pub(crate) mod published;
mod quantized;
pub mod rule;
mod single;
mod survey;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod unexpected;

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use blocks::{BlockQuantized, OUTER, Zeros};
pub(crate) use files::NAMES as FILE_NAMES;
pub use files::{Entry, Files};
pub use gguf::Tensors;
pub(crate) use lora::LoraRequest;
pub use names::Names;
pub(crate) use names::Run;
use names::Shapes;
pub use pages::Buffer;

pub use crate::codebook::Codebook;
use crate::graph::{Dtype, Weight};
use crate::hub::Checkpoint;
use crate::{Error, Result};

/// The weights of one checkpoint.
#[derive(Clone, Debug)]
pub enum Weights {
    /// `model.safetensors` or its shards.
    Files(Files),
    /// A GGUF file or its shards.
    Gguf(Tensors),
    /// No file: the weight rule gives every parameter; names and shapes are those of the reference model.
    Rule(BTreeMap<String, Vec<usize>>),
}

/// The stored tensor of a weight: dtype, shape and where its bytes are, as the header of a `safetensors` file has them.
#[derive(Clone, Debug, PartialEq)]
pub struct WeightData {
    /// The element type it is stored in.
    pub dtype: Dtype,
    /// Its shape.
    pub shape: Vec<usize>,
    /// The name it is stored under.
    pub stored_as: String,
    /// Its bytes.
    pub bytes: Bytes,
}

/// The bytes of a weight.
#[derive(Clone, Debug, PartialEq)]
pub enum Bytes {
    /// A range of a file, whose path has no symbolic links left.
    File {
        /// The file.
        path: PathBuf,
        /// The first byte.
        offset: u64,
        /// The number of bytes.
        length: u64,
    },
    /// In memory, little-endian.
    Memory(Arc<Buffer>),
    /// Codes of a few bits with their scales; [`WeightData::dtype`] is then the type that they stand for.
    Quantized(Arc<BlockQuantized>),
}

impl Bytes {
    /// These bytes, in memory.
    pub fn memory(bytes: Vec<u8>) -> Self {
        Self::Memory(Arc::new(bytes.into()))
    }

    /// What is in memory in huge pages, where the system has some to give, as that which lives as long as a model.
    pub(crate) fn in_huge_pages(self) -> Self {
        match self {
            Self::Memory(bytes) => bytes.in_huge_pages().into(),
            other => other,
        }
    }

    /// How many there are.
    pub fn length(&self) -> u64 {
        match self {
            Self::File { length, .. } => *length,
            Self::Memory(bytes) => bytes.len() as u64,
            Self::Quantized(blocks) => blocks.size(),
        }
    }

    /// All of them; of what is quantized, the values in single precision.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn read(&self) -> Result<Cow<'_, [u8]>> {
        match self {
            Self::File { path, offset, length } => {
                let bytes = crate::files::range(path, *offset, *length);
                bytes.map(Cow::Owned).map_err(|e| Error::io(path, e))
            }
            Self::Memory(bytes) => Ok(Cow::Borrowed(bytes)),
            Self::Quantized(blocks) => {
                Ok(Cow::Owned(blocks.dequantize()?.iter().flat_map(|x| x.to_le_bytes()).collect()))
            }
        }
    }

    /// These bytes of a file and those that follow them there; nothing in memory where they do not.
    pub(crate) fn followed_by(self, other: Self) -> Self {
        match (self, other) {
            (Self::File { path, offset, length }, Self::File { path: next, offset: start, length: more })
                if path == next && start == offset + length =>
            {
                Self::File { path, offset, length: length + more }
            }
            _ => Self::memory(vec![]),
        }
    }

    /// Those of some rows.
    pub(crate) fn part(self, run: Run) -> Self {
        match self {
            Self::File { path, offset, length } => {
                let unit = length / run.of.max(1) as u64;
                Self::File {
                    path,
                    offset: offset + run.first as u64 * unit,
                    length: run.length as u64 * unit,
                }
            }
            Self::Memory(bytes) => Self::memory(bytes[run.within(bytes.len())].to_vec()),
            Self::Quantized(blocks) => Self::Quantized(Arc::new(blocks.rows(run))),
        }
    }
}

impl From<Buffer> for Bytes {
    fn from(bytes: Buffer) -> Self {
        Self::Memory(Arc::new(bytes))
    }
}

/// Why a weight cannot be used.
enum Problem {
    /// It is missing or has another shape.
    Misfit(String),
    /// Its element type is not read.
    Dtype(String),
    /// Its tensors are not what `quantization_config` says.
    Quantized(String),
}

impl Weights {
    /// The weights of a checkpoint: of its GGUF file where it was opened by one, else of its `safetensors` files.
    ///
    /// # Errors
    /// As [`Files::open`].
    pub fn open(checkpoint: &Checkpoint) -> Result<Self> {
        match checkpoint.gguf() {
            Some(gguf) => Tensors::of(gguf).map(Self::Gguf),
            None => Files::open(checkpoint).map(Self::Files),
        }
    }

    /// The same weights with low-rank updates (LoRA) of a file, or of a folder of PEFT, added, `scale` times.
    ///
    /// # Errors
    /// When a file is damaged, the adapter is of a kind that is not read, or names modules that are not there or do not fit, or the
    /// weights are no floating-point numbers in `safetensors` files.
    pub fn with_lora(self, path: &Path, scale: f32, names: &Names) -> Result<Self> {
        match self {
            Self::Files(files) => files.with_lora(path, scale, names).map(Self::Files),
            Self::Gguf(_) | Self::Rule(_) => {
                let problem = "are not in safetensors files, to which low-rank updates are added";
                Err(Error::weights(self.place(), problem, "open the checkpoint as it was trained"))
            }
        }
    }

    /// Finds all weights of a graph; every one that is missing or does not fit is named at once.
    ///
    /// # Errors
    /// When a weight is missing, has another shape or an element type that is not floating point.
    pub fn locate(&self, wanted: &[Weight], names: &Names) -> Result<Vec<WeightData>> {
        let mut found = Vec::with_capacity(wanted.len());
        let mut problems = vec![];
        if cfg!(target_family = "wasm") {
            crate::files::plan(self.places(wanted, names));
        }
        for located in self.find_all(wanted, names) {
            match located {
                Ok(located) => found.push(located),
                Err(problem) => problems.push(problem),
            }
        }
        if problems.is_empty() {
            return Ok(found);
        }
        let help = match (
            problems.iter().any(|problem| matches!(problem, Problem::Misfit(_))),
            problems.iter().any(|problem| matches!(problem, Problem::Quantized(_))),
        ) {
            (false, false) => {
                "config.json does not say how the weights are quantized: add its `quantization_config`, or load the \
                  checkpoint with the reference in float32 and save it with `save_pretrained`"
            }
            (false, true) => {
                "`quantization_config` and the weights must be of one checkpoint: fetch both again, or dequantize it with \
                  the reference and save it with `save_pretrained`"
            }
            _ => {
                "config.json and the weights must be of one checkpoint, and its `architectures` must name the class \
                  that was saved; choose another head otherwise"
            }
        };
        let text = |(Problem::Misfit(text) | Problem::Dtype(text) | Problem::Quantized(text))| text;
        let problems: Vec<String> = problems.into_iter().map(text).collect();
        let shown = problems.len().min(5);
        let more = match problems.len() - shown {
            0 => String::new(),
            more => format!("; and {more} more"),
        };
        Err(Error::weights(self.place(), format!("{}{more}", problems[..shown].join("; ")), help))
    }

    /// The names of the stored tensors that a graph does not read, in order, without those that the reference ignores and
    /// those that the graph names as `unused`, with `*` for any piece.
    pub fn unread(&self, read: &[WeightData], unused: &[String], names: &Names) -> Vec<String> {
        let unused: Vec<String> = unused.iter().flat_map(|name| names::candidates(name, names)).collect();
        let modules: HashSet<&str> = match self {
            Self::Files(files) => read.iter().filter_map(|weight| files.module(&weight.stored_as)).collect(),
            Self::Gguf(_) | Self::Rule(_) => HashSet::new(),
        };
        let of_read = |name: &str| match self {
            Self::Files(files) => files.module(name).is_some_and(|module| modules.contains(module)),
            Self::Gguf(_) | Self::Rule(_) => false,
        };
        let behind: Vec<String> =
            read.iter().flat_map(|weight| names::joined_behind(&weight.stored_as, names)).collect();
        let read = read.iter().map(|weight| &weight.stored_as);
        let read: HashSet<&str> = read.chain(&behind).map(String::as_str).collect();
        let mut all: Vec<&String> = match self {
            Self::Files(files) => files.names().collect(),
            Self::Gguf(tensors) => tensors.names().collect(),
            Self::Rule(parameters) => parameters.keys().collect(),
        };
        all.retain(|name| {
            !read.contains(name.as_str()) && !of_read(name) && !unexpected::is_ignored(name, &unused, names)
        });
        all.sort_unstable();
        all.into_iter().cloned().collect()
    }

    /// Refuses tensors that nothing reads although they belong to a module or a list of layers that is read: the model
    /// that was saved computes more than this one would.
    ///
    /// # Errors
    /// Names the tensors.
    pub fn expect_read(&self, unread: &[String], read: &[WeightData]) -> Result<()> {
        let beside = unexpected::beside(unread, read);
        if beside.is_empty() {
            return Ok(());
        }
        let shown: Vec<_> = beside.iter().take(5).map(|name| format!("`{name}`")).collect();
        let more = match beside.len() - shown.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let problem = format!(
            "holds {}{more}, which no part of the model that config.json describes reads: the numbers would be wrong",
            shown.join(", ")
        );
        let help = "config.json and the weights must be of one checkpoint; names that the reference ignores as well \
                    belong into `weights: {ignore_unexpected: ..}` of the spec";
        Err(Error::weights(self.place(), problem, help))
    }

    /// The bytes of all weights.
    pub fn size(&self) -> u64 {
        match self {
            Self::Files(files) => files.size(),
            Self::Gguf(tensors) => tensors.size(),
            Self::Rule(parameters) => {
                parameters.values().map(|s| 4 * s.iter().product::<usize>() as u64).sum()
            }
        }
    }

    /// How many tensors there are, and how many elements these have together.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let sum = |shapes: &mut dyn Iterator<Item = &Vec<usize>>| {
            shapes.fold((0, 0_usize), |(count, sum), shape| {
                (count + 1, sum.saturating_add(shape.iter().fold(1, |product, n| product.saturating_mul(*n))))
            })
        };
        match self {
            Self::Files(files) => files.counts(),
            Self::Gguf(tensors) => sum(&mut tensors.shapes()),
            Self::Rule(parameters) => sum(&mut parameters.values()),
        }
    }

    pub(crate) fn place(&self) -> &Path {
        match self {
            Self::Files(files) => files.place(),
            Self::Gguf(tensors) => tensors.place(),
            Self::Rule(_) => Path::new("case.json"),
        }
    }

    /// The name under which a parameter is stored.
    pub(crate) fn stored_as(&self, name: &str, names: &Names) -> Option<String> {
        let has = |name: &String| match self {
            Self::Files(files) if files.codes(name).is_some() => true,
            _ => self.shape(name).is_some(),
        };
        names::candidates(name, names).into_iter().find(has)
    }

    /// The shape of a parameter as it is stored.
    pub(crate) fn stored_shape(&self, name: &str, names: &Names) -> Option<Vec<usize>> {
        let stored = self.stored_as(name, names)?;
        self.shape(&stored).map(<[usize]>::to_vec)
    }

    /// The shape of the tensor that is stored under a name.
    fn shape(&self, name: &str) -> Option<&[usize]> {
        match self {
            Self::Files(files) => files.get(name).map(|_| files.shape(name)),
            Self::Gguf(tensors) => tensors.shape(name),
            Self::Rule(parameters) => parameters.get(name).map(Vec::as_slice),
        }
    }

    /// A weight that a file holds as some rows of a tensor.
    fn part(
        &self,
        weight: &Weight,
        names: &Names,
        shapes: &Shapes<'_>,
    ) -> Option<std::result::Result<WeightData, Problem>> {
        let (name, run) = names::fused(&weight.name, names).into_iter().find_map(|fused| {
            let run = fused.run(self.shape(&fused.name)?, &weight.shape, shapes)?;
            Some((fused.name, run))
        })?;
        let located = match self {
            Self::Files(files) => files.locate_part(&name, run),
            Self::Gguf(tensors) => {
                let of = |whole: WeightData| WeightData { bytes: whole.bytes.part(run), ..whole };
                tensors.locate(&name).map(of)
            }
            Self::Rule(_) => return None,
        };
        let narrowed = |rows: WeightData| WeightData { shape: weight.shape.clone(), ..rows };
        Some(located.map(narrowed).map_err(Problem::Dtype))
    }

    /// The tensors whose rows, one behind the other, are a weight.
    fn joined(&self, weight: &Weight, names: &Names) -> Option<Vec<String>> {
        let (rows, rest) = weight.shape.split_first()?;
        let fits = |pieces: &Vec<String>| {
            let own = |name: &String| match self.shape(name)?.split_first()? {
                (rows, width) if width == rest => Some(*rows),
                _ => None,
            };
            pieces.iter().map(own).try_fold(0_usize, |sum, rows| sum.checked_add(rows?)) == Some(*rows)
        };
        names::joined(&weight.name, names).into_iter().find(fits)
    }

    fn find(
        &self,
        weight: &Weight,
        names: &Names,
        shapes: &Shapes<'_>,
    ) -> std::result::Result<WeightData, Problem> {
        if let Some(quantized) = self.quantized(weight, names, shapes) {
            return quantized;
        }
        if self.stored_as(&weight.name, names).is_none() {
            if let Some(part) = self.part(weight, names, shapes) {
                return part;
            }
            if let (Self::Files(files), Some(pieces)) = (self, self.joined(weight, names)) {
                return files.locate_joined(&pieces, &weight.shape).map_err(Problem::Dtype);
            }
        }
        let stored_as = self.stored_as(&weight.name, names).ok_or_else(|| self.missing(weight, names))?;
        let stored = self.shape(&stored_as).unwrap_or_default();
        if stored != weight.shape {
            let asked = &weight.shape;
            let problem = format!("tensor `{stored_as}` is {stored:?}, but config.json asks for {asked:?}");
            return Err(Problem::Misfit(problem));
        }
        match self {
            Self::Files(files) if weight.integers => files.integers(&stored_as).map_err(Problem::Misfit),
            Self::Gguf(_) | Self::Rule(_) if weight.integers => Err(Problem::Misfit(format!(
                "tensor `{stored_as}` holds floating-point numbers, but is one of ids"
            ))),
            Self::Files(files) => files.locate(&stored_as).map_err(Problem::Dtype),
            Self::Gguf(tensors) => tensors.locate(&stored_as).map_err(Problem::Dtype),
            Self::Rule(parameters) => {
                let shape = parameters[&stored_as].clone();
                let values = rule::generate(&stored_as, &shape);
                let bytes = Bytes::memory(values.iter().flat_map(|x| x.to_le_bytes()).collect());
                Ok(WeightData { dtype: Dtype::F32, shape, stored_as, bytes })
            }
        }
    }
}
