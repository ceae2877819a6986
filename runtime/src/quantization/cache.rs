//! Weights that were quantized when a checkpoint opened, kept in files for the next time.
//!
//! Each weight has a file of its own, in which its codes are mapped where they lie. The file says what it was made of: where the
//! weight is stored, how large and how old that file is, and the settings. A weight whose checkpoint changed is made anew.

use std::collections::hash_map::DefaultHasher;
use std::fs::{self, File};
use std::hash::{Hash, Hasher};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};

use super::{BlockQuantized, Quantization, Zeros};
use crate::weights::{Bytes, WeightData};
use crate::{Dtype, Error, Result};

/// What files begin with; another layout has another.
const MAGIC: [u8; 8] = *b"weftq\x00\x001";

/// The longest header that is read.
const HEADER: u64 = 1 << 16;

/// Codes begin at a multiple of this, as kernels want them.
const ALIGNMENT: u64 = 64;

/// Files of quantized weights in a folder.
#[derive(Clone, Debug)]
pub(crate) struct WeightCache {
    folder: PathBuf,
}

/// What a weight was quantized from, and how.
#[derive(Clone, Debug, Deserialize, Hash, PartialEq, Serialize)]
struct Key {
    file: PathBuf,
    /// Bytes of the whole file, and nanoseconds since 1970 when it was last written.
    file_bytes: u64,
    modified: u64,
    offset: u64,
    length: u64,
    shape: Vec<usize>,
    dtype: String,
    bits: usize,
    group: usize,
    symmetric: bool,
    search: bool,
}

/// The header of a file: the key, and what follows.
#[derive(Debug, Deserialize, Serialize)]
struct Header {
    key: Key,
    bits: usize,
    group: usize,
    half_scales: bool,
    codes: u64,
    scales: u64,
    zeros: u64,
}

/// How much is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheSize {
    /// How many weights.
    pub weights: usize,
    /// Bytes of their files.
    pub bytes: u64,
}

impl WeightCache {
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// The codes of a weight as they were made before; none where there are none that are whole and of this very weight.
    pub(crate) fn get(
        &self,
        weight: &WeightData,
        bits: usize,
        settings: &Quantization,
    ) -> Option<BlockQuantized> {
        let key = Key::of(weight, bits, settings)?;
        let path = self.path(&key);
        read(&path, &key, weight).ok()
    }

    /// Keeps the codes of a weight; a file is whole or not there. What lies in no file is not kept.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(crate) fn put(
        &self,
        weight: &WeightData,
        bits: usize,
        settings: &Quantization,
        made: &BlockQuantized,
    ) -> Result<()> {
        let Some(key) = Key::of(weight, bits, settings) else { return Ok(()) };
        fs::create_dir_all(&self.folder).map_err(|e| Error::io(&self.folder, e))?;
        let path = self.path(&key);
        let partial = path.with_extension(format!("partial-{}", std::process::id()));
        let written = write(&partial, key, made).and_then(|()| fs::rename(&partial, &path));
        written.map_err(|e| {
            let _ = fs::remove_file(&partial);
            Error::io(&path, e)
        })
    }

    /// How much it has.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub(crate) fn size(&self) -> Result<CacheSize> {
        let mut size = CacheSize::default();
        for (path, bytes) in self.files()? {
            size.bytes += bytes;
            size.weights += usize::from(path.extension().is_some_and(|ending| ending == "codes"));
        }
        Ok(size)
    }

    /// Removes all, also what an interrupted process left; how much that was. Models that are loaded keep what they mapped.
    ///
    /// # Errors
    /// When a file cannot be removed.
    pub(crate) fn remove(&self) -> Result<CacheSize> {
        let size = self.size()?;
        for (path, _) in self.files()? {
            fs::remove_file(&path).map_err(|e| Error::io(path, e))?;
        }
        Ok(size)
    }

    fn files(&self) -> Result<Vec<(PathBuf, u64)>> {
        let failed = |e| Error::io(&self.folder, e);
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(vec![]),
            Err(e) => return Err(failed(e)),
        };
        let mut files = vec![];
        for entry in entries {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.ends_with(".codes") || name.contains(".partial-") {
                files.push((entry.path(), entry.metadata().map_err(failed)?.len()));
            }
        }
        Ok(files)
    }

    fn path(&self, key: &Key) -> PathBuf {
        let mut hasher = DefaultHasher::new();
        key.hash(&mut hasher);
        self.folder.join(format!("{:016x}.codes", hasher.finish()))
    }
}

impl Key {
    /// None of what lies in no file.
    fn of(weight: &WeightData, bits: usize, settings: &Quantization) -> Option<Self> {
        let Bytes::File { path, offset, length } = &weight.bytes else { return None };
        let about = fs::metadata(path).ok()?;
        let modified = about.modified().ok()?.duration_since(UNIX_EPOCH).ok()?.as_nanos().try_into().ok()?;
        Some(Self {
            file: path.clone(),
            file_bytes: about.len(),
            modified,
            offset: *offset,
            length: *length,
            shape: weight.shape.clone(),
            dtype: weight.dtype.to_string(),
            bits,
            group: settings.group,
            symmetric: settings.symmetric,
            search: settings.search,
        })
    }
}

/// The codes of a file; an error where it is not whole, or of another key.
fn read(path: &Path, key: &Key, weight: &WeightData) -> std::io::Result<BlockQuantized> {
    let spoilt = || std::io::Error::from(std::io::ErrorKind::InvalidData);
    let mut file = File::open(path)?;
    let (mut magic, mut length) = ([0; 8], [0; 8]);
    file.read_exact(&mut magic)?;
    file.read_exact(&mut length)?;
    let length = u64::from_le_bytes(length);
    if magic != MAGIC || length > HEADER {
        return Err(spoilt());
    }
    let mut text = vec![0; length as usize];
    file.read_exact(&mut text)?;
    let header: Header = serde_json::from_slice(&text).map_err(|_| spoilt())?;
    let start = (16 + length).next_multiple_of(ALIGNMENT);
    let Header { codes, scales, zeros, .. } = header;
    let end = [codes, scales, zeros].iter().try_fold(start, |end, length| end.checked_add(*length));
    if header.key != *key || end != Some(file.metadata()?.len()) {
        return Err(spoilt());
    }
    let &[out, columns] = weight.shape.as_slice() else { return Err(spoilt()) };
    file.seek(SeekFrom::Start(start + codes))?;
    let mut rest = vec![0; (scales + zeros) as usize];
    file.read_exact(&mut rest)?;
    let points = rest.split_off(scales as usize);
    let made = BlockQuantized {
        shape: [out, columns],
        batch: None,
        bits: header.bits,
        group: header.group,
        codes: Bytes::File { path: path.canonicalize()?, offset: start, length: codes },
        scale_dtype: if header.half_scales { Dtype::F16 } else { Dtype::F32 },
        scales: Bytes::memory(rest),
        outer: None,
        zeros: if key.symmetric { Zeros::Middle } else { Zeros::Codes(points.into()) },
        order: None,
    };
    let blocks = (out * made.blocks()) as u64;
    let fits = codes == blocks * (made.group * made.bits / 8) as u64
        && scales == blocks * made.scale_dtype.size() as u64
        && zeros == if key.symmetric { 0 } else { blocks };
    if fits { Ok(made) } else { Err(spoilt()) }
}

fn write(path: &Path, key: Key, made: &BlockQuantized) -> std::io::Result<()> {
    let zeros: &[u8] = match &made.zeros {
        Zeros::Codes(codes) => codes,
        Zeros::Middle | Zeros::Minimums(_) | Zeros::Codebook(_) => &[],
    };
    let failed = |error: Error| std::io::Error::other(error.to_string());
    let (codes, scales) = (made.codes.read().map_err(failed)?, made.scales.read().map_err(failed)?);
    let header = Header {
        key,
        bits: made.bits,
        group: made.group,
        half_scales: made.scale_dtype == Dtype::F16,
        codes: codes.len() as u64,
        scales: scales.len() as u64,
        zeros: zeros.len() as u64,
    };
    let header = serde_json::to_vec(&header)?;
    let filled = (16 + header.len() as u64).next_multiple_of(ALIGNMENT) - 16 - header.len() as u64;
    let mut file = File::create(path)?;
    file.write_all(&MAGIC)?;
    file.write_all(&(header.len() as u64).to_le_bytes())?;
    file.write_all(&header)?;
    file.write_all(&vec![b' '; filled as usize])?;
    for part in [&codes[..], &scales, zeros] {
        file.write_all(part)?;
    }
    file.sync_all()
}

#[cfg(test)]
mod tests;
