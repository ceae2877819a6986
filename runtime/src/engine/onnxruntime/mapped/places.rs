//! Experts by their places in files. An engine takes time and memory for each weight that it is told of, and a mixture has tens of
//! thousands of experts: it is told of one stretch of each file instead, and the operator finds its weights therein.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::super::experts::{LENGTHS, PLACES};
use crate::lower::IN_MEMORY;
use crate::onnx::{Attribute, Entry, Graph, Node, Tensor};

/// What comes before the weights among an operator's operands.
const BEFORE: usize = 2;

/// Where a file is, and the element type of a stretch of it.
type Key = (String, i32);

/// Has linear layers of selected experts find weights by their places; whether there are any. Those that are quantized, in memory
/// or in one tensor stay as they are.
pub(super) fn experts_by_place(graph: &mut Graph) -> bool {
    let weights: HashMap<&str, Weight> = graph.initializer.iter().filter_map(Weight::of).collect();
    let found: Vec<(usize, Vec<&Weight>)> = graph
        .node
        .iter()
        .enumerate()
        .filter_map(|(index, node)| Some((index, weights_of(node, &weights)?)))
        .collect();
    if found.is_empty() {
        return false;
    }
    let mut stretches: BTreeMap<Key, (u64, u64)> = BTreeMap::new();
    for weight in found.iter().flat_map(|(_, weights)| weights) {
        let (first, end) = stretches.entry(weight.key.clone()).or_insert((u64::MAX, 0));
        (*first, *end) = ((*first).min(weight.offset), (*end).max(weight.offset + weight.length));
    }
    let made: Vec<(usize, Vec<String>, [Attribute; 2])> = found
        .iter()
        .map(|(index, weights)| {
            let (names, attributes) = placed(weights, &stretches);
            (*index, names, attributes)
        })
        .collect();
    drop(weights);
    for (index, names, attributes) in made {
        let node = &mut graph.node[index];
        node.input.truncate(BEFORE);
        node.input.extend(names);
        node.attribute.extend(attributes);
    }
    let read: HashSet<&str> = graph.node.iter().flat_map(|node| &node.input).map(String::as_str).collect();
    let given: HashSet<&str> = graph.output.iter().map(|output| output.name.as_str()).collect();
    graph.initializer.retain(|it| read.contains(&*it.name) || given.contains(&*it.name));
    graph.initializer.extend(stretches.iter().map(|(key, &(first, end))| stretch(key, first, end)));
    true
}

/// A weight in a file.
struct Weight {
    key: Key,
    offset: u64,
    length: u64,
    size: u64,
    dims: Vec<i64>,
}

impl Weight {
    /// By its name; none of one that is in memory, or does not begin at a multiple of its elements' size.
    fn of(tensor: &Tensor) -> Option<(&str, Self)> {
        let entry = |key: &str| tensor.external_data.iter().find(|entry| entry.key == key);
        let location = &entry("location")?.value;
        let number = |key: &str| entry(key).and_then(|entry| entry.value.parse::<u64>().ok());
        let (offset, length) = (number("offset")?, number("length")?);
        let count = tensor.dims.iter().map(|n| n.unsigned_abs()).product::<u64>();
        let size = length.checked_div(count)?;
        if location.starts_with(IN_MEMORY) || size == 0 || !offset.is_multiple_of(size) {
            return None;
        }
        let key = (location.clone(), tensor.data_type);
        Some((&tensor.name, Self { key, offset, length, size, dims: tensor.dims.clone() }))
    }
}

/// The weights of all experts of a linear layer; none where it is another operator, or its weights stay.
fn weights_of<'a>(node: &Node, weights: &'a HashMap<&str, Weight>) -> Option<Vec<&'a Weight>> {
    let own = node.op_type.starts_with("ExpertLinear") && !node.op_type.contains("Quantized");
    let names = node.input.get(BEFORE..).filter(|names| own && names.len() > 1)?;
    let all: Vec<&Weight> = names.iter().map(|name| weights.get(name.as_str())).collect::<Option<_>>()?;
    let first = all.first()?;
    let alike = |it: &&Weight| it.dims == first.dims && it.key.1 == first.key.1 && it.dims.len() == 2;
    all.iter().all(alike).then_some(all)
}

/// The stretches that weights are in, and the attributes that tell where.
fn placed(weights: &[&Weight], stretches: &BTreeMap<Key, (u64, u64)>) -> (Vec<String>, [Attribute; 2]) {
    let mut names: Vec<String> = vec![];
    let mut places = Vec::with_capacity(2 * weights.len());
    for weight in weights {
        let name = name(&weight.key);
        let index = names.iter().position(|it| *it == name).unwrap_or_else(|| {
            names.push(name);
            names.len() - 1
        });
        let (first, _) = stretches[&weight.key];
        places.extend([index as i64, ((weight.offset - first) / weight.size) as i64]);
    }
    let lengths = weights.first().map(|weight| weight.dims.clone()).unwrap_or_default();
    (names, [Attribute::ints(PLACES, places), Attribute::ints(LENGTHS, lengths)])
}

/// What the stretch of a file is called.
fn name((location, data_type): &Key) -> String {
    format!("{location}/experts/{data_type}")
}

/// Bytes of a file as a tensor of one axis.
fn stretch(key: &Key, first: u64, end: u64) -> Tensor {
    let size = match key.1 {
        1 => 4,
        _ => 2,
    };
    let entry = |key: &str, value: String| Entry { key: key.to_owned(), value };
    Tensor {
        name: name(key),
        data_type: key.1,
        dims: vec![((end - first) / size) as i64],
        external_data: vec![
            entry("location", key.0.clone()),
            entry("offset", first.to_string()),
            entry("length", (end - first).to_string()),
        ],
        data_location: Some(1),
        ..Tensor::default()
    }
}

#[cfg(test)]
mod tests;
