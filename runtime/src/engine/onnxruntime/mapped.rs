//! Graphs whose weights stay in their mapped pages, in the type they are stored in.

mod convolutions;
mod merged;
mod places;
mod quantized;

use std::collections::{HashMap, HashSet};

use super::cached_attention;
use super::causal_conv;
use super::flash_attention;
use super::linear_attention;
use super::operators::{self, DOMAIN, IN_BF16};
use crate::graph::Dtype;
use crate::onnx::{self, Attribute, Graph, Model, Node, OperatorSet, ValueInfo};

/// Stored weights of 16 bits and fewer elements than this are converted when the session is made.
const SMALL: i64 = 1 << 15;

/// Which weights stay as they are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stay {
    /// Those of 16 bits that linear layers and embeddings read: widened as they are used.
    Linear,
    /// Those that convolutions read as well.
    Narrow,
    /// All: what else is stored in 16 bits is widened whenever it is used.
    All,
}

/// The model with weights as they are stored: linear layers and convolutions are the runtime's own operators, and embeddings are widened
/// after they are looked up. None where it would be the same.
///
/// `in_bf16` has all linear layers, large convolutions and attention over prompts compute in bfloat16.
pub(super) fn stored_weights(model: &Model, stay: Stay, in_bf16: bool) -> Option<Model> {
    let mut model = model.clone();
    let graph = model.graph.as_mut()?;
    let single = in_bf16 || stay == Stay::All;
    let linear = own_linear(graph, single, in_bf16);
    let convolutions =
        (in_bf16 || stay != Stay::Linear) && convolutions::own_convolutions(graph, single, in_bf16);
    let quantized = super::quantized::is_fast() && quantized::own_quantized(graph);
    let widened = widen(graph, stay);
    let narrowed = in_bf16 && own_in_bf16(graph);
    let placed = places::experts_by_place(graph);
    let merged = merged::merge(graph);
    let recurrent = own_recurrence(graph);
    if model.opset_import.iter().all(|set| set.domain != DOMAIN) {
        model.opset_import.push(OperatorSet { domain: DOMAIN.to_owned(), version: Some(1) });
    }
    let own = narrowed || linear || convolutions || quantized || merged || recurrent;
    (own || widened || placed).then_some(model)
}

/// Has the runtime's own kernels compute what has a state wherever a graph has it in single precision; whether it has.
fn own_recurrence(graph: &mut Graph) -> bool {
    let single = |info: &&ValueInfo| {
        let tensor = info.kind.as_ref().and_then(|kind| kind.tensor.as_ref());
        tensor.is_some_and(|tensor| tensor.elem_type == onnx::data_type(Dtype::F32))
    };
    let known = graph.value_info.iter().chain(&graph.input).filter(single);
    let single: HashSet<String> = known.map(|info| info.name.clone()).collect();
    let is_own = |node: &&mut Node| {
        let in_single = node.input.first().is_some_and(|name| single.contains(name));
        let own = [linear_attention::NAME, causal_conv::NAME].contains(&node.op_type.as_str());
        own && node.domain == "com.microsoft" && in_single
    };
    let nodes: Vec<_> = graph.node.iter_mut().filter(is_own).collect();
    let any = !nodes.is_empty();
    for node in nodes {
        DOMAIN.clone_into(&mut node.domain);
    }
    any
}

/// The types of the floating-point weights, by name.
fn stored(graph: &Graph) -> HashMap<String, (Dtype, i64)> {
    let dtype = |data_type: i32| {
        [Dtype::F32, Dtype::Bf16, Dtype::F16].into_iter().find(|dtype| onnx::data_type(*dtype) == data_type)
    };
    let weights = graph.initializer.iter().filter_map(|tensor| {
        let elements = tensor.dims.iter().product();
        Some((tensor.name.clone(), (dtype(tensor.data_type)?, elements)))
    });
    weights.collect()
}

/// The weights of 16 bits by the names that their values in single precision have.
fn casts(graph: &Graph) -> HashMap<String, (String, Dtype)> {
    let stored = stored(graph);
    let single = i64::from(onnx::data_type(Dtype::F32));
    let to_single =
        |node: &&Node| node.op_type == "Cast" && node.attribute.iter().any(|to| to.i == Some(single));
    let casts = graph.node.iter().filter(to_single).filter_map(|node| {
        let (dtype, elements) = *stored.get(node.input.first()?)?;
        let narrow = operators::widen(dtype).is_some() && elements >= SMALL;
        narrow.then(|| (node.output[0].clone(), (node.input[0].clone(), dtype)))
    });
    casts.collect()
}

/// Widens embeddings of 16 bits after they are looked up, and where all weights stay, others by the runtime's own operator;
/// whether there are any.
fn widen(graph: &mut Graph, stay: Stay) -> bool {
    let casts = casts(graph);
    let mut found = false;
    let nodes = std::mem::take(&mut graph.node);
    for mut node in nodes {
        let weight = node.input.first().and_then(|name| casts.get(name));
        match weight {
            Some((weight, _)) if node.op_type == "Gather" => {
                found = true;
                let looked_up = format!("{}/stored", node.output[0]);
                let to = Attribute::int("to", i64::from(onnx::data_type(Dtype::F32)));
                let cast = Node {
                    input: vec![looked_up.clone()],
                    output: std::mem::replace(&mut node.output, vec![looked_up]),
                    name: format!("{}/Cast", node.name),
                    op_type: "Cast".to_owned(),
                    attribute: vec![to],
                    domain: String::new(),
                };
                node.input[0].clone_from(weight);
                graph.node.extend([node, cast]);
            }
            _ => graph.node.push(node),
        }
    }
    prune(graph);
    for node in graph.node.iter_mut().filter(|_| stay == Stay::All) {
        let Some(operator) = casts.get(&node.output[0]).and_then(|(_, dtype)| operators::widen(*dtype))
        else {
            continue;
        };
        found = true;
        operator.clone_into(&mut node.op_type);
        DOMAIN.clone_into(&mut node.domain);
        node.attribute.clear();
    }
    found
}

/// Leaves out what nothing takes any more.
fn prune(graph: &mut Graph) {
    let mut used: HashSet<String> = graph.output.iter().map(|output| output.name.clone()).collect();
    let mut kept: Vec<Node> = vec![];
    for node in std::mem::take(&mut graph.node).into_iter().rev() {
        if node.output.iter().any(|output| used.contains(output)) {
            used.extend(node.input.iter().cloned());
            kept.push(node);
        }
    }
    kept.reverse();
    graph.node = kept;
}

/// Makes linear layers with weights of 16 bits the runtime's own operator, and with `single` those of 32 as well; whether
/// there are any.
fn own_linear(graph: &mut Graph, single: bool, in_bf16: bool) -> bool {
    let (stored, casts) = (stored(graph), casts(graph));
    let mut found = false;
    for node in graph.node.iter_mut().filter(|node| is_linear(node)) {
        let weight = &node.input[1];
        let (weight, dtype) = match (stored.get(weight), casts.get(weight)) {
            (Some((Dtype::F32, _)), _) if single => (weight.clone(), Dtype::F32),
            (_, Some(narrow)) => narrow.clone(),
            _ => continue,
        };
        let Some(operator) = operators::linear(dtype) else { continue };
        found = true;
        node.input[1] = weight;
        operator.clone_into(&mut node.op_type);
        DOMAIN.clone_into(&mut node.domain);
        node.attribute = if in_bf16 { vec![Attribute::int(IN_BF16, 1)] } else { vec![] };
    }
    unflatten(graph);
    found
}

/// Has linear layers of selected experts and attention compute in bfloat16; whether there are any.
fn own_in_bf16(graph: &mut Graph) -> bool {
    let own = |node: &&mut Node| {
        let operator = node.op_type.as_str();
        let experts = operator.starts_with("ExpertLinear") && !operator.contains("Quantized");
        experts || [flash_attention::NAME, cached_attention::NAME].contains(&operator)
    };
    let mut found = false;
    for node in graph.node.iter_mut().filter(own) {
        node.attribute.push(Attribute::int(IN_BF16, 1));
        found = true;
    }
    found
}

/// Whether a node is `x · wᵀ`, plus a bias or not.
fn is_linear(node: &Node) -> bool {
    let [transposed] = node.attribute.as_slice() else { return false };
    node.op_type == "Gemm"
        && node.domain.is_empty()
        && transposed.name == "transB"
        && transposed.i == Some(1)
        && matches!(node.input.len(), 2 | 3)
}

/// Leaves out the reshapes around linear layers: `Gemm` takes two axes, the runtime's own operator any number.
///
/// They are known by their names: lowering names the one before as a part of a layer, which others that read the same may
/// share, and the one after as the layer itself.
fn unflatten(graph: &mut Graph) {
    let reshapes = || graph.node.iter().filter(|node| node.op_type == "Reshape");
    let before: HashMap<String, String> = reshapes()
        .filter(|node| is_part_of_linear(&node.name))
        .map(|node| (node.output[0].clone(), node.input[0].clone()))
        .collect();
    let after: HashMap<String, (String, String)> =
        reshapes().map(|node| (node.input[0].clone(), (node.name.clone(), node.output[0].clone()))).collect();
    let mut readers: HashMap<String, usize> = HashMap::new();
    for input in graph.node.iter().flat_map(|node| &node.input) {
        *readers.entry(input.clone()).or_default() += 1;
    }
    let mut gone = HashSet::new();
    for node in graph.node.iter_mut().filter(|node| node.domain == DOMAIN) {
        let layer = node.name.rsplit_once('/').map_or("", |(layer, _)| layer);
        let (Some(x), Some((name, result))) = (before.get(&node.input[0]), after.get(&node.output[0])) else {
            continue;
        };
        if name == layer && readers.get(&node.output[0]) == Some(&1) {
            node.input[0].clone_from(x);
            gone.insert(result.clone());
            node.output[0].clone_from(result);
        }
    }
    graph.node.retain(|node| node.op_type != "Reshape" || !gone.contains(&node.output[0]));
}

/// Whether a node was made of a linear layer: `/layer/query/Linear_1/Reshape`.
fn is_part_of_linear(name: &str) -> bool {
    let layer = name.rsplit_once('/').and_then(|(layer, _)| layer.rsplit_once('/'));
    layer.is_some_and(|(_, operation)| operation.starts_with("Linear"))
}

#[cfg(test)]
mod tests;
