//! Linear layers of the same x by one operator: queries, keys and values, gate and up projections.

use std::collections::{HashMap, HashSet};

use super::super::operators::{self, DOMAIN};
use super::super::{experts, linear, linear_quantized};
use crate::graph::Dtype;
use crate::onnx::{Attribute, Graph, Node};

/// The operand that a quantized layer has or not whatever its blocks: its bias, behind x.
const BIAS: usize = 5;

/// Which operator layers are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Linear,
    Quantized,
    /// Of experts that are found by their places.
    Experts,
}

impl Kind {
    fn of(node: &Node) -> Option<Self> {
        if node.domain != DOMAIN || node.output.len() != 1 {
            return None;
        }
        let stored = [Dtype::F32, Dtype::Bf16, Dtype::F16];
        if stored.into_iter().any(|dtype| operators::linear(dtype) == Some(&node.op_type)) {
            return Some(Self::Linear);
        }
        if node.op_type.starts_with("LinearQuantized") {
            return Some(Self::Quantized);
        }
        node.attribute.iter().any(|it| it.name == experts::PLACES).then_some(Self::Experts)
    }

    /// How many of the first operands layers have in common.
    fn shared(self) -> usize {
        if self == Self::Experts { 2 } else { 1 }
    }

    /// The most layers of an operator.
    fn most(self) -> usize {
        if self == Self::Experts { experts::MOST } else { linear_quantized::MOST }
    }

    /// Whether two layers are stored alike.
    fn alike(self, one: &Node, other: &Node) -> bool {
        let has = |node: &Node, place: usize| node.input.get(place).is_some_and(|name| !name.is_empty());
        let known = |it: &&Attribute| ![experts::PLACES, experts::LENGTHS].contains(&it.name.as_str());
        let rest = |node: &Node| node.attribute.iter().filter(known).cloned().collect::<Vec<_>>();
        let count =
            |node: &Node| node.attribute.iter().find(|it| it.name == experts::PLACES).map(|it| it.ints.len());
        one.op_type == other.op_type
            && match self {
                Self::Linear => one.attribute == other.attribute,
                Self::Experts => rest(one) == rest(other) && count(one) == count(other),
                Self::Quantized => {
                    let mut places = 1..=linear_quantized::OPERANDS;
                    one.attribute == other.attribute
                        && places.all(|place| place == BIAS || has(one, place) == has(other, place))
                }
            }
    }
}

/// Merges layers whose x is the same and whose weights are stored alike; whether there are any.
///
/// Threads meet once then, and what is rounded of x is rounded once: a step of Llama 1.1B has 88 such operators where it had 154.
pub(super) fn merge(graph: &mut Graph) -> bool {
    let weights: HashSet<&str> = graph.initializer.iter().map(|weight| weight.name.as_str()).collect();
    let mut by_x: HashMap<&[String], Vec<(Kind, Vec<usize>)>> = HashMap::new();
    for (index, node) in graph.node.iter().enumerate() {
        let Some(kind) = Kind::of(node).filter(|kind| is_of_weights(node, kind.shared(), &weights)) else {
            continue;
        };
        let groups = by_x.entry(&node.input[..kind.shared()]).or_default();
        let fits = |(other, group): &&mut (Kind, Vec<usize>)| {
            *other == kind && group.len() < kind.most() && kind.alike(&graph.node[group[0]], node)
        };
        match groups.iter_mut().find(fits) {
            Some((_, group)) => group.push(index),
            None => groups.push((kind, vec![index])),
        }
    }
    let groups: Vec<_> = by_x.into_values().flatten().filter(|(_, group)| group.len() > 1).collect();
    let mut gone = HashSet::new();
    for (kind, group) in &groups {
        for (place, &other) in group[1..].iter().enumerate() {
            let node = std::mem::take(&mut graph.node[other]);
            append(&mut graph.node[group[0]], node, place + 1, *kind);
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

/// Adds a layer to an operator that has so many.
fn append(into: &mut Node, node: Node, place: usize, kind: Kind) {
    into.output.extend(node.output);
    let operands = match kind {
        Kind::Linear => linear::OPERANDS,
        Kind::Quantized => linear_quantized::OPERANDS,
        Kind::Experts => return append_experts(into, &node.input, node.attribute),
    };
    into.input.resize(1 + operands * place, String::new());
    into.input.extend(node.input.into_iter().skip(1));
}

/// The same by places in stretches of files, which both may have in common.
fn append_experts(into: &mut Node, input: &[String], attributes: Vec<Attribute>) {
    let shared = Kind::Experts.shared();
    let stretches: Vec<i64> = input[shared..]
        .iter()
        .map(|name| {
            let known = into.input[shared..].iter().position(|it| it == name);
            known.unwrap_or_else(|| {
                into.input.push(name.clone());
                into.input.len() - shared - 1
            }) as i64
        })
        .collect();
    for attribute in attributes {
        let Some(own) = into.attribute.iter_mut().find(|own| own.name == attribute.name) else { continue };
        match attribute.name.as_str() {
            experts::PLACES => {
                for [stretch, first] in attribute.ints.as_chunks().0 {
                    own.ints.extend([stretches[*stretch as usize], *first]);
                }
            }
            experts::LENGTHS => own.ints.extend(attribute.ints),
            _ => {}
        }
    }
}

/// Whether a node's operands but the first are weights alone, which are there before any other node.
fn is_of_weights(node: &Node, shared: usize, weights: &HashSet<&str>) -> bool {
    node.input.len() > shared
        && node.input.iter().skip(shared).all(|name| name.is_empty() || weights.contains(name.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::onnx::Tensor;

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
        assert!(merge(&mut graph));
        let names: Vec<_> = graph.node.iter().map(|node| node.name.as_str()).collect();
        assert_eq!(names, ["query", "zeros", "other", "later", "up"]);
        let merged = &graph.node[0];
        let operands = ["x", "q", "qs", "", "", "", "", "k", "ks", "", "", "b", "", "v", "vs"];
        assert_eq!(merged.input, operands);
        assert_eq!(merged.output, ["query/y", "key/y", "value/y"]);
        assert!(!merge(&mut graph));
    }

    /// Linear layers with a weight, or a bias too.
    fn linear(name: &str, operands: &[&str]) -> Node {
        Node { op_type: "LinearBf16".to_owned(), attribute: vec![], ..layer(name, "x", 0, operands) }
    }

    #[test]
    fn layers_of_stored_weights_are_one() {
        let node = vec![linear("query", &["q", "b"]), linear("key", &["k"]), linear("value", &["v", "b"])];
        let initializer = ["q", "k", "v", "b"].map(|name| Tensor::inline(name, Dtype::U8, &[1], vec![0]));
        let mut graph = Graph { node, initializer: initializer.into(), ..Graph::default() };
        assert!(merge(&mut graph));
        let [merged] = graph.node.as_slice() else { panic!("{:?}", graph.node) };
        assert_eq!(merged.input, ["x", "q", "b", "k", "", "v", "b"]);
        assert_eq!(merged.output, ["query/y", "key/y", "value/y"]);
    }

    #[test]
    fn experts_of_the_same_rows_are_one() {
        let experts = |name: &str, files: &[&str], places: &[i64], out: i64| Node {
            input: ["x", "indices"].iter().chain(files).map(|name| (*name).to_owned()).collect(),
            op_type: "ExpertLinearBf16".to_owned(),
            attribute: vec![
                Attribute::int("transposed", 0),
                Attribute::ints(experts::PLACES, places.to_vec()),
                Attribute::ints(experts::LENGTHS, vec![out, 8]),
            ],
            ..layer(name, "x", 0, &[])
        };
        let node = vec![
            experts("gate", &["one"], &[0, 5, 0, 7], 4),
            experts("up", &["two", "one"], &[0, 1, 1, 2], 6),
            experts("more", &["one"], &[0, 5, 0, 7], 4),
        ];
        let initializer = ["one", "two"].map(|name| Tensor::inline(name, Dtype::U8, &[1], vec![0]));
        let mut graph = Graph { node, initializer: initializer.into(), ..Graph::default() };
        assert!(merge(&mut graph));
        let [merged, alone] = graph.node.as_slice() else { panic!("{:?}", graph.node) };
        assert_eq!(merged.input, ["x", "indices", "one", "two"]);
        assert_eq!(merged.attribute[1].ints, [0, 5, 0, 7, 1, 1, 0, 2]);
        assert_eq!(merged.attribute[2].ints, [4, 8, 6, 8]);
        assert_eq!((merged.output.len(), alone.name.as_str()), (2, "more"));
    }
}
