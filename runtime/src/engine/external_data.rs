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

/// All numbers of bfloat16 in single precision, by their bits: the name of the tensor, and its location.
const VALUES: &str = "bfloat16.float32";
/// What the two bytes of a number's bits count, and the axis that they lie on.
const PARTS: &str = "bfloat16.parts";
const LAST: &str = "bfloat16.axis";

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
    let looked_up = by_table(&mut model, &mut memory);
    for weight in model.graph.iter_mut().flat_map(|graph| &mut graph.initializer) {
        let location = entry(weight, "location").map(str::to_owned);
        let held = location.as_ref().and_then(|location| lowered.memory.get(location));
        let narrow = weight.data_type == onnx::data_type(Dtype::Bf16) && !looked_up.contains(&weight.name);
        match location {
            Some(location) if location == VALUES => {}
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

/// Tables of bfloat16 of which rows are looked up and nothing else is done with, by their names: their bits become
/// whole numbers, and what each of these stands for is looked up as well, since there is no conversion.
fn by_table(model: &mut Model, memory: &mut BTreeMap<String, Cow<'_, [u8]>>) -> BTreeSet<String> {
    let Some(graph) = &mut model.graph else { return BTreeSet::new() };
    let first = |node: &onnx::Node| usize::from(node.op_type == "Gather" && node.domain.is_empty());
    let narrow = |weight: &&Tensor| weight.data_type == onnx::data_type(Dtype::Bf16);
    let mut tables: BTreeSet<String> =
        graph.initializer.iter().filter(narrow).map(|weight| weight.name.clone()).collect();
    let looked_up: BTreeSet<&String> =
        graph.node.iter().flat_map(|node| node.input.iter().take(first(node))).collect();
    tables.retain(|table| looked_up.contains(table));
    for read in graph.node.iter().flat_map(|node| node.input.iter().skip(first(node))) {
        tables.remove(read);
    }
    if tables.is_empty() {
        return tables;
    }
    // Each number as its two bytes: 16 bits at once have no kernels either.
    for weight in graph.initializer.iter_mut().filter(|weight| tables.contains(&weight.name)) {
        weight.data_type = onnx::data_type(Dtype::U8);
        weight.dims.push(2);
    }
    let node = |name: String, op_type: &str, input: &[&str], attribute| onnx::Node {
        input: input.iter().map(|&name| name.to_owned()).collect(),
        output: vec![name.clone()],
        op_type: op_type.to_owned(),
        attribute,
        name,
        domain: String::new(),
    };
    let mut rows = BTreeSet::new();
    for mut read in std::mem::take(&mut graph.node) {
        let from = read.input.first().cloned().unwrap_or_default();
        if first(&read) == 1 && tables.contains(&from) {
            rows.extend(read.output.clone());
        } else if read.op_type == "Cast" && rows.contains(&from) {
            let [bytes, parts, places] = ["Bytes", "Parts", "Places"].map(|part| format!("{from}/{part}"));
            let whole = onnx::Attribute::int("to", onnx::data_type(Dtype::I32).into());
            let dropped = onnx::Attribute::int("keepdims", 0);
            graph.node.extend([
                node(bytes.clone(), "Cast", &[&from], vec![whole]),
                node(parts.clone(), "Mul", &[&bytes, PARTS], vec![]),
                node(places.clone(), "ReduceSum", &[&parts, LAST], vec![dropped]),
            ]);
            read.op_type = "Gather".to_owned();
            read.input = vec![VALUES.to_owned(), places];
            read.attribute = vec![onnx::Attribute::int("axis", 0)];
        }
        graph.node.push(read);
    }
    let parts = [1_i32, 256].iter().flat_map(|part| part.to_le_bytes()).collect();
    graph.initializer.push(Tensor::inline(PARTS, Dtype::I32, &[2], parts));
    graph.initializer.push(Tensor::inline(LAST, Dtype::I64, &[1], (-1_i64).to_le_bytes().to_vec()));
    let all: Vec<u8> = (0..=u16::MAX).flat_map(u16::to_le_bytes).collect();
    let values = wide(&all);
    let length = values.len() as u64;
    graph.initializer.push(Tensor::external(VALUES, Dtype::F32, &[1 << 16], VALUES, 0, length));
    memory.insert(VALUES.to_owned(), Cow::Owned(values));
    tables
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
        let node = |op_type: &str, input: &[&str], output: &str| onnx::Node {
            op_type: op_type.to_owned(),
            input: input.iter().map(|name| (*name).to_owned()).collect(),
            output: vec![output.to_owned()],
            ..onnx::Node::default()
        };
        let graph = read.model.graph.as_mut().unwrap();
        graph.node = vec![node("Gather", &["narrow", "ids"], "rows"), node("Cast", &["rows"], "wide")];
        graph.node.extend([node("Gather", &["inline", "ids"], "others"), node("Cast", &["inline"], "all")]);
        let prepared = prepare(&read, Widening::Reader).unwrap();
        let graph = prepared.model.graph.as_ref().unwrap();
        let types = graph.initializer.iter().map(|weight| weight.data_type).collect::<Vec<_>>();
        let single = onnx::data_type(Dtype::F32);
        let [bytes, whole, axis] = [Dtype::U8, Dtype::I32, Dtype::I64].map(onnx::data_type);
        assert_eq!(types, [bytes, single, single, whole, axis, single]);
        assert_eq!(graph.initializer[0].dims, [1, 2]);
        assert_eq!(prepared.files[file].ranges, [[2, 2], [4, 4]]);
        assert_eq!(prepared.files.len(), 1);
        let written: Vec<_> = graph
            .node
            .iter()
            .map(|node| format!("{}({}) {}", node.op_type, node.input.join(", "), node.output[0]))
            .collect();
        assert_eq!(
            written,
            [
                "Gather(narrow, ids) rows",
                "Cast(rows) rows/Bytes",
                "Mul(rows/Bytes, bfloat16.parts) rows/Parts",
                "ReduceSum(rows/Parts, bfloat16.axis) rows/Places",
                "Gather(bfloat16.float32, rows/Places) wide",
                "Gather(inline, ids) others",
                "Cast(inline) all"
            ]
        );
        let place = 4 * usize::from(half::bf16::from_f32(-1.5).to_bits());
        assert_eq!(prepared.memory[VALUES][place..place + 4], (-1.5_f32).to_le_bytes());

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
