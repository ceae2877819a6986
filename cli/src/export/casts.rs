//! Weights in the type that the graph computes in, instead of a cast of each.

use std::collections::{BTreeMap, BTreeSet};

use half::{bf16, f16};
use weft::onnx::{Graph, Node, Tensor};

/// The element types (`TensorProto.DataType`) that tensors are stored in and not written in, by the tensors' names.
pub type Casts = BTreeMap<String, i32>;

const FLOAT: i32 = 1;
const FLOAT16: i32 = 10;
const BFLOAT16: i32 = 16;

/// Takes casts of floating-point weights out of a graph: these are then of the type that they were cast to.
pub fn fold(graph: &mut Graph) -> Casts {
    let floats = [FLOAT, FLOAT16, BFLOAT16];
    let stored: BTreeMap<String, usize> = graph
        .initializer
        .iter()
        .enumerate()
        .filter(|(_, tensor)| tensor.data_location == Some(1) && floats.contains(&tensor.data_type))
        .map(|(index, tensor)| (tensor.name.clone(), index))
        .collect();
    let mut casts = Casts::new();
    let mut added: Vec<Tensor> = vec![];
    let mut folded = BTreeSet::new();
    let initializers = &graph.initializer;
    retain_nodes(&mut graph.node, &mut |node| {
        let to = node.attribute.iter().find(|attribute| attribute.name == "to").and_then(|to| to.i);
        let (Some(index), Some(to)) = (node.input.first().and_then(|name| stored.get(name)), to) else {
            return true;
        };
        if node.op_type != "Cast" || !floats.contains(&(to as i32)) {
            return true;
        }
        let from = &initializers[*index];
        // The branches of `If` may cast the same weight.
        if casts.insert(node.output[0].clone(), from.data_type).is_none() {
            added.push(Tensor { name: node.output[0].clone(), data_type: to as i32, ..from.clone() });
        }
        folded.insert(from.name.clone());
        false
    });
    let mut read: BTreeSet<&String> = graph.output.iter().map(|output| &output.name).collect();
    operands(&graph.node, &mut read);
    let needed = |name: &String| read.contains(name) || !folded.contains(name);
    graph.initializer.retain(|tensor| needed(&tensor.name));
    graph.initializer.extend(added);
    casts
}

/// Keeps nodes by a rule, in branches too.
fn retain_nodes(nodes: &mut Vec<Node>, keep: &mut impl FnMut(&Node) -> bool) {
    nodes.retain(|node| keep(node));
    for branch in nodes.iter_mut().flat_map(|node| &mut node.attribute).filter_map(|one| one.g.as_mut()) {
        retain_nodes(&mut branch.node, keep);
    }
}

/// The values that nodes read, in branches too.
fn operands<'a>(nodes: &'a [Node], read: &mut BTreeSet<&'a String>) {
    for node in nodes {
        read.extend(&node.input);
        node.attribute.iter().filter_map(|one| one.g.as_ref()).for_each(|graph| operands(&graph.node, read));
    }
}

/// Elements of one floating-point type as those of another.
pub fn cast(bytes: &[u8], from: i32, to: i32) -> Vec<u8> {
    let wide = |pair: &[u8; 2]| match from {
        BFLOAT16 => bf16::from_le_bytes(*pair).to_f32(),
        _ => f16::from_le_bytes(*pair).to_f32(),
    };
    let values: Vec<f32> = match from {
        FLOAT => bytes.as_chunks().0.iter().map(|four| f32::from_le_bytes(*four)).collect(),
        _ => bytes.as_chunks().0.iter().map(wide).collect(),
    };
    match to {
        FLOAT16 => values.iter().flat_map(|x| f16::from_f32(*x).to_le_bytes()).collect(),
        BFLOAT16 => values.iter().flat_map(|x| bf16::from_f32(*x).to_le_bytes()).collect(),
        _ => values.iter().flat_map(|x| x.to_le_bytes()).collect(),
    }
}

#[cfg(test)]
mod tests {
    use weft::Dtype;
    use weft::onnx::Attribute;

    use super::*;

    #[test]
    fn a_cast_weight_is_stored_in_the_type_it_is_cast_to() {
        let tensor = |name| Tensor::external(name, Dtype::F32, &[2], "model.safetensors", 8, 8);
        let node = |op: &str, input: &str, output: &str| Node {
            input: vec![input.to_owned()],
            output: vec![output.to_owned()],
            op_type: op.to_owned(),
            attribute: vec![Attribute::int("to", 10)],
            ..Node::default()
        };
        let mut graph = Graph {
            initializer: vec![tensor("w"), tensor("b")],
            node: vec![node("Cast", "w", "half"), node("Cast", "b", "b.half"), node("Relu", "b", "y")],
            ..Graph::default()
        };
        assert_eq!(fold(&mut graph), [("half".to_owned(), 1), ("b.half".to_owned(), 1)].into());
        let names: Vec<_> =
            graph.initializer.iter().map(|tensor| (tensor.name.as_str(), tensor.data_type)).collect();
        assert_eq!(names, [("b", 1), ("half", 10), ("b.half", 10)], "another reader keeps its own");
        assert_eq!(graph.node.len(), 1);
    }

    #[test]
    fn a_weight_that_both_branches_cast_is_stored_once() {
        let tensor = Tensor::external("w", Dtype::F32, &[2], "model.safetensors", 8, 8);
        let cast = Node {
            input: vec!["w".to_owned()],
            output: vec!["half".to_owned()],
            op_type: "Cast".to_owned(),
            attribute: vec![Attribute::int("to", 10)],
            ..Node::default()
        };
        let branch = Graph { node: vec![cast], ..Graph::default() };
        let branches = ["then_branch", "else_branch"].map(|name| Attribute::graph(name, branch.clone()));
        let choice = Node { op_type: "If".to_owned(), attribute: branches.to_vec(), ..Node::default() };
        let mut graph = Graph { initializer: vec![tensor], node: vec![choice], ..Graph::default() };
        assert_eq!(fold(&mut graph), [("half".to_owned(), 1)].into());
        assert_eq!(graph.initializer.iter().map(|tensor| tensor.name.as_str()).collect::<Vec<_>>(), ["half"]);
    }

    #[test]
    fn elements_are_rounded_to_the_nearest() {
        let ones: Vec<u8> = [1.0_f32, -2.5].iter().flat_map(|x| x.to_le_bytes()).collect();
        let halves = cast(&ones, 1, 10);
        assert_eq!(halves, [0, 0x3c, 0, 0xc1]);
        assert_eq!(cast(&halves, 10, 1), ones);
        assert_eq!(cast(&cast(&ones, 1, 16), 16, 10), halves);
    }
}
