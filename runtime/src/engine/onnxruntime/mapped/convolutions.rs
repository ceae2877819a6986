//! Convolutions of stored and of quantized weights, with the batch normalisation and the activation behind them.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::super::convolution::{EPSILON, RELU, SILU, quantized};
use super::{casts, operators, stored};
use crate::graph::Dtype;
use crate::onnx::{Attribute, Graph, Node, ValueInfo};

/// Convolutions with fewer weights than this stay ONNX Runtime's: they have many positions, over which what it keeps costs
/// little and its blocked layout pays.
const LARGE: i64 = 1 << 17;

/// The fewest products in a sum, and channels of a group: with fewer, as depthwise convolutions have, windows take longer to
/// lay than to multiply.
const FEWEST: i64 = 32;

/// The fewest channels on both sides of convolutions that are computed by tiles.
const TILED: i64 = 64;

/// Makes convolutions with weights of 16 bits the runtime's own operator, and with `single` those of 32 as well, else such as are
/// computed by tiles alone; takes what follows into them, and into those of quantized weights; whether there are any. `in_bf16` has
/// them compute in bfloat16.
pub(super) fn own_convolutions(graph: &mut Graph, single: bool, in_bf16: bool) -> bool {
    let (stored, casts) = (stored(graph), casts(graph));
    let dims: HashMap<&str, &[i64]> =
        graph.initializer.iter().map(|weight| (weight.name.as_str(), weight.dims.as_slice())).collect();
    let pooled = is_pooled(graph);
    let own = |node: &Node| -> Option<(String, &'static str)> {
        if node.op_type != "Conv" || !node.domain.is_empty() {
            return None;
        }
        let weight = node.input.get(1)?;
        let (weight, dtype) = match (stored.get(weight), casts.get(weight)) {
            (Some((Dtype::F32, _)), _) => (weight.clone(), Dtype::F32),
            (_, Some(narrow)) => narrow.clone(),
            _ => return None,
        };
        let dims = dims.get(weight.as_str())?;
        if !pooled && by_tiles(node, dims) {
            return operators::convolution(dtype).map(|own| (weight, own));
        }
        let groups = node.attribute.iter().find(|it| it.name == "group").and_then(|it| it.i).unwrap_or(1);
        let (out, window) = dims.split_first()?;
        let (depth, axes) = (window.iter().product::<i64>(), window.len() - 1);
        let large = out * depth >= LARGE && depth >= FEWEST && out / groups.max(1) >= FEWEST;
        let own = large && (1..=3).contains(&axes) && (single || dtype != Dtype::F32);
        own.then(|| operators::convolution(dtype).map(|own| (weight, own)))?
    };
    let made = |node: &Node| -> Option<Node> {
        if node.op_type == quantized::NAME && node.domain == operators::DOMAIN {
            return Some(node.clone());
        }
        let (weight, operator) = own(node)?;
        let mut node = node.clone();
        node.input[1] = weight;
        operator.clone_into(&mut node.op_type);
        operators::DOMAIN.clone_into(&mut node.domain);
        node.attribute.extend(in_bf16.then(|| Attribute::int(operators::IN_BF16, 1)));
        Some(node)
    };
    let found: BTreeMap<usize, Node> =
        graph.node.iter().enumerate().filter_map(|(at, node)| Some((at, made(node)?))).collect();
    let readers = readers(graph);
    let mut gone = HashSet::new();
    let mut made: HashMap<usize, Node> = HashMap::new();
    let any = !found.is_empty();
    for (at, mut node) in found {
        let mut last = at;
        for take in [batch_normalization, addition, relu] {
            let Some(next) = readers.get(&node.output[0]).copied().flatten() else { break };
            // The sum of two convolutions is the first one's.
            let taken = made.contains_key(&next) || gone.contains(&next);
            if !taken && take(&mut node, &graph.node[next]) {
                gone.insert(last);
                last = next;
            }
        }
        if let Some([sigmoid, product]) = silu(graph, &node) {
            node.attribute.push(Attribute::int(SILU, 1));
            node.output.clone_from(&graph.node[product].output);
            gone.extend([last, sigmoid]);
            last = product;
        }
        made.insert(last, node);
    }
    let nodes = std::mem::take(&mut graph.node).into_iter().enumerate();
    graph.node = nodes
        .filter(|(at, _)| !gone.contains(at))
        .map(|(at, node)| made.remove(&at).unwrap_or(node))
        .collect();
    any
}

/// Whether nothing that a graph gives has more than two axes, as of classifiers: their images shrink to few positions, of 224 px to 7 x 7,
/// for which tiles are no faster, and convolutions between which nothing changes the layout stay together.
fn is_pooled(graph: &Graph) -> bool {
    let axes = |output: &ValueInfo| {
        let tensor = output.kind.as_ref().and_then(|kind| kind.tensor.as_ref());
        tensor.and_then(|tensor| tensor.shape.as_ref()).map_or(0, |shape| shape.dim.len())
    };
    graph.output.iter().all(|output| axes(output) <= 2)
}

/// Whether a convolution with a weight of this shape is one of 3 x 3 that the runtime computes by tiles, in a third of the products.
fn by_tiles(node: &Node, dims: &[i64]) -> bool {
    let &[out, channels, 3, 3] = dims else { return false };
    let of_ones = |name: &str| {
        let list = node.attribute.iter().find(|it| it.name == name);
        list.is_none_or(|list| list.ints.iter().all(|one| *one == 1))
    };
    let groups = node.attribute.iter().find(|it| it.name == "group").and_then(|it| it.i).unwrap_or(1);
    let wide = out >= TILED && channels >= TILED && groups == 1;
    wide && of_ones("strides") && of_ones("dilations")
}

/// Where what follows a convolution's weight begins among its operands.
fn others(convolution: &Node) -> usize {
    if convolution.op_type == quantized::NAME { quantized::OTHERS } else { 2 }
}

/// All nodes that read a value.
fn reading<'a>(graph: &'a Graph, name: &str) -> Vec<(usize, &'a Node)> {
    let nodes = graph.node.iter().enumerate();
    nodes.filter(|(_, node)| node.input.iter().any(|input| input == name)).collect()
}

/// The node that reads a value, where it is one alone.
fn readers(graph: &Graph) -> HashMap<String, Option<usize>> {
    let mut readers: HashMap<String, Option<usize>> = HashMap::new();
    for (at, node) in graph.node.iter().enumerate() {
        for input in &node.input {
            readers.entry(input.clone()).and_modify(|reader| *reader = None).or_insert(Some(at));
        }
    }
    for output in &graph.output {
        readers.insert(output.name.clone(), None);
    }
    readers
}

/// The two nodes that make `x · sigmoid(x)` of a quantized convolution's result and nothing else reads, where nothing but batch
/// normalisation was taken in.
fn silu(graph: &Graph, convolution: &Node) -> Option<[usize; 2]> {
    let plain = convolution.input.len() <= quantized::OTHERS + 5
        && convolution.attribute.iter().all(|attribute| attribute.name != RELU);
    let result = &convolution.output[0];
    if convolution.op_type != quantized::NAME || !plain || graph.output.iter().any(|it| it.name == *result) {
        return None;
    }
    let readers = reading(graph, result);
    let &[(sigmoid, gate), (product, last)] = readers.as_slice() else { return None };
    let is_gate = gate.op_type == "Sigmoid" && !graph.output.iter().any(|it| it.name == gate.output[0]);
    let of_both = last.op_type == "Mul" && last.input.contains(&gate.output[0]);
    (is_gate && of_both && reading(graph, &gate.output[0]).len() == 1).then_some([sigmoid, product])
}

/// Takes batch normalisation into a convolution; whether it is one.
fn batch_normalization(convolution: &mut Node, next: &Node) -> bool {
    let is_one = next.op_type == "BatchNormalization" && next.input.len() == 5 && next.output.len() == 1;
    if !is_one || next.input[0] != convolution.output[0] {
        return false;
    }
    let epsilon = next.attribute.iter().find(|it| it.name == EPSILON).and_then(|it| it.f);
    convolution.input.resize(others(convolution) + 1, String::new());
    convolution.input.extend_from_slice(&next.input[1..]);
    convolution.attribute.push(Attribute::float(EPSILON, epsilon.unwrap_or(1e-5)));
    convolution.output.clone_from(&next.output);
    true
}

/// Takes the sum with another value into a convolution; whether it is one.
fn addition(convolution: &mut Node, next: &Node) -> bool {
    let [a, b] = next.input.as_slice() else { return false };
    let is_one = next.op_type == "Add" && next.domain.is_empty() && a != b;
    if is_one {
        let other = if *a == convolution.output[0] { b } else { a };
        convolution.input.resize(others(convolution) + 5, String::new());
        convolution.input.push(other.clone());
        convolution.output.clone_from(&next.output);
    }
    is_one
}

/// Takes the rectifier into a convolution; whether it is one.
fn relu(convolution: &mut Node, next: &Node) -> bool {
    let is_one = next.op_type == "Relu" && next.domain.is_empty();
    if is_one {
        convolution.attribute.push(Attribute::int(RELU, 1));
        convolution.output.clone_from(&next.output);
    }
    is_one
}

#[cfg(test)]
mod tests;
