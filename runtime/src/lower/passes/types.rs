//! Element types that a backend's kernels lack for an operation, which is done in another.

use crate::Result;
use crate::graph::{Binary, Dtype, Graph, Op, Operation, Tensor, Unary};
use crate::lower::Target;

/// Ranges and running sums of integers and booleans by way of floating-point numbers, which are exact for positions
/// and tokens below 2²⁴; other sums of them by way of 32-bit integers.
pub(in crate::lower) fn read_as_numbers(g: &mut Graph, it: &Operation<'_>) -> Result<Option<Tensor>> {
    let by = match it.op {
        Op::Slice { .. } | Op::CumSum { .. } => Dtype::F32,
        Op::Reduce { .. } => Dtype::I32,
        _ => return Ok(None),
    };
    let [x] = it.operands else { return Ok(None) };
    if x.dtype().is_float() || x.dtype() == by {
        return Ok(None);
    }
    let number = g.cast(x, by);
    let number = it.again(g, &[&number], by);
    Ok(Some(g.cast(&number, it.result.dtype())))
}

/// Integers and booleans moved as 32-bit integers, the only ones that some kernels move.
pub(in crate::lower) fn move_in_32_bits(g: &mut Graph, it: &Operation<'_>) -> Result<Option<Tensor>> {
    let moves = matches!(it.op, Op::Transpose { .. } | Op::Concat { .. });
    let dtype = it.result.dtype();
    if !moves || dtype.is_float() || dtype == Dtype::I32 {
        return Ok(None);
    }
    let narrow: Vec<_> = it.operands.iter().map(|x| g.cast(x, Dtype::I32)).collect();
    let moved = it.again(g, &narrow.iter().collect::<Vec<_>>(), Dtype::I32);
    Ok(Some(g.cast(&moved, dtype)))
}

/// How many operations ONNX Runtime is seen to move a transposition over.
const STEPS: usize = 4;

/// Whether a value is a transposition, or arithmetic on one, element by element.
fn is_transposed(g: &Graph, x: &Tensor, steps: usize) -> bool {
    g.made_by(x).is_some_and(|node| match node.op {
        Op::Transpose { .. } => true,
        Op::Binary(_) | Op::Unary(_) | Op::Cast { .. } => {
            steps > 0 && node.inputs.iter().any(|&id| is_transposed(g, g.tensor(id), steps - 1))
        }
        _ => false,
    })
}

/// One of two floating-point values by products with 1 and 0, in graphs that convolve and where one of them was transposed: ONNX
/// Runtime moves axes around convolutions, and past a choice those of its condition too, for which booleans have no kernel.
pub(in crate::lower) fn choose_by_product(g: &mut Graph, _: &Target) -> Result<()> {
    let convolves = g.nodes.iter().any(|node| matches!(node.op, Op::Conv(_)));
    g.rewrite(|g, it| {
        let (Op::Where, [condition, yes, no]) = (it.op, it.operands) else { return Ok(None) };
        if !yes.dtype().is_float()
            || !(convolves || is_transposed(g, yes, STEPS) || is_transposed(g, no, STEPS))
        {
            return Ok(None);
        }
        let one = g.cast(condition, yes.dtype());
        let other = g.unary(Unary::Not, condition);
        let other = g.cast(&other, yes.dtype());
        let one = g.mul(&one, yes)?;
        let other = g.mul(&other, no)?;
        Ok(Some(g.binary(Binary::Add, &one, &other)?))
    })
}
