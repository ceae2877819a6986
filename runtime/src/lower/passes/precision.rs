//! Computation in half precision and bfloat16: inputs and outputs stay in single precision.

use half::f16;

use crate::Result;
use crate::graph::{Dtype, Graph, Interpolation, Op, Operation, Tensor, Unary};
use crate::lower::Target;
use crate::lower::passes::single::Single;

/// Gives floating-point values the type that the target computes in, and converts at the edges.
pub(in crate::lower) fn compute_in(g: &mut Graph, target: &Target) -> Result<()> {
    let float = target.float;
    if float == Dtype::F32 {
        return Ok(());
    }
    let kept = Single::of(g, float);
    let narrowed = |g: &Graph, id: usize| g.tensor(id).dtype() == Dtype::F32 && !kept.holds(id);
    let outputs: Vec<bool> = g.outputs.iter().map(|(_, id)| narrowed(g, *id)).collect();
    let inputs: Vec<usize> = (0..g.inputs.len()).filter(|&i| g.inputs[i].dtype == Dtype::F32).collect();
    for id in (0..g.values.len()).filter(|&id| narrowed(g, id)).collect::<Vec<_>>() {
        if !g.is_input(id) {
            g.retype(id, float);
        }
    }
    for node in &mut g.nodes {
        match &mut node.op {
            Op::Cast { to } if *to == Dtype::F32 && !kept.holds(node.output) => *to = float,
            // Engines compute with it in the type of the values: as 0 in half precision, it would make no number of a
            // row of zeros.
            Op::LayerNorm { epsilon } if float == Dtype::F16 => {
                *epsilon = epsilon.max(f16::MIN_POSITIVE_SUBNORMAL.to_f64());
            }
            _ => {}
        }
    }
    for input in inputs {
        g.convert_input(input, float, |node| kept.reads_inputs(node));
    }
    for (output, narrowed) in outputs.into_iter().enumerate() {
        if narrowed {
            g.convert_output(output, Dtype::F32);
        }
    }
    kept.convert(g, float)
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
