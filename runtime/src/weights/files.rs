//! `safetensors` files, single or sharded: their headers are read and checked, their data stays where it is.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use safetensors::Dtype as Stored;

use super::decoded::Decoded;
pub use super::entry::Entry;
use super::lora::{Lora, Merge};
use super::{Bytes, Names, Run, WeightData};
use crate::files as storage;
use crate::files::header;
use crate::graph::Dtype;
use crate::hub::Checkpoint;
use crate::weights::published::Published;
use crate::{Error, Result};

const SINGLE: &str = "model.safetensors";
const INDEX: &str = "model.safetensors.index.json";
const PICKLED: [&str; 2] = ["pytorch_model.bin", "open_clip_pytorch_model.bin"];

/// Single files and indices: of `transformers`, of `diffusers`, which also publishes 16-bit variants alone, and of `open_clip`.
pub(crate) const NAMES: [(&str, &str); 5] = [
    (SINGLE, INDEX),
    ("diffusion_pytorch_model.safetensors", "diffusion_pytorch_model.safetensors.index.json"),
    ("model.fp16.safetensors", "model.safetensors.index.fp16.json"),
    ("diffusion_pytorch_model.fp16.safetensors", "diffusion_pytorch_model.safetensors.index.fp16.json"),
    ("open_clip_model.safetensors", "open_clip_model.safetensors.index.json"),
];

/// The tensors of a checkpoint's weight files.
#[derive(Clone, Debug)]
pub struct Files {
    pub(super) place: PathBuf,
    pub(super) entries: HashMap<String, Entry>,
    /// How the weights are quantized.
    pub(super) published: Option<Arc<Published>>,
    pub(super) decoded: Decoded,
    /// Low-rank updates, one file after the other; behind pointers, which alone bring in what they are merged by.
    loras: Vec<Arc<dyn Merge>>,
}

/// The most bytes that are read into memory because they are not where engines can map them.
const MOST_COPIED: u64 = 1 << 30;

impl Files {
    /// Opens `model.safetensors`, or the shards that `model.safetensors.index.json` lists; where neither is there, the same of
    /// `diffusion_pytorch_model`, of 16-bit variants (`.fp16`), and of `open_clip_model`.
    ///
    /// # Errors
    /// When neither exists, a file is damaged, the index names a file outside the checkpoint, more than a gigabyte is
    /// not aligned to its elements' type, or the weights are quantized by a method that is not read.
    pub fn open(checkpoint: &Checkpoint) -> Result<Self> {
        let (place, entries) = Self::listed(checkpoint)?;
        let published = Published::of(checkpoint)?.map(Arc::new);
        let files = Self { place, entries, published, decoded: Decoded::default(), loras: vec![] };
        files.expect_codes()?;
        let apart = files.entries.iter().filter(|(_, entry)| !entry.is_aligned());
        let copied = apart.clone().map(|(_, entry)| entry.length).sum::<u64>();
        match apart.map(|(name, entry)| (name, entry.offset)).min_by_key(|(_, offset)| *offset) {
            Some((name, offset)) if copied > MOST_COPIED => {
                let problem =
                    format!("tensor `{name}` begins at byte {offset}, no multiple of its elements' size");
                let help = "save the checkpoint again with `save_pretrained`, which aligns tensors";
                Err(Error::weights(files.place, problem, help))
            }
            _ => Ok(files),
        }
    }

    /// The tensors of a pipeline's components, each under its component's name.
    fn of_pipeline(checkpoint: &Checkpoint, index: PathBuf) -> Result<(PathBuf, HashMap<String, Entry>)> {
        let mut all = HashMap::new();
        for name in Self::components(checkpoint)? {
            let (_, entries) = Self::listed(&checkpoint.component(&name))?;
            all.extend(entries.into_iter().map(|(tensor, entry)| (format!("{name}.{tensor}"), entry)));
        }
        Ok((index, all))
    }

    /// The components of a pipeline that have a configuration. The safety checker judges images and makes none; maps such as DiT's
    /// labels are no components.
    pub(super) fn components(checkpoint: &Checkpoint) -> Result<Vec<String>> {
        let config = checkpoint.json("config.json")?.unwrap_or_default();
        let listed = checkpoint.json("model_index.json")?.unwrap_or_default();
        let components = config.as_object().into_iter().flatten();
        let components = components.filter(|(name, value)| {
            value.is_object() && listed[name.as_str()].is_array() && *name != "safety_checker"
        });
        Ok(components.map(|(name, _)| name.clone()).collect())
    }

    pub(super) fn listed(checkpoint: &Checkpoint) -> Result<(PathBuf, HashMap<String, Entry>)> {
        if let Some(single) = checkpoint.single() {
            return super::single::listed(checkpoint, single);
        }
        let mut found = None;
        for (single, index) in NAMES {
            if let Some(path) = checkpoint.path(single)? {
                let mut entries = HashMap::new();
                read(&path, &mut entries)?;
                return Ok((path, entries));
            }
            found = checkpoint.path(index)?;
            if found.is_some() {
                break;
            }
        }
        let Some(index) = found else {
            if let Some(index) = checkpoint.path("model_index.json")? {
                return Self::of_pipeline(checkpoint, index);
            }
            let mut pickled = String::new();
            for name in PICKLED {
                if checkpoint.path(name)?.is_some() {
                    pickled = format!("; its {name} is not read: such files run code");
                }
            }
            let problem = format!("has neither {SINGLE} nor {INDEX}{pickled}");
            let help = "load the checkpoint with the reference and save it with `save_pretrained`, which writes \
                        safetensors";
            return Err(Error::weights(checkpoint.dir(), problem, help));
        };
        let mut entries = HashMap::new();
        for shard in shards(&index)? {
            let Some(path) = checkpoint.path(&shard)? else {
                let help = "fetch that file as well: every one that `weight_map` names is needed";
                return Err(Error::weights(index, format!("names {shard}, which is not there"), help));
            };
            read(&path, &mut entries)?;
        }
        Ok((index, entries))
    }

    /// Where the tensors come from, for messages.
    pub fn place(&self) -> &Path {
        &self.place
    }

    /// The names of all tensors, in no order.
    pub fn names(&self) -> impl Iterator<Item = &String> {
        self.entries.keys()
    }

    /// How many tensors there are, and how many elements these stand for together.
    pub(super) fn counts(&self) -> (usize, usize) {
        let elements = self.entries.values().map(|entry| {
            let stored = entry.shape.iter().fold(1_usize, |product, n| product.saturating_mul(*n));
            match (&self.published, entry.stored) {
                (Some(published), Stored::I32 | Stored::U8 | Stored::I8) => {
                    stored.saturating_mul(published.elements(entry.stored.bitsize()))
                }
                _ => stored,
            }
        });
        (self.entries.len(), elements.fold(0, usize::saturating_add))
    }

    /// One tensor's place.
    pub fn get(&self, name: &str) -> Option<&Entry> {
        self.entries.get(name)
    }

    /// The bytes of all tensors.
    pub fn size(&self) -> u64 {
        self.entries.values().map(|entry| entry.length).sum()
    }

    /// The bytes of all tensors by element type.
    pub(super) fn stored_types(&self) -> BTreeMap<String, u64> {
        let mut types = BTreeMap::new();
        for entry in self.entries.values() {
            *types.entry(format!("{:?}", entry.stored)).or_default() += entry.length;
        }
        types
    }

    /// The dtype and the shape of a tensor.
    pub(crate) fn header(&self, name: &str) -> Option<(Stored, &[usize])> {
        self.entries.get(name).map(|entry| (entry.stored, &entry.shape[..]))
    }

    /// All bytes of a tensor that is there.
    pub(crate) fn bytes(&self, name: &str) -> std::io::Result<Vec<u8>> {
        self.entries[name].read()
    }

    /// Where the bytes of a tensor that is there are: in memory where engines could not take them from the file.
    pub(crate) fn place_of(&self, name: &str) -> std::io::Result<Bytes> {
        let entry = &self.entries[name];
        Ok(match entry.is_aligned() {
            true if entry.change.is_none() => {
                Bytes::File { path: entry.path.clone(), offset: entry.offset, length: entry.length }
            }
            _ => Bytes::memory(entry.read()?),
        })
    }

    pub(super) fn shape(&self, name: &str) -> &[usize] {
        &self.entries[name].shape
    }

    pub(crate) fn locate(&self, name: &str) -> std::result::Result<WeightData, String> {
        self.locate_part(name, Run::WHOLE)
    }

    /// A table of whole numbers, in 64 bits.
    pub(super) fn integers(&self, name: &str) -> std::result::Result<WeightData, String> {
        let entry = &self.entries[name];
        let bytes = match entry.stored {
            Stored::I64 => self.place_of(name),
            Stored::I32 => entry.read().map(|narrow| Bytes::memory(widened(&narrow))),
            other => {
                return Err(format!("tensor `{name}` is {other:?}, but holds ids: I64 and I32 can be used"));
            }
        };
        let bytes = bytes.map_err(|e| format!("tensor `{name}` cannot be read: {e}"))?;
        Ok(WeightData { dtype: Dtype::I64, shape: entry.shape.clone(), stored_as: name.to_owned(), bytes })
    }

    /// The rows of several tensors, one behind the other: where they lie in a file so, or else in memory.
    pub(super) fn locate_joined(
        &self,
        pieces: &[String],
        shape: &[usize],
    ) -> std::result::Result<WeightData, String> {
        self.decoded.get(&pieces.join(" + "), || {
            let located = pieces.iter().map(|name| self.locate(name)).collect::<Result<Vec<_>, String>>()?;
            let Some((first, behind)) = located.split_first() else {
                return Err("no tensors are named that a weight consists of".to_owned());
            };
            if let Some(other) = behind.iter().find(|other| other.dtype != first.dtype) {
                return Err(format!(
                    "tensor `{}` is {}, but `{}`, whose rows belong to the same weight, is {}: store both in one type",
                    other.stored_as, other.dtype, first.stored_as, first.dtype
                ));
            }
            let one = located.iter().map(|piece| piece.bytes.clone()).reduce(Bytes::followed_by);
            if let Some(bytes @ Bytes::File { .. }) = one {
                return Ok(WeightData { shape: shape.to_vec(), bytes, ..first.clone() });
            }
            let mut all = vec![];
            for piece in &located {
                let wrong = |error| format!("tensor `{}` cannot be read: {error}", piece.stored_as);
                all.extend_from_slice(&piece.bytes.read().map_err(wrong)?);
            }
            Ok(WeightData { shape: shape.to_vec(), bytes: Bytes::memory(all), ..first.clone() })
        })
    }

    /// Some rows of a tensor.
    pub(super) fn locate_part(&self, name: &str, run: Run) -> std::result::Result<WeightData, String> {
        let entry = &self.entries[name];
        let dtype = match entry.stored {
            Stored::F32 => Dtype::F32,
            Stored::F16 => Dtype::F16,
            Stored::BF16 => Dtype::Bf16,
            other => return Err(format!("tensor `{name}` is {other:?}; F32, F16 and BF16 can be used")),
        };
        let located = || {
            let bytes = self.place_of(name).map_err(|e| format!("tensor `{name}` cannot be read: {e}"))?;
            let bytes = if run.of > 1 { bytes.part(run) } else { bytes };
            Ok(WeightData { dtype, shape: entry.shape.clone(), stored_as: name.to_owned(), bytes })
        };
        if !self.loras.iter().any(|lora| lora.updates(name)) {
            return located();
        }
        let merged = || self.loras.iter().try_fold(located()?, |weight, lora| lora.merged(weight, run));
        match run.of {
            1 => self.decoded.get(name, merged),
            // What holds several weights is merged piece by piece.
            _ => self.decoded.get(&format!("{name}#{}/{}", run.first, run.of), merged),
        }
    }

    /// Whether weights are not as files hold them: updates are added as they are read.
    pub(super) fn are_updated(&self) -> bool {
        !self.loras.is_empty()
    }

    /// The same tensors with low-rank updates of a file.
    pub(super) fn with_lora(mut self, path: &Path, scale: f32, names: &Names) -> Result<Self> {
        if self.published.is_some() {
            let problem = "are quantized: low-rank updates are added to floating-point numbers";
            return Err(Error::weights(self.place, problem, "open the checkpoint as it was trained"));
        }
        let stored = self.entries.iter().map(|(name, entry)| (name, &entry.shape[..]));
        let lora = Lora::open(path, scale, stored, names)?;
        self.loras.push(Arc::new(lora));
        // Clones without this update share what was merged before, which is no longer right here.
        self.decoded = Decoded::default();
        Ok(self)
    }
}

/// 32-bit integers in 64 bits.
fn widened(narrow: &[u8]) -> Vec<u8> {
    narrow
        .as_chunks::<4>()
        .0
        .iter()
        .flat_map(|bytes| i64::from(i32::from_le_bytes(*bytes)).to_le_bytes())
        .collect()
}

/// Whether a folder has no weights at all, of whatever name.
pub(super) fn is_without(checkpoint: &Checkpoint) -> bool {
    NAMES
        .iter()
        .flat_map(|(single, index)| [single, index])
        .all(|name| matches!(checkpoint.path(name), Ok(None)))
}

/// The shards' file names, checked to be plain names.
fn shards(index: &Path) -> Result<Vec<String>> {
    let text = storage::read(index).map_err(|e| Error::io(index, e))?;
    let help = "download the checkpoint again, or save it again with `save_pretrained`";
    let json: serde_json::Value = serde_json::from_slice(&text)
        .map_err(|e| Error::weights(index, format!("is not valid JSON: {e}"), help))?;
    let map = json.get("weight_map").and_then(|map| map.as_object());
    let map = map.ok_or_else(|| Error::weights(index, "has no `weight_map`", help))?;
    let mut shards = std::collections::BTreeSet::new();
    for (tensor, named) in map {
        let file = named.as_str().unwrap_or_default();
        let plain = !file.is_empty() && !file.contains(['/', '\\']) && file != ".." && !file.contains(':');
        if !plain {
            let problem =
                format!("tensor `{tensor}` is said to be in {named}, which is not a file of this folder");
            return Err(Error::weights(index, problem, "do not open it: no published checkpoint does this"));
        }
        shards.insert(file.to_owned());
    }
    Ok(shards.into_iter().collect())
}

/// Reads a file's header into `entries`.
pub(super) fn read(path: &Path, entries: &mut HashMap<String, Entry>) -> Result<()> {
    // Engines map the file themselves and follow no links out of its folder, so they get its real place.
    let real = storage::real(path).map_err(|e| Error::io(path, e))?;
    let (start, metadata) = header::read(&real, path)?;
    for (name, tensor) in metadata.tensors() {
        let (from, to) = tensor.data_offsets;
        let entry = Entry {
            path: real.clone(),
            stored: tensor.dtype,
            shape: tensor.shape.clone(),
            offset: (start + from) as u64,
            length: (to - from) as u64,
            change: None,
        };
        if entries.insert(name.clone(), entry).is_some() {
            let problem = format!("tensor `{name}` also stands in another shard");
            return Err(Error::weights(path, problem, "save the checkpoint again with `save_pretrained`"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A checkpoint whose one file has a header of this length, and a tensor of numbers behind one byte.
    fn checkpoint(padded: usize, length: u64) -> (tempfile::TempDir, Checkpoint) {
        let folder = tempfile::tempdir().unwrap();
        let (count, end) = (length / 4, 1 + length);
        let tensor = format!(r#""w":{{"dtype":"F32","shape":[{count}],"data_offsets":[1,{end}]}}"#);
        let header = format!(r#"{{"a":{{"dtype":"U8","shape":[1],"data_offsets":[0,1]}},{tensor}}}"#);
        let header = format!("{header:padded$}");
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend(header.as_bytes());
        bytes.push(9);
        bytes.extend([1.5_f32, -2.0].iter().flat_map(|x| x.to_le_bytes()));
        let path = folder.path().join(SINGLE);
        std::fs::write(&path, &bytes).unwrap();
        // What is not written is zeros that take no room.
        let file = std::fs::File::options().write(true).open(&path).unwrap();
        file.set_len(bytes.len() as u64 - 8 + length).unwrap();
        let checkpoint = Checkpoint::open(folder.path().to_str().unwrap()).unwrap();
        (folder, checkpoint)
    }

    #[test]
    fn weights_of_diffusers_and_open_clip_have_names_of_their_own() {
        let names = [
            (NAMES[1].0, None),
            (NAMES[3].0, None),
            (NAMES[1].0, Some(NAMES[3].0)),
            ("open_clip_model.safetensors", None),
        ];
        for (name, other) in names {
            let (folder, checkpoint) = checkpoint(131, 8);
            std::fs::rename(folder.path().join(SINGLE), folder.path().join(name)).unwrap();
            if let Some(other) = other {
                std::fs::write(folder.path().join(other), b"damaged").unwrap();
            }
            let files = Files::open(&checkpoint).unwrap();
            assert!(files.place().ends_with(name) && files.get("w").is_some());
        }
    }

    #[test]
    fn tensors_that_are_not_aligned_are_read_into_memory() {
        // 8 bytes of length, a header, a byte: aligned to 4 where the header is of 4n + 3.
        for (padded, aligned) in [(131, true), (132, false), (133, false)] {
            let (_folder, checkpoint) = checkpoint(padded, 8);
            let located = Files::open(&checkpoint).unwrap().locate("w").unwrap();
            match located.bytes {
                Bytes::File { offset, length, .. } => assert_eq!((offset, length, aligned), (140, 8, true)),
                Bytes::Quantized(_) => panic!(),
                Bytes::Memory(bytes) => {
                    assert!(!aligned);
                    assert_eq!(**bytes, [1.5_f32.to_le_bytes(), (-2.0_f32).to_le_bytes()].concat());
                }
            }
        }
    }

    #[test]
    fn tables_of_ids_are_read_in_64_bits() {
        let folder = tempfile::tempdir().unwrap();
        let ids = [("I64", [7_i64, -1].iter().flat_map(|id| id.to_le_bytes()).collect::<Vec<u8>>())];
        let narrow = ("I32", [7_i32, -1].iter().flat_map(|id| id.to_le_bytes()).collect());
        for (dtype, bytes) in ids.into_iter().chain([narrow, ("F32", vec![0; 8])]) {
            let end = bytes.len();
            let header = format!(r#"{{"w":{{"dtype":"{dtype}","shape":[2],"data_offsets":[0,{end}]}}}}"#);
            let header = format!("{header:128}");
            let file = [&128_u64.to_le_bytes(), header.as_bytes(), &bytes].concat();
            std::fs::write(folder.path().join(SINGLE), file).unwrap();
            let files = Files::open(&Checkpoint::open(folder.path().to_str().unwrap()).unwrap()).unwrap();
            let weights = super::super::Weights::Files(files);
            let wanted =
                |integers| [crate::graph::Weight { integers, ..crate::graph::Weight::new("w", &[2]) }];
            let found = weights.locate(&wanted(true), &Names::default());
            if dtype == "F32" {
                let text = found.unwrap_err().to_string();
                assert!(text.contains("tensor `w` is F32, but holds ids: I64 and I32 can be used"), "{text}");
                continue;
            }
            let found = &found.unwrap()[0];
            let want: Vec<u8> = [7_i64, -1].iter().flat_map(|id| id.to_le_bytes()).collect();
            assert_eq!((found.dtype, &*found.bytes.read().unwrap()), (Dtype::I64, &want[..]));
            let text = weights.locate(&wanted(false), &Names::default()).unwrap_err().to_string();
            assert!(
                text.contains(&format!("tensor `w` is {dtype}; F32, F16 and BF16 can be used")),
                "{text}"
            );
        }
    }

    #[test]
    fn large_tensors_that_are_not_aligned_are_refused() {
        let (_folder, large) = checkpoint(132, (1 << 30) + 4);
        let text = Files::open(&large).unwrap_err().to_string();
        assert!(text.contains("tensor `w` begins at byte 141") && text.contains("save_pretrained"), "{text}");
        let (_folder, large) = checkpoint(131, (1 << 30) + 4);
        assert!(Files::open(&large).is_ok());
    }
}
