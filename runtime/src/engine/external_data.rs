//! Weights as ONNX Runtime Web takes them: ranges of the checkpoint's files; bfloat16, which it has no kernels for, widened.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::graph::Dtype;
use crate::lower::{Lowered, Memory};
use crate::onnx::{self, Model, Tensor};
use crate::{Error, Result, files};

/// What the locations of weights begin with that were widened.
const WIDENED: &str = "widened.float32";

/// Who widens what a checkpoint's files have in bfloat16.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Widening {
    /// It is read and widened at once.
    #[cfg_attr(target_family = "wasm", expect(dead_code, reason = "a page's script reads files"))]
    Here,
    /// Who reads the files, tensor by tensor.
    Reader,
}

/// A file that a model names.
#[derive(Debug, PartialEq)]
pub(super) struct ExternalFile {
    pub path: PathBuf,
    /// Offsets and lengths of what is read of it.
    pub ranges: Vec<[u64; 2]>,
    /// Whether each range is a file of its own to the model, widened: that number behind the location.
    pub widened: bool,
}

/// A model and the files that it names.
pub(super) struct Prepared<'a> {
    pub model: Model,
    /// What lies in files, by the location that the model gives.
    pub files: BTreeMap<String, ExternalFile>,
    /// What is in memory, by the location that the model gives.
    pub memory: BTreeMap<String, Cow<'a, [u8]>>,
}

/// The model with what it names.
pub(super) fn prepare(lowered: &Lowered, widening: Widening) -> Result<Prepared<'_>> {
    let mut model = lowered.model.clone();
    let folder = lowered.folder.as_deref().unwrap_or(Path::new(""));
    let mut files: BTreeMap<String, ExternalFile> = BTreeMap::new();
    let mut memory = BTreeMap::new();
    let looked_up = looked_up(&model);
    for weight in model.graph.iter_mut().flat_map(|graph| &mut graph.initializer) {
        let location = entry(weight, "location").map(str::to_owned);
        let held = location.as_ref().and_then(|location| lowered.memory.get(location));
        let narrow = weight.data_type == onnx::data_type(Dtype::Bf16) && !looked_up.contains(&weight.name);
        match location {
            Some(location) if held.is_none() && (!narrow || widening == Widening::Reader) => {
                let range = [number(weight, "offset"), number(weight, "length")];
                let path = folder.join(&location);
                let name = if narrow { format!("{WIDENED}/{location}") } else { location };
                let new = || ExternalFile { path, ranges: vec![], widened: narrow };
                let file = files.entry(name.clone()).or_insert_with(new);
                if narrow {
                    *weight = in_single(weight, &format!("{name}/{}", file.ranges.len()), 2 * range[1]);
                }
                file.ranges.push(range);
            }
            _ if narrow => {
                let name = format!("{WIDENED}/{}", memory.len());
                let wide = wide(&bytes(weight, folder, &lowered.memory)?);
                *weight = in_single(weight, &name, wide.len() as u64);
                memory.insert(name, Cow::Owned(wide));
            }
            Some(location) => {
                if let Some(bytes) = held {
                    memory.entry(location).or_insert(Cow::Borrowed(&bytes[..]));
                }
            }
            None => {}
        }
    }
    Ok(Prepared { model, files, memory })
}

/// The tables that rows are looked up of and nothing else is done with, which takes no kernel of their type.
fn looked_up(model: &Model) -> BTreeSet<String> {
    let nodes = || model.graph.iter().flat_map(|graph| &graph.node);
    let tables = |node: &onnx::Node| usize::from(node.op_type == "Gather" && node.domain.is_empty());
    let mut found: BTreeSet<String> =
        nodes().flat_map(|node| node.input.iter().take(tables(node))).cloned().collect();
    for read in nodes().flat_map(|node| node.input.iter().skip(tables(node))) {
        found.remove(read);
    }
    found
}

/// A weight in single precision, which is all that a location has.
fn in_single(weight: &Tensor, location: &str, length: u64) -> Tensor {
    let dims: Vec<usize> = weight.dims.iter().map(|&n| n as usize).collect();
    Tensor::external(&weight.name, Dtype::F32, &dims, location, 0, length)
}

/// A bfloat16 is the upper half of a float32.
fn wide(narrow: &[u8]) -> Vec<u8> {
    narrow.as_chunks::<2>().0.iter().flat_map(|[low, high]| [0, 0, *low, *high]).collect()
}

fn entry<'a>(weight: &'a Tensor, key: &str) -> Option<&'a str> {
    weight.external_data.iter().find(|entry| entry.key == key).map(|entry| entry.value.as_str())
}

fn number(weight: &Tensor, key: &str) -> u64 {
    entry(weight, key).and_then(|value| value.parse().ok()).unwrap_or_default()
}

/// A weight's bytes, from the model or from its file.
fn bytes(weight: &Tensor, folder: &Path, memory: &Memory) -> Result<Vec<u8>> {
    let Some(location) = entry(weight, "location") else {
        return Ok(weight.raw_data.clone().unwrap_or_default());
    };
    if let Some(bytes) = memory.get(location) {
        return Ok(bytes.to_vec());
    }
    let path = folder.join(location);
    let range = files::range(&path, number(weight, "offset"), number(weight, "length"));
    range.map_err(|e| match e.kind() {
        ErrorKind::UnexpectedEof => {
            let problem = format!("ends within tensor `{}`", weight.name);
            Error::weights(path, problem, "download the file again")
        }
        _ => Error::io(path, e),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bfloat16_is_widened_and_the_rest_stays_in_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let half = half::bf16::from_f32(-1.5).to_le_bytes();
        std::fs::write(folder.path().join("model.safetensors"), [&[9, 9][..], &half, &[7; 4]].concat())
            .unwrap();
        let file = "model.safetensors";
        let inline =
            Tensor::inline("inline", Dtype::Bf16, &[1], half::bf16::from_f32(2.0).to_le_bytes().to_vec());
        let initializer = vec![
            Tensor::external("narrow", Dtype::Bf16, &[1], file, 2, 2),
            Tensor::external("kept", Dtype::F32, &[1], file, 4, 4),
            inline,
        ];
        let graph = onnx::Graph { initializer, ..onnx::Graph::default() };
        let model = Model { graph: Some(graph), ..Model::default() };
        let mut lowered = Lowered {
            model,
            folder: Some(folder.path().to_path_buf()),
            memory: BTreeMap::new(),
            operators: BTreeMap::new(),
        };
        let places = |prepared: &Prepared<'_>| -> Vec<_> {
            let weights = &prepared.model.graph.as_ref().unwrap().initializer;
            assert!(weights.iter().all(|weight| weight.data_type == onnx::data_type(Dtype::F32)));
            let place = |w| (entry(w, "location").unwrap().to_owned(), number(w, "offset"));
            weights.iter().map(place).collect()
        };
        let named = |name: &str| format!("{WIDENED}/{name}");
        let path = folder.path().join(file);
        let kept = ExternalFile { path: path.clone(), ranges: vec![[4, 4]], widened: false };

        let prepared = prepare(&lowered, Widening::Here).unwrap();
        assert_eq!(places(&prepared), [(named("0"), 0), (file.to_owned(), 4), (named("1"), 0)]);
        assert_eq!(prepared.memory[&named("0")][..], (-1.5_f32).to_le_bytes());
        assert_eq!(prepared.memory[&named("1")][..], 2.0_f32.to_le_bytes());
        assert_eq!(prepared.files, BTreeMap::from([(file.to_owned(), kept)]));

        let prepared = prepare(&lowered, Widening::Reader).unwrap();
        assert_eq!(
            places(&prepared),
            [(named(&format!("{file}/0")), 0), (file.to_owned(), 4), (named("0"), 0)]
        );
        assert_eq!(prepared.memory[&named("0")][..], 2.0_f32.to_le_bytes());
        let narrow = ExternalFile { path, ranges: vec![[2, 2]], widened: true };
        assert_eq!(prepared.files[&named(file)], narrow);

        // A table that rows are looked up of stays as it is; one that is read otherwise as well does not.
        let mut read = lowered.clone();
        let node = |op_type: &str, input: &[&str]| onnx::Node {
            op_type: op_type.to_owned(),
            input: input.iter().map(|name| (*name).to_owned()).collect(),
            ..onnx::Node::default()
        };
        let graph = read.model.graph.as_mut().unwrap();
        graph.node = vec![node("Gather", &["narrow", "ids"]), node("Gather", &["inline", "ids"])];
        graph.node.push(node("Cast", &["inline"]));
        let prepared = prepare(&read, Widening::Reader).unwrap();
        let weights = &prepared.model.graph.as_ref().unwrap().initializer;
        let types = weights.iter().map(|weight| weight.data_type).collect::<Vec<_>>();
        assert_eq!(types, [Dtype::Bf16, Dtype::F32, Dtype::F32].map(onnx::data_type));
        assert_eq!(prepared.files[file].ranges, [[2, 2], [4, 4]]);

        let short = Tensor::external("narrow", Dtype::Bf16, &[9], file, 2, 18);
        lowered.model.graph.as_mut().unwrap().initializer.push(short);
        assert!(
            prepare(&lowered, Widening::Here)
                .err()
                .unwrap()
                .to_string()
                .contains("ends within tensor `narrow`")
        );
    }
}
