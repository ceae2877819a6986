//! Gives OpenVINO the graph with its weights where they are.
//!
//! OpenVINO maps external weights itself, but only below the folder of the model's file, links followed. So
//! the model is written beside hard links to the weights, in a folder of its own that is gone after reading.
//! Where the file system has no hard links to them, OpenVINO gets the addresses of mapped files and copies.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use memmap2::Mmap;
use openvino::{Core, Model};

use super::{failed, raw};
use crate::engine::folder::OwnFolder;
use crate::engine::library;
use crate::lower::Lowered;
use crate::onnx::Tensor;
use crate::{Error, Result};

/// The location that marks an offset as an address in this process.
const ADDRESS: &str = "*/_ORT_MEM_ADDR_/*";

/// A model as OpenVINO read it, and the memory that it may still point into.
pub(super) struct Read {
    pub model: Model,
    pub weights: Vec<Mmap>,
}

/// The model with the addresses of weights that are in memory.
fn with_addresses(lowered: &Lowered) -> Lowered {
    let mut addressed = lowered.clone();
    for tensor in initializers_mut(&mut addressed) {
        let Some(bytes) = location(tensor).and_then(|location| lowered.memory.get(location)) else {
            continue;
        };
        for (key, value) in
            [("location", ADDRESS.to_owned()), ("offset", (bytes.as_ptr() as usize).to_string())]
        {
            if let Some(text) = entry(tensor, key) {
                *text = value;
            }
        }
    }
    addressed
}

/// Whether weights are in files.
fn in_files(tensor: &Tensor) -> bool {
    location(tensor).is_some_and(|location| location != ADDRESS)
}

/// Reads a lowered graph.
pub(super) fn read(core: &mut Core, lowered: &Lowered) -> Result<Read> {
    // Unix lets go of a name while the file is mapped; elsewhere the folder could not be removed.
    let cache = library::packages().and_then(|packages| Some(packages.parent()?.to_path_buf()));
    let places = if cfg!(unix) { vec![cache, Some(std::env::temp_dir())] } else { vec![] };
    read_beside(core, lowered, &places.into_iter().flatten().collect::<Vec<_>>())
}

/// Reads a lowered graph, through a folder in the first of `places` that takes links to the weights.
fn read_beside(core: &mut Core, lowered: &Lowered, places: &[PathBuf]) -> Result<Read> {
    let refused = |e| failed("refused the graph", &e);
    let lowered = &with_addresses(lowered);
    if !initializers(lowered).any(in_files) {
        let model = core.read_model_from_buffer(&lowered.bytes(), None).map_err(refused)?;
        return Ok(Read { model, weights: vec![] });
    }
    for place in places {
        match Linked::new(place, lowered) {
            Ok(linked) => {
                let path = linked.model.to_string_lossy();
                let model = core.read_model_from_file(&path, "").map_err(refused)?;
                return Ok(Read { model, weights: vec![] });
            }
            Err(reason) => tracing::debug!(place = %place.display(), %reason, "no links to the weights"),
        }
    }
    let (lowered, weights) = addressed(lowered)?;
    let model = core.read_model_from_buffer(&lowered.bytes(), None).map_err(refused)?;
    Ok(Read { model, weights })
}

/// A folder with the model and links to its weights; removed when dropped.
struct Linked {
    _folder: OwnFolder,
    model: PathBuf,
}

impl Linked {
    fn new(place: &Path, lowered: &Lowered) -> std::io::Result<Self> {
        fs::create_dir_all(place)?;
        let folder = OwnFolder::new(place, "weft-openvino-")?;
        let linked = Self { model: folder.path().join("model.onnx"), _folder: folder };
        let mut names = BTreeMap::new();
        let mut lowered = lowered.clone();
        let source = lowered.folder.clone().unwrap_or_default();
        for tensor in initializers_mut(&mut lowered) {
            let Some(location) = entry(tensor, "location").filter(|location| *location != ADDRESS) else {
                continue;
            };
            let count = names.len();
            let name = match names.get(location.as_str()) {
                Some(name) => String::clone(name),
                None => {
                    let name = format!("weights-{count}");
                    fs::hard_link(source.join(location.as_str()), linked.model.with_file_name(&name))?;
                    names.insert(location.clone(), name.clone());
                    name
                }
            };
            *location = name;
        }
        fs::write(&linked.model, lowered.bytes())?;
        Ok(linked)
    }
}

/// The model with the weights as addresses in mapped files, and those maps.
fn addressed(lowered: &Lowered) -> Result<(Lowered, Vec<Mmap>)> {
    let mut lowered = lowered.clone();
    let source = lowered.folder.clone().unwrap_or_default();
    let mut maps: BTreeMap<PathBuf, Mmap> = BTreeMap::new();
    for tensor in initializers_mut(&mut lowered) {
        let Some(location) = entry(tensor, "location").filter(|location| *location != ADDRESS) else {
            continue;
        };
        let path = source.join(std::mem::replace(location, ADDRESS.to_owned()));
        let map = match maps.remove(&path) {
            Some(map) => map,
            None => File::open(&path).and_then(|file| raw::map(&file)).map_err(|e| Error::io(&path, e))?,
        };
        let (start, end) = (map.as_ptr() as usize, map.len());
        let number = |text: Option<&mut String>| text.and_then(|text| text.parse::<usize>().ok());
        let length = number(entry(tensor, "length"));
        let offset = number(entry(tensor, "offset"));
        let inside = offset.zip(length).filter(|(from, n)| from.checked_add(*n).is_some_and(|to| to <= end));
        let Some((offset, _)) = inside else {
            let problem = format!("tensor `{}` is not within its {end} bytes any more", tensor.name);
            return Err(Error::weights(path, problem, "open the checkpoint again"));
        };
        if let Some(text) = entry(tensor, "offset") {
            *text = (start + offset).to_string();
        }
        maps.insert(path, map);
    }
    Ok((lowered, maps.into_values().collect()))
}

fn initializers(lowered: &Lowered) -> impl Iterator<Item = &Tensor> {
    lowered.model.graph.iter().flat_map(|graph| &graph.initializer)
}

fn initializers_mut(lowered: &mut Lowered) -> impl Iterator<Item = &mut Tensor> {
    lowered.model.graph.iter_mut().flat_map(|graph| &mut graph.initializer)
}

fn location(tensor: &Tensor) -> Option<&str> {
    tensor.external_data.iter().find(|entry| entry.key == "location").map(|entry| entry.value.as_str())
}

fn entry<'a>(tensor: &'a mut Tensor, key: &str) -> Option<&'a mut String> {
    tensor.external_data.iter_mut().find(|entry| entry.key == key).map(|entry| &mut entry.value)
}
