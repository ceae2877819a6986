//! Root-mean-square normalisation of a residual stream (Zhang and Sennrich, 2019, arXiv:1910.07467; transformers' `LlamaDecoderLayer`) with
//! the sum that it is of, as one operation.

use std::collections::{BTreeMap, HashMap};

use crate::Result;
use crate::graph::{AddRmsNormOp, AddRmsNormResult, Binary, Dtype, Graph, Node, Op};
use crate::lower::Target;

/// Has one operator add and normalise. It stands where the norm does, or where the sum does, if anything reads that before.
pub(in crate::lower) fn by_operator(g: &mut Graph, _: &Target) -> Result<()> {
    let found = found(g);
    let places: HashMap<usize, [usize; 2]> =
        found.iter().map(|(&sum, &(norm, place))| (place, [sum, norm])).collect();
    let gone: Vec<usize> = found.iter().flat_map(|(&sum, &(norm, _))| [sum, norm]).collect();
    let nodes = std::mem::take(&mut g.nodes);
    for (index, node) in nodes.iter().enumerate() {
        match places.get(&index).map(|at| at.map(|at| &nodes[at])) {
            Some([sum, norm]) => g.nodes.extend(fused(sum, norm)),
            None if gone.contains(&index) => {}
            None => g.nodes.push(node.clone()),
        }
    }
    Ok(())
}

/// What gives the norm of a sum, and what gives the sum.
fn fused(sum: &Node, norm: &Node) -> Vec<Node> {
    let Op::RmsNorm { epsilon } = norm.op else { return vec![sum.clone(), norm.clone()] };
    let inputs = [&sum.inputs[..], &norm.inputs[1..]].concat();
    let of = |node: &Node, gives| {
        let op = Op::AddRmsNorm(AddRmsNormOp { epsilon, gives });
        Node { op, name: node.name.clone(), inputs: inputs.clone(), output: node.output }
    };
    vec![of(norm, AddRmsNormResult::Output), of(sum, AddRmsNormResult::Sum)]
}

/// The places of sums, each with that of its norm and that of what stands for both.
fn found(g: &Graph) -> BTreeMap<usize, (usize, usize)> {
    let made: HashMap<usize, usize> =
        g.nodes.iter().enumerate().map(|(index, node)| (node.output, index)).collect();
    let mut first_read: HashMap<usize, usize> = HashMap::new();
    for (index, node) in g.nodes.iter().enumerate() {
        node.inputs.iter().for_each(|id| {
            first_read.entry(*id).or_insert(index);
        });
    }
    let mut found = BTreeMap::new();
    for (index, node) in g.nodes.iter().enumerate() {
        let (Op::RmsNorm { .. }, &[x, scale]) = (&node.op, &node.inputs[..]) else { continue };
        let Some(&sum) = made.get(&x).filter(|sum| is_sum(g, &g.nodes[**sum])) else { continue };
        let single = [x, scale].iter().all(|id| g.tensor(*id).dtype() == Dtype::F32);
        let by_column = g.tensor(scale).shape() == &g.tensor(x).shape()[g.tensor(x).rank() - 1..];
        let place = match first_read.get(&x) {
            Some(first) if *first == index => index,
            _ if made.get(&scale).is_none_or(|scale| *scale < sum) => sum,
            _ => continue,
        };
        if single && by_column {
            found.entry(sum).or_insert((index, place));
        }
    }
    found
}

/// Whether a node adds two values of one shape.
fn is_sum(g: &Graph, node: &Node) -> bool {
    let alike = |id: &usize| {
        let x = g.tensor(*id);
        x.dtype() == Dtype::F32 && x.shape() == g.tensor(node.output).shape()
    };
    node.op == Op::Binary(Binary::Add) && node.inputs.iter().all(alike)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dims;
    use crate::graph::dims::{BATCH, SEQUENCE};
    use crate::graph::{Input, Tensor, Unary};
    use crate::lower::passes::Pass;
    use crate::lower::passes::testing::after;

    fn with(of: impl FnOnce(&mut Graph, [Tensor; 3]) -> Vec<Tensor>) -> Vec<String> {
        let mut g = Graph::new();
        let [x, y] = ["x", "y"].map(|name| g.input(Input::f32(name, dims![BATCH, SEQUENCE, 4])));
        let row = g.input(Input::f32("row", dims![4]));
        let outputs = of(&mut g, [x, y, row]);
        let outputs: Vec<&Tensor> = outputs.iter().collect();
        let lines = after(Pass::whole("norm", by_operator), &mut g, &outputs);
        lines.into_iter().map(|line| line.replace("f32 ", "").replace(" [batch, sequence, 4]", "")).collect()
    }

    const FUSED: &str = "AddRmsNorm(x, y, w.weight)";

    #[test]
    fn a_sum_and_its_norm_are_one_operation() {
        let lines = with(|g, [x, y, _]| {
            let sum = g.add(&x, &y).unwrap();
            let norm = g.rms_norm(&g.scope("w"), &sum, 1e-6).unwrap();
            vec![g.add(&norm, &sum).unwrap()]
        });
        assert_eq!(lines, [FUSED, FUSED, "Add(%0, %1)"]);
        let lines = with(|g, [x, y, _]| {
            let sum = g.add(&x, &y).unwrap();
            vec![g.rms_norm(&g.scope("w"), &sum, 1e-6).unwrap()]
        });
        assert_eq!(lines, [FUSED]);
    }

    #[test]
    fn it_stands_where_its_operands_and_readers_let_it() {
        let lines = with(|g, [x, y, _]| {
            let sum = g.add(&x, &y).unwrap();
            let before = g.unary(Unary::Neg, &sum);
            vec![g.rms_norm(&g.scope("w"), &sum, 1e-6).unwrap(), before]
        });
        assert_eq!(lines, [FUSED, FUSED, "Neg(%1)"]);
        let computed = |read_before: bool| {
            with(|g, [x, y, row]| {
                let sum = g.add(&x, &y).unwrap();
                let before = if read_before { g.unary(Unary::Neg, &sum) } else { sum.clone() };
                let scale = g.unary(Unary::Abs, &row);
                let shape = sum.shape().to_vec();
                let norm = g.node(Op::RmsNorm { epsilon: 1e-6 }, &[&sum, &scale], Dtype::F32, shape);
                vec![norm, before]
            })
        };
        assert_eq!(computed(false), ["Abs(row) [4]", "AddRmsNorm(x, y, %0)", "AddRmsNorm(x, y, %0)"]);
        assert_eq!(computed(true)[0], "Add(x, y)");
    }

    #[test]
    fn what_is_repeated_stays() {
        let lines = with(|g, [x, _, row]| {
            let sum = g.add(&x, &row).unwrap();
            vec![g.rms_norm(&g.scope("w"), &sum, 1e-6).unwrap()]
        });
        assert_eq!(lines, ["Add(x, row)", "RMSNormalization(%0, w.weight)"]);
    }
}
