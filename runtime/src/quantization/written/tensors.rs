//! The files of weights: which tensors each holds, and their bytes one tensor at a time.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::path::Path;
use std::thread;

use serde_json::{Map, Value as Json, json};

use super::Recipe;
use super::calibrated::Solved;
use super::folder::Folder;
use super::rounding::rounded;
use crate::quantization::gptq::Codes;
use crate::weights::{Bytes, Files, WeightData};
use crate::{Dtype, Error, Result};

/// The most bytes of one file; a larger checkpoint is in shards.
const SHARD: u64 = 5_000_000_000;

/// Which tensors are written as what.
pub(super) struct Plan {
    /// Weights that are quantized.
    pub quantized: BTreeSet<String>,
    /// Modules of linear layers that stay as they are.
    pub left: BTreeSet<String>,
    tensors: Vec<Tensor>,
}

/// A tensor of the new files: of which old one, its name, dtype and shape, and its bytes.
struct Tensor {
    of: String,
    name: String,
    dtype: String,
    shape: Vec<usize>,
    bytes: u64,
}

impl Plan {
    pub(super) fn new(files: &Files, linear: &BTreeSet<String>, recipe: Recipe) -> Self {
        let (mut quantized, mut left, mut tensors) = (BTreeSet::new(), BTreeSet::new(), vec![]);
        let names: BTreeSet<&String> = files.names().collect();
        for name in names {
            let Some((stored, shape)) = files.header(name) else { continue };
            let dtype = format!("{stored:?}");
            let module = name.strip_suffix(".weight");
            let float = ["F32", "F16", "BF16"].contains(&dtype.as_str());
            match (module, shape) {
                (Some(module), &[out, columns])
                    if linear.contains(name) && float && columns % recipe.group == 0 =>
                {
                    quantized.insert(name.clone());
                    let parts = parts(module, [out, columns], &dtype, stored.bitsize() / 8, recipe);
                    tensors.extend(parts.into_iter().map(|part| Tensor { of: name.clone(), ..part }));
                    continue;
                }
                (Some(module), [_, _]) if float && !name.contains("embed") => {
                    _ = left.insert(module.to_owned());
                }
                _ => {}
            }
            let bytes = shape.iter().product::<usize>() as u64 * stored.bitsize() as u64 / 8;
            let shape = shape.to_vec();
            tensors.push(Tensor { of: name.clone(), name: name.clone(), dtype, shape, bytes });
        }
        Self { quantized, left, tensors }
    }

    /// Writes all files of weights; how many bytes these have.
    pub(super) fn write(
        &self,
        files: &Files,
        recipe: Recipe,
        solved: &Solved,
        folder: &Folder,
    ) -> Result<u64> {
        let shards = self.shards();
        let mut map = Map::new();
        for (index, shard) in shards.iter().enumerate() {
            let name = match shards.len() {
                1 => "model.safetensors".to_owned(),
                count => format!("model-{:05}-of-{count:05}.safetensors", index + 1),
            };
            let path = folder.path(&name);
            self.file(shard, files, recipe, solved, &path)?;
            map.extend(shard.iter().map(|tensor| (tensor.name.clone(), Json::from(name.clone()))));
        }
        let bytes = self.tensors.iter().map(|tensor| tensor.bytes).sum();
        if shards.len() > 1 {
            let index = json!({"metadata": {"total_size": bytes}, "weight_map": map});
            folder.put("model.safetensors.index.json", &format!("{index:#}\n"))?;
        }
        Ok(bytes)
    }

    /// The tensors of each file; those of one module are in one.
    fn shards(&self) -> Vec<&[Tensor]> {
        let (mut shards, mut start, mut sum) = (vec![], 0, 0);
        for (index, tensor) in self.tensors.iter().enumerate() {
            let begins = index > start && self.tensors[index - 1].of != tensor.of;
            if begins && sum + tensor.bytes > SHARD {
                shards.push(&self.tensors[start..index]);
                (start, sum) = (index, 0);
            }
            sum += tensor.bytes;
        }
        shards.push(&self.tensors[start..]);
        shards
    }

    fn file(
        &self,
        shard: &[Tensor],
        files: &Files,
        recipe: Recipe,
        solved: &Solved,
        path: &Path,
    ) -> Result<()> {
        let failed = |e| Error::io(path, e);
        let mut into = BufWriter::new(File::create(path).map_err(failed)?);
        let header = header(shard);
        into.write_all(&(header.len() as u64).to_le_bytes()).map_err(failed)?;
        into.write_all(header.as_bytes()).map_err(failed)?;
        let mut index = 0;
        while let Some(tensor) = shard.get(index) {
            let parts = shard[index..].iter().take_while(|part| part.of == tensor.of).count();
            match (solved.get(&tensor.of), self.quantized.contains(&tensor.of)) {
                (Some(made), _) => into.write_all(&made.concat()).map_err(failed)?,
                (None, true) => {
                    let made = quantized(files, &tensor.of, recipe)?.concat();
                    into.write_all(&made).map_err(failed)?;
                }
                (None, false) => copy(files, &tensor.of, &mut into).map_err(failed)?,
            }
            index += parts;
        }
        let file = into.into_inner().map_err(|e| failed(e.into_error()))?;
        file.sync_all().map_err(failed)
    }
}

/// The tensors of a quantized module, in the order in which their bytes are made.
fn parts(module: &str, [out, columns]: [usize; 2], dtype: &str, size: usize, recipe: Recipe) -> Vec<Tensor> {
    let tensor = |leaf: &str, dtype: &str, shape: &[usize], size: usize| Tensor {
        of: String::new(),
        name: format!("{module}.{leaf}"),
        dtype: dtype.to_owned(),
        shape: shape.to_vec(),
        bytes: (shape.iter().product::<usize>() * size) as u64,
    };
    let groups = columns / recipe.group;
    let mut parts = match recipe.bits {
        8 => vec![tensor("weight", "I8", &[out, columns], 1)],
        bits => vec![tensor("weight_packed", "I32", &[out, columns * bits / 32], 4)],
    };
    parts.push(tensor("weight_scale", dtype, &[out, groups], size));
    match recipe {
        Recipe { symmetric: true, .. } => {}
        Recipe { bits: 8, .. } => parts.push(tensor("weight_zero_point", "I8", &[out, groups], 1)),
        Recipe { bits, .. } => {
            parts.push(tensor("weight_zero_point", "I32", &[(out * bits).div_ceil(32), groups], 4));
        }
    }
    if recipe.bits != 8 {
        parts.push(tensor("weight_shape", "I64", &[2], 8));
    }
    parts
}

/// The bytes of a module's tensors, rounded to nearest, in the order of [`parts`].
fn quantized(files: &Files, name: &str, recipe: Recipe) -> Result<Vec<Vec<u8>>> {
    let refused =
        |problem: String| Error::weights(files.place(), problem, "look at what made it, or leave it out");
    let data: WeightData = files.locate(name).map_err(refused)?;
    let bytes = data.bytes.read()?;
    let made = all_rows(&bytes, data.dtype, recipe, data.shape[1]).ok_or_else(|| refused(finite(name)))?;
    Ok(packed(&made, &data, recipe))
}

/// What is wrong with a weight that has no codes.
pub(super) fn finite(name: &str) -> String {
    format!("tensor `{name}` holds what its dtype gives no finite scale")
}

/// The bytes of a weight's tensors, in the order of [`parts`].
pub(super) fn packed(made: &Codes, data: &WeightData, recipe: Recipe) -> Vec<Vec<u8>> {
    let [out, columns] = [data.shape[0], data.shape[1]];
    let (groups, middle) = (columns / recipe.group, 1_u8 << (recipe.bits - 1));
    let mut parts = vec![];
    parts.push(match recipe.bits {
        8 => made.codes.iter().map(|code| code ^ middle).collect(),
        // Rows of whole words: the first code is in the low bits of the first byte.
        _ => made.codes.chunks_exact(2).map(|pair| pair[0] | pair[1] << 4).collect(),
    });
    parts.push(data.dtype.encoded(&made.scales));
    match recipe {
        Recipe { symmetric: true, .. } => {}
        Recipe { bits: 8, .. } => parts.push(made.zeros.iter().map(|zero| zero ^ middle).collect()),
        Recipe { bits, .. } => parts.push(zero_points(&made.zeros, bits, [out, groups])),
    }
    if recipe.bits != 8 {
        parts.push([out as i64, columns as i64].iter().flat_map(|size| size.to_le_bytes()).collect());
    }
    parts
}

/// All rows, on all cores; none where a number is not finite.
fn all_rows(bytes: &[u8], dtype: Dtype, recipe: Recipe, columns: usize) -> Option<Codes> {
    let size = dtype.size();
    let rows = bytes.len() / (columns * size).max(1);
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let step = rows.div_ceil(threads).max(1) * columns * size;
    let pieces: Vec<Option<Codes>> = thread::scope(|scope| {
        let round = |part| move || rounded(&dtype.decoded(part), recipe, dtype);
        let started: Vec<_> = bytes.chunks(step.max(1)).map(|part| scope.spawn(round(part))).collect();
        started.into_iter().map(|thread| thread.join().ok().flatten()).collect()
    });
    let mut all = Codes::default();
    for piece in pieces {
        let piece = piece?;
        all.codes.extend(piece.codes);
        all.scales.extend(piece.scales);
        all.zeros.extend(piece.zeros);
    }
    Some(all)
}

/// Zero points `[out, groups]` packed along the outputs into words `[out · bits / 32, groups]`.
fn zero_points(zeros: &[u8], bits: usize, [out, groups]: [usize; 2]) -> Vec<u8> {
    let per_word = 32 / bits;
    let word = |at: usize| {
        let (row, group) = (at / groups * per_word, at % groups);
        let codes = (row..(row + per_word).min(out)).map(|row| u32::from(zeros[row * groups + group]));
        codes.enumerate().fold(0_u32, |word, (place, code)| word | code << (place * bits))
    };
    (0..out.div_ceil(per_word) * groups).flat_map(|at| word(at).to_le_bytes()).collect()
}

/// The header of a file; what follows it is aligned.
fn header(shard: &[Tensor]) -> String {
    let (mut header, mut end) = (Map::new(), 0);
    header.insert("__metadata__".to_owned(), json!({"format": "pt"}));
    for tensor in shard {
        let start = end;
        end += tensor.bytes;
        let entry = json!({"dtype": tensor.dtype, "shape": tensor.shape, "data_offsets": [start, end]});
        header.insert(tensor.name.clone(), entry);
    }
    let mut header = Json::Object(header).to_string();
    header.extend(std::iter::repeat_n(' ', header.len().next_multiple_of(8) - header.len()));
    header
}

/// A tensor as it is.
fn copy(files: &Files, name: &str, into: &mut impl Write) -> std::io::Result<()> {
    match files.place_of(name)? {
        Bytes::File { path, offset, length } => {
            let mut file = File::open(path)?;
            file.seek(SeekFrom::Start(offset))?;
            std::io::copy(&mut std::io::Read::take(file, length), into).map(|_| ())
        }
        Bytes::Memory(bytes) => into.write_all(&bytes),
        Bytes::Quantized(_) => Ok(()),
    }
}
