//! Gated linear units (SwiGLU and GEGLU: Shazeer, 2020, arXiv:2002.05202; transformers' `LlamaMLP`), as one operation.

use std::collections::HashMap;

use crate::Result;
use crate::graph::{Activation, Binary, Dtype, GluOp, Graph, Op, Tensor};
use crate::lower::Target;

/// Has one operator compute `act(gate) · up`, where nothing else reads what the activation function gives. Of gates and factors that are
/// halves of one value it takes the whole.
pub(in crate::lower) fn by_operator(g: &mut Graph, _: &Target) -> Result<()> {
    let mut readers: HashMap<usize, usize> = HashMap::new();
    let outputs = g.outputs.iter().map(|(_, id)| id);
    for id in g.nodes.iter().flat_map(|node| &node.inputs).chain(outputs) {
        *readers.entry(*id).or_default() += 1;
    }
    g.rewrite(|g, it| {
        let (Op::Binary(Binary::Mul), [a, b]) = (it.op, it.operands) else { return Ok(None) };
        if it.result.dtype() != Dtype::F32 || a.shape() != b.shape() {
            return Ok(None);
        }
        let gated = [(a, b), (b, a)].into_iter().find_map(|(activated, factors)| {
            let (act, gates) = gates(g, activated)?;
            (readers.get(&activated.id) == Some(&1)).then_some((act, gates, factors))
        });
        let Some((act, gates, factors)) = gated else { return Ok(None) };
        let halves = halves(g, &gates, factors);
        let factors_first = halves.as_ref().is_some_and(|(_, factors_first)| *factors_first);
        let operands = match &halves {
            Some((whole, _)) => vec![whole],
            None => vec![&gates, factors],
        };
        let op = Op::Glu(GluOp { act, factors_first });
        Ok(Some(g.node(op, &operands, Dtype::F32, it.result.shape().to_vec())))
    })?;
    g.prune();
    Ok(())
}

/// The activation function that a value is of, and what of.
fn gates(g: &Graph, x: &Tensor) -> Option<(Activation, Tensor)> {
    let node = g.made_by(x)?;
    let Op::Activate(act) = node.op else { return None };
    let known = act == Activation::Gelu || sharpness(act).is_some();
    known.then(|| (act, g.tensor(node.inputs[0]).clone()))
}

/// Of activation functions that are `gate · σ(alpha · gate)`: alpha. GELU by its hyperbolic tangent could be written so, but then departs from
/// the reference's own rounding of `1 + tanh(y)`, which norms behind it make large (Gemma 4).
pub(in crate::lower) fn sharpness(act: Activation) -> Option<f32> {
    match act {
        Activation::Silu => Some(1.0),
        Activation::QuickGelu => Some(1.702),
        _ => None,
    }
}

/// What gates and factors are the halves of, and whether factors are the first.
fn halves(g: &Graph, gates: &Tensor, factors: &Tensor) -> Option<(Tensor, bool)> {
    let part = |x: &Tensor| {
        let node = g.made_by(x)?;
        match &node.op {
            Op::Slice { axis, start, end, step: 1 } if axis + 1 == x.rank() => {
                Some((node.inputs[0], [start.fixed()?, end.fixed()?]))
            }
            _ => None,
        }
    };
    let ((whole, gates), (other, factors)) = (part(gates)?, part(factors)?);
    let x = g.tensor(whole);
    let (width, last) = (gates[1] - gates[0], x.dim(-1)?.fixed()?);
    let ordered = [gates, factors] == [[0, width], [width, last]];
    let factors_first = [factors, gates] == [[0, width], [width, last]];
    let halved = whole == other && last == 2 * width && (ordered || factors_first);
    halved.then(|| (x.clone(), factors_first))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::dims::{BATCH, SEQUENCE};
    use crate::graph::{Input, Unary};
    use crate::lower::passes::Pass;
    use crate::lower::passes::testing::after;
    use crate::{dims, graph::Dim};

    fn with(of: impl FnOnce(&mut Graph, Tensor, Tensor) -> Vec<Tensor>) -> Vec<String> {
        let mut g = Graph::new();
        let gate = g.input(Input::f32("gate", dims![BATCH, SEQUENCE, 8]));
        let up = g.input(Input::f32("up", dims![BATCH, SEQUENCE, 8]));
        let outputs = of(&mut g, gate, up);
        let outputs: Vec<&Tensor> = outputs.iter().collect();
        let lines = after(Pass::whole("glu", by_operator), &mut g, &outputs);
        lines.into_iter().map(|line| line.replace("f32 ", "").replace("batch, sequence, ", "")).collect()
    }

    #[test]
    fn gates_and_factors_are_one_operation_in_either_order() {
        for act in [Activation::Silu, Activation::QuickGelu, Activation::Gelu] {
            for swapped in [false, true] {
                let lines = with(|g, gate, up| {
                    let gate = g.activation(act, &gate).unwrap();
                    vec![if swapped { g.mul(&up, &gate) } else { g.mul(&gate, &up) }.unwrap()]
                });
                assert_eq!(lines, ["Glu(gate, up) [8]"]);
            }
        }
    }

    #[test]
    fn halves_are_taken_whole() {
        let of = |from: usize, to: usize| {
            with(|g, gate, _| {
                let [a, b] = [0, 4].map(|start| g.slice(&gate, 2, start..start + 4).unwrap());
                let other = g.slice(&gate, 2, from..to).unwrap();
                let gate = g.activation(Activation::Silu, if from == 0 { &b } else { &a }).unwrap();
                vec![g.mul(&gate, &other).unwrap()]
            })
        };
        assert_eq!([of(0, 4), of(4, 8)], [["Glu(gate) [4]"]; 2]);
        assert_eq!(of(3, 7), ["Slice(gate) [4]", "Slice(gate) [4]", "Glu(%0, %1) [4]"]);
    }

    #[test]
    fn what_others_read_or_is_repeated_stays() {
        let lines = with(|g, gate, up| {
            let gate = g.activation(Activation::Silu, &gate).unwrap();
            vec![g.mul(&gate, &up).unwrap(), g.unary(Unary::Neg, &gate)]
        });
        assert_eq!(lines, ["Silu(gate) [8]", "Mul(%0, up) [8]", "Neg(%0) [8]"]);
        let lines = with(|g, gate, up| {
            let gate = g.slice_dims(&gate, 2, Dim::Fixed(0), Dim::Fixed(1)).unwrap();
            let gate = g.activation(Activation::Silu, &gate).unwrap();
            vec![g.mul(&gate, &up).unwrap()]
        });
        assert_eq!(lines, ["Slice(gate) [1]", "Silu(%0) [1]", "Mul(%1, up) [8]"]);
    }
}
