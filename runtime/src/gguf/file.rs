//! One GGUF file, mapped: its header is read and checked before anything is made by it.
//!
//! Reference: `docs/gguf.md` of ggml; versions 2 and 3, little-endian.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use memmap2::Mmap;

use super::types::Kind;
use super::value::{Array, Element, Value};
use crate::{Error, Result};

const MAGIC: &[u8; 4] = b"GGUF";
const ALIGNMENT: &str = "general.alignment";
const DEFAULT_ALIGNMENT: u64 = 32;
/// The most axes of a tensor.
const AXES: u32 = 4;
/// The least bytes of an entry of the metadata: the length of its key, its type, and one byte.
const LEAST_ENTRY: u64 = 8 + 4 + 1;
/// The least bytes of a tensor's entry: the length of its name, the number of its axes, one of them, its type and offset.
const LEAST_TENSOR: u64 = 8 + 4 + 8 + 4 + 8;

/// A mapped file.
#[derive(Debug)]
pub struct File {
    /// Without symbolic links.
    pub path: PathBuf,
    pub metadata: BTreeMap<String, Value>,
    pub tensors: Vec<Tensor>,
    map: Mmap,
}

/// A tensor's entry.
#[derive(Clone, Debug)]
pub struct Tensor {
    pub name: String,
    /// Row-major, the other way around than in the file.
    pub shape: Vec<usize>,
    pub kind: &'static Kind,
    /// From the beginning of the file.
    pub offset: usize,
    pub length: usize,
}

impl File {
    /// Maps a file and reads its header.
    ///
    /// # Errors
    /// When it cannot be read, or its header is not one.
    pub fn open(path: &Path) -> Result<Self> {
        // Engines map the file themselves and follow no links out of its folder, so they get its real place.
        let real = path.canonicalize().map_err(|e| Error::io(path, e))?;
        let file = fs::File::open(&real).map_err(|e| Error::io(path, e))?;
        let map = if file.metadata().map_err(|e| Error::io(path, e))?.len() == 0 {
            Err("is empty".to_owned())
        } else {
            Ok(map(&file).map_err(|e| Error::io(path, e))?)
        };
        let read = map.and_then(|map| Ok((header(&map)?, map)));
        let ((metadata, tensors), map) = read.map_err(|problem| {
            let help = "download the file again and compare its size with the published one";
            Error::weights(path, problem, help)
        })?;
        Ok(Self { path: real, metadata, tensors, map })
    }

    /// A tensor's bytes.
    pub fn bytes(&self, tensor: &Tensor) -> &[u8] {
        &self.map[tensor.offset..tensor.offset + tensor.length]
    }

    /// The texts of an array of them; none where the key is absent or of another type.
    pub fn texts(&self, key: &str) -> Option<Vec<&str>> {
        let Some(Value::Array(Array { element: Element::Text, range, .. })) = self.metadata.get(key) else {
            return None;
        };
        let mut reader = Reader { bytes: &self.map[..range.end], at: range.start };
        let mut texts = vec![];
        while reader.at < range.end {
            texts.push(reader.text("a text").ok()?);
        }
        Some(texts)
    }

    /// The numbers of an array of them; none where the key is absent or of another type.
    pub fn numbers(&self, key: &str) -> Option<Vec<f64>> {
        let Some(Value::Array(Array { element, range, .. })) = self.metadata.get(key) else { return None };
        let numbers = self.map[range.clone()].chunks_exact(element.size()?);
        let number = |bytes| match element.number(bytes) {
            Value::Bool(yes) => Some(f64::from(u8::from(yes))),
            value => value.real(),
        };
        numbers.map(number).collect()
    }
}

fn map(file: &fs::File) -> std::io::Result<Mmap> {
    // SAFETY: the map is read-only; a file that another program truncates meanwhile is the one risk, as for every
    // reader of mapped weights.
    #[allow(unsafe_code)]
    unsafe {
        Mmap::map(file)
    }
}

type Header = (BTreeMap<String, Value>, Vec<Tensor>);

/// The metadata and the tensors that a file's header lists.
pub(super) fn header(file: &[u8]) -> Result<Header, String> {
    if file.starts_with(b"version https://git-lfs") {
        return Err("is a pointer of Git LFS, not the weights: fetch the file itself".to_owned());
    }
    if !file.starts_with(MAGIC) {
        return Err("is not a GGUF file: it does not begin with `GGUF`".to_owned());
    }
    let mut reader = Reader { bytes: file, at: MAGIC.len() };
    match reader.u32("the version")? {
        2 | 3 => {}
        1 => {
            return Err("is of version 1 of the format; versions 2 and 3 are read: convert the model again"
                .to_owned());
        }
        version if version & 0xffff == 0 => {
            return Err("is big-endian; little-endian files are read: convert the model again".to_owned());
        }
        version => return Err(format!("is of version {version} of the format; versions 2 and 3 are read")),
    }
    let tensors = reader.u64("the number of tensors")?;
    let entries = reader.u64("the number of metadata entries")?;
    for (what, count, least) in
        [("metadata entries", entries, LEAST_ENTRY), ("tensors", tensors, LEAST_TENSOR)]
    {
        if count > reader.left() as u64 / least {
            return Err(format!("claims {count} {what}, more than its {} bytes can hold", file.len()));
        }
    }
    let mut metadata = BTreeMap::new();
    for _ in 0..entries {
        let key = reader.text("a key of the metadata")?.to_owned();
        let value = reader.value(&key)?;
        if metadata.insert(key.clone(), value).is_some() {
            return Err(format!("has the metadata `{key}` twice"));
        }
    }
    let alignment = match metadata.get(ALIGNMENT) {
        None => DEFAULT_ALIGNMENT,
        Some(value) => {
            let found = value.whole().filter(|n| n.is_power_of_two() && *n <= 1 << 20);
            found.ok_or_else(|| format!("`{ALIGNMENT}` is no power of two"))?
        }
    };
    let mut infos = vec![];
    for _ in 0..tensors {
        infos.push(reader.tensor()?);
    }
    let start = (reader.at as u64).next_multiple_of(alignment);
    placed(infos, start, alignment, file.len() as u64).map(|tensors| (metadata, tensors))
}

/// The tensors with their offsets from the beginning of the file, once all lie in it and none over another.
fn placed(infos: Vec<(Tensor, u64)>, start: u64, alignment: u64, length: u64) -> Result<Vec<Tensor>, String> {
    let mut tensors = Vec::with_capacity(infos.len());
    for (tensor, offset) in infos {
        let name = &tensor.name;
        if offset % alignment != 0 {
            return Err(format!("tensor `{name}` begins at byte {offset}, no multiple of {alignment}"));
        }
        let begin = start.checked_add(offset);
        let end = begin.and_then(|begin| begin.checked_add(tensor.length as u64));
        match (begin, end) {
            (Some(begin), Some(end)) if end <= length => {
                tensors.push(Tensor { offset: begin as usize, ..tensor });
            }
            _ => {
                return Err(format!(
                    "tensor `{name}` lies outside of the file: {} bytes at {offset} of its data, but the file ends after \
                     {length}: it is cut off, or its header is wrong",
                    tensor.length
                ));
            }
        }
    }
    let mut names = HashSet::with_capacity(tensors.len());
    if let Some(twice) = tensors.iter().find(|tensor| !names.insert(tensor.name.as_str())) {
        return Err(format!("has tensor `{}` twice", twice.name));
    }
    let mut order: Vec<&Tensor> = tensors.iter().collect();
    order.sort_by_key(|tensor| tensor.offset);
    for pair in order.windows(2) {
        if pair[0].offset + pair[0].length > pair[1].offset {
            return Err(format!("tensors `{}` and `{}` lie over each other", pair[0].name, pair[1].name));
        }
    }
    Ok(tensors)
}

/// Bytes that are read from the front, none beyond their end.
struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    fn take(&mut self, count: usize, what: &str) -> Result<&'a [u8], String> {
        if count > self.left() {
            return Err(format!(
                "is cut off at byte {}, within {what}, or a length before it is wrong",
                self.bytes.len()
            ));
        }
        let taken = &self.bytes[self.at..self.at + count];
        self.at += count;
        Ok(taken)
    }

    fn u32(&mut self, what: &str) -> Result<u32, String> {
        Ok(u32::from_le_bytes(self.take(4, what)?.try_into().unwrap_or_default()))
    }

    fn u64(&mut self, what: &str) -> Result<u64, String> {
        Ok(u64::from_le_bytes(self.take(8, what)?.try_into().unwrap_or_default()))
    }

    fn text(&mut self, what: &str) -> Result<&'a str, String> {
        let length = usize::try_from(self.u64(what)?).unwrap_or(usize::MAX);
        std::str::from_utf8(self.take(length, what)?).map_err(|_| format!("{what} is not UTF-8"))
    }

    fn value(&mut self, key: &str) -> Result<Value, String> {
        let what = format!("the metadata `{key}`");
        let element = self.element(&what)?;
        match (element, element.size()) {
            (_, Some(size)) => Ok(element.number(self.take(size, &what)?)),
            (Element::Text, _) => Ok(Value::Text(self.text(&what)?.to_owned())),
            _ => {
                let element = self.element(&what)?;
                let count = usize::try_from(self.u64(&what)?).unwrap_or(usize::MAX);
                let start = self.at;
                match (element, element.size()) {
                    (_, Some(size)) => _ = self.take(count.saturating_mul(size), &what)?,
                    (Element::Text, _) => {
                        for _ in 0..count {
                            self.text(&what)?;
                        }
                    }
                    _ => return Err(format!("{what} is a list of lists, which no key is")),
                }
                Ok(Value::Array(Array { element, count, range: start..self.at }))
            }
        }
    }

    fn element(&mut self, what: &str) -> Result<Element, String> {
        let id = self.u32(what)?;
        Element::of(id).ok_or_else(|| format!("{what} is of type {id}, which the format does not have"))
    }

    /// A tensor's entry, and its offset in the data.
    fn tensor(&mut self) -> Result<(Tensor, u64), String> {
        let name = self.text("the name of a tensor")?.to_owned();
        let what = format!("the entry of tensor `{name}`");
        let axes = self.u32(&what)?;
        if axes == 0 || axes > AXES {
            return Err(format!("tensor `{name}` has {axes} axes; 1 to {AXES} are possible"));
        }
        let mut shape = vec![];
        let mut elements = 1_usize;
        for _ in 0..axes {
            let length = usize::try_from(self.u64(&what)?).unwrap_or(usize::MAX);
            let product = elements.checked_mul(length).filter(|product| *product > 0);
            elements = product.ok_or_else(|| format!("tensor `{name}` has an axis of {length}"))?;
            shape.push(length);
        }
        let kind = Kind::of(self.u32(&what)?).map_err(|problem| format!("tensor `{name}` {problem}"))?;
        if shape[0] % kind.elements != 0 {
            return Err(format!(
                "tensor `{name}` has rows of {}, no multiple of the {} elements in a block of {}",
                shape[0], kind.elements, kind.name
            ));
        }
        let length = (elements / kind.elements).checked_mul(kind.bytes);
        let length = length.ok_or_else(|| format!("tensor `{name}` is larger than any file"))?;
        let offset = self.u64(&what)?;
        shape.reverse();
        Ok((Tensor { name, shape, kind, offset: 0, length }, offset))
    }
}

#[cfg(test)]
mod tests;
