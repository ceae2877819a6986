//! Where the weights of an exported graph are: in the model, in a file of their own, or in the checkpoint's files.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use weft::Result;
use weft::lower::Lowered;
use weft::onnx::{Model, Tensor};
use weft::weights::Buffer;

use super::casts::{self, Casts};
use super::io;

/// Where weights go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Storage {
    /// Into the model itself.
    Inline,
    /// Into one file beside it.
    Pack,
    /// They stay in the checkpoint's files, which are linked into the folder, or copied where the disk has no links.
    Link,
}

/// A file that was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// Its path in the folder.
    pub path: String,
    /// Its size.
    pub bytes: u64,
}

/// Where packed tensors begin: at multiples of this, so that engines can map them.
const ALIGNMENT: u64 = 64;

/// Places the weights that a graph refers to; the model then refers to the new places.
pub fn place(lowered: Lowered, folder: &Path, data: &str, storage: Storage) -> Result<(Model, Vec<Stored>)> {
    let Lowered { mut model, folder: from, memory, .. } = lowered;
    let casts = match (&mut model.graph, storage) {
        // What stays in the checkpoint's files is cast as it is read.
        (Some(graph), Storage::Inline | Storage::Pack) => casts::fold(graph),
        _ => BTreeMap::new(),
    };
    let mut placing = Placing {
        from: from.unwrap_or_default(),
        casts,
        memory,
        folder,
        data,
        packed: None,
        done: BTreeMap::new(),
        linked: BTreeMap::new(),
    };
    let tensors = model.graph.iter_mut().flat_map(|graph| &mut graph.initializer);
    for tensor in tensors.filter(|tensor| tensor.data_location == Some(1)) {
        match storage {
            Storage::Inline => placing.inline(tensor)?,
            Storage::Pack => placing.pack(tensor)?,
            Storage::Link => placing.link(tensor)?,
        }
    }
    let stored = placing.finish()?;
    Ok((model, stored))
}

/// So many bytes are read at once: whole elements of every type.
const PIECE: usize = 1 << 22;

/// A range of bytes: of which file or memory, from where, how long.
type Range = (String, u64, u64);

struct Placing<'a> {
    /// The folder that locations start from.
    from: PathBuf,
    /// What tensors are stored in that are written in another type.
    casts: Casts,
    memory: BTreeMap<String, Arc<Buffer>>,
    folder: &'a Path,
    data: &'a str,
    packed: Option<(BufWriter<File>, u64)>,
    /// Where a range was packed, in which element type: tied weights are stored once.
    done: BTreeMap<(Range, i32), (u64, u64)>,
    /// Linked files, by the location they had.
    linked: BTreeMap<String, String>,
}

impl Placing<'_> {
    fn inline(&mut self, tensor: &mut Tensor) -> Result<()> {
        let mut bytes = vec![];
        self.read(tensor, &range(tensor), &mut bytes)?;
        tensor.raw_data = Some(bytes);
        tensor.external_data.clear();
        tensor.data_location = None;
        Ok(())
    }

    fn pack(&mut self, tensor: &mut Tensor) -> Result<()> {
        let range = range(tensor);
        if let Some((offset, length)) = self.done.get(&(range.clone(), tensor.data_type)) {
            point(tensor, self.data, *offset, *length);
            return Ok(());
        }
        let path = self.folder.join(self.data);
        let failed = |source| io(&path, source);
        let (mut file, mut end) = match self.packed.take() {
            Some(packed) => packed,
            None => (BufWriter::new(File::create(&path).map_err(failed)?), 0),
        };
        let start = end.next_multiple_of(ALIGNMENT);
        file.write_all(&vec![0; (start - end) as usize]).map_err(failed)?;
        let length = self.read(tensor, &range, &mut file)?;
        end = start + length;
        self.packed = Some((file, end));
        point(tensor, self.data, start, length);
        self.done.insert((range, tensor.data_type), (start, length));
        Ok(())
    }

    fn link(&mut self, tensor: &mut Tensor) -> Result<()> {
        let (location, offset, length) = range(tensor);
        // What was made when the checkpoint was opened is in no file of it.
        if self.memory.contains_key(&location) {
            return self.pack(tensor);
        }
        let name = match self.linked.get(&location) {
            Some(name) => name.clone(),
            None => {
                // A file of the hub's cache is named by its hash.
                let stem = format!("weights-{}.safetensors", self.linked.len() + 1);
                let own = Path::new(&location).file_name().map(|name| name.to_string_lossy().into_owned());
                let name = own.filter(|name| name.contains('.')).unwrap_or(stem);
                let (from, to) = (self.from.join(&location), self.folder.join(&name));
                if fs::hard_link(&from, &to).is_err() {
                    fs::copy(&from, &to).map_err(|source| io(&to, source))?;
                }
                self.linked.insert(location, name.clone());
                name
            }
        };
        point(tensor, &name, offset, length);
        Ok(())
    }

    /// Writes a tensor's range in the tensor's element type; how many bytes that takes.
    fn read(&self, tensor: &Tensor, range: &Range, to: &mut dyn Write) -> Result<u64> {
        let into = |source| io(&self.folder.join(self.data), source);
        let (location, offset, length) = range;
        let stored = self.casts.get(&tensor.name).copied();
        let mut written = 0;
        let mut put = |bytes: &[u8]| {
            let cast = match stored {
                Some(stored) => Cow::Owned(casts::cast(bytes, stored, tensor.data_type)),
                None => Cow::Borrowed(bytes),
            };
            written += cast.len() as u64;
            to.write_all(&cast).map_err(into)
        };
        if let Some(bytes) = self.memory.get(location) {
            let end = (*offset + *length).min(bytes.len() as u64) as usize;
            put(&bytes[(*offset as usize).min(end)..end])?;
            return Ok(written);
        }
        let path = self.from.join(location);
        let failed = |source| io(&path, source);
        let mut file = File::open(&path).map_err(failed)?;
        file.seek(SeekFrom::Start(*offset)).map_err(failed)?;
        let mut left = *length as usize;
        let mut piece = vec![0; left.min(PIECE)];
        while left > 0 {
            let count = left.min(PIECE);
            file.read_exact(&mut piece[..count]).map_err(failed)?;
            put(&piece[..count])?;
            left -= count;
        }
        Ok(written)
    }

    fn finish(self) -> Result<Vec<Stored>> {
        let mut names: Vec<String> = self.linked.into_values().collect();
        if let Some((mut file, _)) = self.packed {
            file.flush().map_err(|source| io(&self.folder.join(self.data), source))?;
            names.push(self.data.to_owned());
        }
        let size = |path: String| {
            let file = self.folder.join(&path);
            let bytes = file.metadata().map_err(|source| io(&file, source))?.len();
            Ok(Stored { path, bytes })
        };
        names.into_iter().map(size).collect()
    }
}

/// Where an external tensor is.
fn range(tensor: &Tensor) -> Range {
    let entry = |key: &str| {
        let found = tensor.external_data.iter().find(|entry| entry.key == key);
        found.map(|entry| entry.value.clone()).unwrap_or_default()
    };
    (
        entry("location"),
        entry("offset").parse().unwrap_or_default(),
        entry("length").parse().unwrap_or_default(),
    )
}

fn point(tensor: &mut Tensor, location: &str, offset: u64, length: u64) {
    for entry in &mut tensor.external_data {
        match entry.key.as_str() {
            "location" => location.clone_into(&mut entry.value),
            "offset" => entry.value = offset.to_string(),
            "length" => entry.value = length.to_string(),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use weft::Dtype;
    use weft::onnx::Graph;

    use super::*;

    /// A model of two bytes of a file, the same again, and three bytes of memory.
    fn lowered(from: &Path) -> Lowered {
        fs::write(from.join("model.safetensors"), b"..ab").unwrap();
        let tensor = |name, location, offset, length| {
            Tensor::external(name, Dtype::U8, &[length], location, offset, length as u64)
        };
        let initializer = vec![
            tensor("a", "model.safetensors", 2, 2),
            tensor("tied", "model.safetensors", 2, 2),
            tensor("m", "*/memory/0", 0, 3),
        ];
        Lowered {
            model: Model { graph: Some(Graph { initializer, ..Graph::default() }), ..Model::default() },
            folder: Some(from.to_owned()),
            memory: BTreeMap::from([("*/memory/0".to_owned(), Arc::new(b"xyz".to_vec().into()))]),
            operators: BTreeMap::new(),
        }
    }

    fn placed(storage: Storage) -> (tempfile::TempDir, Vec<Tensor>, Vec<Stored>) {
        let (from, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (model, stored) = place(lowered(from.path()), out.path(), "d", storage).unwrap();
        (out, model.graph.unwrap().initializer, stored)
    }

    #[test]
    fn packed_tensors_are_aligned_and_tied_ones_stand_once() {
        let (out, tensors, stored) = placed(Storage::Pack);
        let places: Vec<_> = tensors.iter().map(range).collect();
        let at = |offset, length| ("d".to_owned(), offset, length);
        assert_eq!(places, [at(0, 2), at(0, 2), at(64, 3)]);
        let data = fs::read(out.path().join("d")).unwrap();
        assert_eq!((&data[..2], &data[64..]), (&b"ab"[..], &b"xyz"[..]));
        assert_eq!(stored, [Stored { path: "d".to_owned(), bytes: 67 }]);
    }

    #[test]
    fn linked_tensors_stay_where_they_are() {
        let (out, tensors, stored) = placed(Storage::Link);
        assert_eq!(range(&tensors[1]), ("model.safetensors".to_owned(), 2, 2));
        assert_eq!(range(&tensors[2]), ("d".to_owned(), 0, 3));
        assert_eq!(fs::read(out.path().join("model.safetensors")).unwrap(), b"..ab");
        assert_eq!(
            stored.iter().map(|file| file.path.as_str()).collect::<Vec<_>>(),
            ["model.safetensors", "d"]
        );
    }

    #[test]
    fn inline_tensors_have_their_bytes() {
        let (_, tensors, stored) = placed(Storage::Inline);
        let bytes: Vec<_> = tensors.iter().map(|tensor| tensor.raw_data.as_deref().unwrap()).collect();
        assert_eq!(bytes, [&b"ab"[..], b"ab", b"xyz"]);
        assert!(stored.is_empty() && tensors.iter().all(|tensor| tensor.external_data.is_empty()));
    }
}
