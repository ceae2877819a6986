//! Quantized linear layers of the same x by one operator: queries, keys and values, gate and up projections.

use std::collections::{HashMap, HashSet};

use super::super::linear_quantized::{MOST, OPERANDS};
use super::super::operators::DOMAIN;
use crate::onnx::{Graph, Node};

/// The operand that a layer has or not whatever its blocks: its bias, behind x.
const BIAS: usize = 5;

/// Merges layers whose x is the same and whose weights are stored alike; whether there are any.
///
/// x is then rounded once, and threads meet once: a step of Llama 1.1B has 88 such operators where it had 154.
pub(super) fn merge_quantized(graph: &mut Graph) -> bool {
    let weights: HashSet<&str> = graph.initializer.iter().map(|weight| weight.name.as_str()).collect();
    let mut by_x: HashMap<&str, Vec<Vec<usize>>> = HashMap::new();
    for (index, node) in graph.node.iter().enumerate().filter(|(_, node)| is_mergeable(node, &weights)) {
        let groups = by_x.entry(node.input[0].as_str()).or_default();
        let with = groups.iter_mut().find(|group| group.len() < MOST && alike(&graph.node[group[0]], node));
        match with {
            Some(group) => group.push(index),
            None => groups.push(vec![index]),
        }
    }
    let groups: Vec<Vec<usize>> = by_x.into_values().flatten().filter(|group| group.len() > 1).collect();
    let mut gone = HashSet::new();
    for group in &groups {
        let (first, others) = (group[0], &group[1..]);
        for (place, &other) in others.iter().enumerate() {
            let Node { input, output, .. } = std::mem::take(&mut graph.node[other]);
            let into = &mut graph.node[first];
            into.input.resize(1 + OPERANDS * (place + 1), String::new());
            into.input.extend(input.into_iter().skip(1));
            into.output.extend(output);
            gone.insert(other);
        }
    }
    let mut index = 0;
    graph.node.retain(|_| {
        index += 1;
        !gone.contains(&(index - 1))
    });
    !groups.is_empty()
}

/// Whether a node is a quantized layer of weights alone, which are there before any other node.
fn is_mergeable(node: &Node, weights: &HashSet<&str>) -> bool {
    node.domain == DOMAIN
        && node.op_type.starts_with("LinearQuantized")
        && node.output.len() == 1
        && node.input.iter().skip(1).all(|name| name.is_empty() || weights.contains(name.as_str()))
}

/// Whether the codes of two layers are stored alike.
fn alike(one: &Node, other: &Node) -> bool {
    let has = |node: &Node, place: usize| node.input.get(place).is_some_and(|name| !name.is_empty());
    one.op_type == other.op_type
        && one.attribute == other.attribute
        && (1..=OPERANDS).all(|place| place == BIAS || has(one, place) == has(other, place))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Dtype;
    use crate::onnx::{Attribute, Tensor};

    fn layer(name: &str, x: &str, bits: i64, operands: &[&str]) -> Node {
        Node {
            input: [x].iter().chain(operands).map(|name| (*name).to_owned()).collect(),
            output: vec![format!("{name}/y")],
            name: name.to_owned(),
            op_type: "LinearQuantizedF16".to_owned(),
            domain: DOMAIN.to_owned(),
            attribute: vec![Attribute::int("bits", bits)],
        }
    }

    #[test]
    fn layers_of_the_same_x_are_one() {
        let weights = ["q", "qs", "k", "ks", "v", "vs", "b", "z"];
        let mut graph = Graph {
            node: vec![
                layer("query", "x", 4, &["q", "qs"]),
                layer("key", "x", 4, &["k", "ks", "", "", "b"]),
                layer("zeros", "x", 4, &["k", "ks", "z"]),
                layer("other", "x", 8, &["q", "qs"]),
                layer("later", "x", 4, &["q", "computed"]),
                layer("value", "x", 4, &["v", "vs"]),
                layer("up", "h", 4, &["q", "qs"]),
            ],
            initializer: weights.map(|name| Tensor::inline(name, Dtype::U8, &[1], vec![0])).into(),
            ..Graph::default()
        };
        assert!(merge_quantized(&mut graph));
        let names: Vec<_> = graph.node.iter().map(|node| node.name.as_str()).collect();
        assert_eq!(names, ["query", "zeros", "other", "later", "up"]);
        let merged = &graph.node[0];
        let operands = ["x", "q", "qs", "", "", "", "", "k", "ks", "", "", "b", "", "v", "vs"];
        assert_eq!(merged.input, operands);
        assert_eq!(merged.output, ["query/y", "key/y", "value/y"]);
        assert!(!merge_quantized(&mut graph));
    }
}
