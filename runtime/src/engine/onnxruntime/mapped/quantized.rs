//! Linear layers with quantized weights by the runtime's own operator.

use std::collections::HashMap;

use super::super::linear_quantized::{self, BITS, GROUP};
use super::super::operators::DOMAIN;
use crate::graph::Dtype;
use crate::onnx::{self, Attribute, Graph, Node};

/// The level of accuracy from which x may be rounded to 8 bits.
const ROUNDED: i64 = 4;

/// Makes `MatMulNBits` the runtime's own operator where x may be rounded to 8 bits, with scales in the type they are stored in;
/// whether there are any.
pub(super) fn own_quantized(graph: &mut Graph) -> bool {
    let scales = scales(graph);
    let mut found = false;
    for node in &mut graph.node {
        let attribute = |name| node.attribute.iter().find(|it| it.name == name).and_then(|it| it.i);
        let ordered = node.input.get(4).is_some_and(|order| !order.is_empty());
        if node.op_type != "MatMulNBits" || attribute("accuracy_level") != Some(ROUNDED) || ordered {
            continue;
        }
        let (Some(bits), Some(group)) = (attribute("bits"), attribute("block_size")) else { continue };
        let Some((stored, dtype)) = node.input.get(2).and_then(|name| scales.get(name)) else { continue };
        let Some(operator) = linear_quantized::name(*dtype) else { continue };
        found = true;
        operator.clone_into(&mut node.op_type);
        DOMAIN.clone_into(&mut node.domain);
        node.input[2].clone_from(stored);
        node.attribute = vec![Attribute::int(BITS, bits), Attribute::int(GROUP, group)];
    }
    found
}

/// Weights in single precision by their names, with how they are stored.
fn scales(graph: &Graph) -> HashMap<String, (String, Dtype)> {
    let of_type = |dtype: Dtype| {
        let number = onnx::data_type(dtype);
        graph.initializer.iter().filter(move |tensor| tensor.data_type == number).map(|tensor| &tensor.name)
    };
    let mut all: HashMap<String, (String, Dtype)> =
        of_type(Dtype::F32).map(|name| (name.clone(), (name.clone(), Dtype::F32))).collect();
    let single = i64::from(onnx::data_type(Dtype::F32));
    let widened =
        |node: &&Node| node.op_type == "Cast" && node.attribute.iter().any(|to| to.i == Some(single));
    let casts: HashMap<&String, &String> =
        graph.node.iter().filter(widened).map(|node| (&node.input[0], &node.output[0])).collect();
    for name in of_type(Dtype::F16) {
        if let Some(wide) = casts.get(name) {
            all.insert((*wide).clone(), (name.clone(), Dtype::F16));
        }
    }
    all
}
