//! Computation in half precision and bfloat16: inputs and outputs stay in single precision.

use std::collections::HashSet;

use half::f16;

use crate::Result;
use crate::graph::{Dtype, Graph, Interpolation, Op, Operation, Tensor, Unary};
use crate::lower::Target;

/// Gives floating-point values the type that the target computes in, and converts at the edges.
pub(in crate::lower) fn compute_in(g: &mut Graph, target: &Target) -> Result<()> {
    let float = target.float;
    if float == Dtype::F32 {
        return Ok(());
    }
    let angular = angular(g);
    let single = |g: &Graph, id: usize| g.tensor(id).dtype() == Dtype::F32 && !angular.contains(&id);
    let outputs: Vec<bool> = g.outputs.iter().map(|(_, id)| single(g, *id)).collect();
    let inputs: Vec<usize> = (0..g.inputs.len()).filter(|&i| g.inputs[i].dtype == Dtype::F32).collect();
    for id in (0..g.values.len()).filter(|&id| single(g, id)).collect::<Vec<_>>() {
        if !g.is_input(id) {
            g.retype(id, float);
        }
    }
    for node in &mut g.nodes {
        match &mut node.op {
            Op::Cast { to } if *to == Dtype::F32 && !angular.contains(&node.output) => *to = float,
            // Engines compute with it in the type of the values: as 0 in half precision, it would make no number of a
            // row of zeros.
            Op::LayerNorm { epsilon } if float == Dtype::F16 => {
                *epsilon = epsilon.max(f16::MIN_POSITIVE_SUBNORMAL.to_f64());
            }
            _ => {}
        }
    }
    for input in inputs {
        g.convert_input(input, float, |node| is_angular(&node.op, node.output, &angular));
    }
    for (output, single) in outputs.into_iter().enumerate() {
        if single {
            g.convert_output(output, Dtype::F32);
        }
    }
    Ok(())
}

/// What nothing but angles is computed of, such as a timestep times 1000: in 16 bits 981 is off by a whole step, and its cosine by all
/// of it. Inputs are none of these; what is angular reads them as they are.
fn angular(g: &Graph) -> HashSet<usize> {
    let outputs: HashSet<usize> = g.outputs.iter().map(|(_, id)| *id).collect();
    let single = |id: usize| g.tensor(id).dtype() == Dtype::F32;
    let mut angular: HashSet<usize> = HashSet::new();
    // Whatever only leads to angles, from the last node to the first.
    for node in g.nodes.iter().rev() {
        if is_angular(&node.op, node.output, &angular) {
            angular.extend(node.inputs.iter().copied().filter(|&id| single(id) && !g.is_input(id)));
        }
    }
    // Without what something else reads as well, or weights, and what is computed of these.
    loop {
        let fits = |id: usize| {
            let used = |node: &&crate::graph::Node| node.inputs.contains(&id);
            let alone = g.nodes.iter().filter(used).all(|node| is_angular(&node.op, node.output, &angular));
            let made = g.nodes.iter().filter(|node| node.output == id).flat_map(|node| &node.inputs);
            let known = made.copied().all(|of| !single(of) || g.is_input(of) || angular.contains(&of));
            alone && known && !outputs.contains(&id) && !g.is_weight(g.tensor(id))
        };
        let (kept, other): (HashSet<usize>, HashSet<usize>) = angular.iter().partition(|&&id| fits(id));
        if other.is_empty() {
            return kept;
        }
        angular = kept;
    }
}

fn is_angular(op: &Op, output: usize, angular: &HashSet<usize>) -> bool {
    matches!(op, Op::Angles { .. }) || angular.contains(&output)
}

/// Softmax of a parameter in single precision: it is known before the graph runs, and a part of a graph without inputs
/// would be left otherwise, which some backends refuse.
pub(in crate::lower) fn softmax_of_weights(g: &mut Graph, it: &Operation<'_>) -> Result<Option<Tensor>> {
    let x = match (it.op, it.operands) {
        (Op::Softmax { .. }, [x]) if g.is_weight(x) => x.clone(),
        _ => return Ok(None),
    };
    Ok(in_single(g, it, &x))
}

/// Bicubic resizing in single precision: the weights of cubic curves lose too much in half precision, for which WebGPU
/// has no kernel either.
pub(in crate::lower) fn cubic_resize(g: &mut Graph, it: &Operation<'_>) -> Result<Option<Tensor>> {
    match (it.op, it.operands) {
        (Op::Resize(op), [x]) if op.by == Interpolation::Bicubic && x.dtype() == Dtype::F16 => {
            Ok(in_single(g, it, &x.clone()))
        }
        _ => Ok(None),
    }
}

/// Bilinear samples in single precision: places are too coarse in half precision, in which CUDA has no kernel either.
pub(in crate::lower) fn grid_sample(g: &mut Graph, it: &Operation<'_>) -> Result<Option<Tensor>> {
    let (Op::GridSample { .. }, [x, grid]) = (it.op, it.operands) else { return Ok(None) };
    let [wide, places] = [x, grid].map(|x| g.cast(x, Dtype::F32));
    if it.result.dtype() == Dtype::F32 {
        return Ok(None);
    }
    let sampled = it.again(g, &[&wide, &places], Dtype::F32);
    Ok(Some(g.cast(&sampled, it.result.dtype())))
}

/// The same operation between two conversions; none where it is in single precision.
fn in_single(g: &mut Graph, it: &Operation<'_>, x: &Tensor) -> Option<Tensor> {
    if it.result.dtype() == Dtype::F32 {
        return None;
    }
    let wide = g.cast(x, Dtype::F32);
    let wide = it.again(g, &[&wide], Dtype::F32);
    Some(g.cast(&wide, it.result.dtype()))
}

/// Floating-point numbers become booleans by a comparison with zero: the tensor processor casts integers, but no
/// half-precision numbers.
pub(in crate::lower) fn truth_by_comparison(g: &mut Graph, it: &Operation<'_>) -> Result<Option<Tensor>> {
    match (it.op, it.operands) {
        (Op::Cast { to: Dtype::Bool }, [x]) if x.dtype().is_float() => {
            let zero = g.number(x.dtype(), 0.0);
            let none = g.binary(crate::graph::Binary::Equal, x, &zero)?;
            Ok(Some(g.unary(Unary::Not, &none)))
        }
        _ => Ok(None),
    }
}
