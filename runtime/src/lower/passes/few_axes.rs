//! Operations on more axes than the tensor processor's kernels take: axes that stay beside each other are one there.
//!
//! What its kernels take was found by graphs of one operator: arithmetic, choices and moves have five axes, most other
//! element-wise operators four.

use std::ops::Range;

use crate::Result;
use crate::dims;
use crate::graph::{Binary, Dim, Dtype, Graph, Op, Operation, Shape, Tensor, Unary, product};
use crate::lower::Target;

/// The most axes of any value.
const MOST: usize = 5;
/// The most axes of what has fewer.
const FEWER: usize = 4;

/// Element-wise operations: axes that all operands have, or that one lacks, become one from the first on, until they are few.
pub(in crate::lower) fn elementwise(g: &mut Graph, it: &Operation<'_>) -> Result<Option<Tensor>> {
    let Some(most) = most_axes(it.op) else { return Ok(None) };
    let whole = it.result.shape();
    if whole.len() <= most {
        return Ok(None);
    }
    let shapes: Vec<Shape> = it.operands.iter().map(|x| aligned(x.shape(), whole.len())).collect();
    let Some(runs) = joined(&shapes, whole, most) else { return Ok(None) };
    let mut operands = vec![];
    for (x, shape) in it.operands.iter().zip(&shapes) {
        operands.push(if x.rank() == 0 { x.clone() } else { g.reshape(x, products(shape, &runs))? });
    }
    let operands: Vec<&Tensor> = operands.iter().collect();
    let y = g.node(it.op.clone(), &operands, it.result.dtype(), products(whole, &runs));
    g.reshape(&y, whole.to_vec()).map(Some)
}

/// How many axes an element-wise operation takes; none where it is no such.
fn most_axes(op: &Op) -> Option<usize> {
    match op {
        // Passes of the engine find the error function in GELU, with nothing between its operators.
        Op::Unary(Unary::Abs | Unary::Erf | Unary::Exp | Unary::Sigmoid) => Some(MOST),
        Op::Unary(_) | Op::Binary(Binary::Min | Binary::Max | Binary::And | Binary::Or) => Some(FEWER),
        Op::Binary(_) | Op::Cast { .. } | Op::Clip { .. } | Op::Expand | Op::Where => Some(MOST),
        _ => None,
    }
}

/// A shape of so many axes, with ones before those that it has.
fn aligned(shape: &[Dim], rank: usize) -> Shape {
    let ones = rank.saturating_sub(shape.len());
    vec![Dim::Fixed(1); ones].into_iter().chain(shape.iter().cloned()).collect()
}

/// Which axes become one; none where too many are left.
fn joined(operands: &[Shape], whole: &[Dim], most: usize) -> Option<Vec<Range<usize>>> {
    let mut runs: Vec<Range<usize>> = vec![];
    for axis in 0..whole.len() {
        let many = runs.len() + whole.len() - axis > most;
        match runs.last_mut() {
            Some(run) if many && operands.iter().all(|x| go_together(x, whole, run, axis)) => run.end += 1,
            _ => runs.push(axis..axis + 1),
        }
    }
    (runs.len() <= most).then_some(runs)
}

/// Whether an operand has both these axes and the next, or lacks both.
fn go_together(operand: &[Dim], whole: &[Dim], run: &Range<usize>, axis: usize) -> bool {
    let one = Dim::Fixed(1);
    let [own, all] = [operand, whole].map(|shape| product(&shape[run.clone()]));
    let either = all == one || whole[axis] == one;
    either || (own == all && operand[axis] == whole[axis]) || (own == one && operand[axis] == one)
}

fn products(shape: &[Dim], runs: &[Range<usize>]) -> Shape {
    runs.iter().map(|run| product(&shape[run.clone()])).collect()
}

/// Parts of an axis, and what is joined along one: axes before it are one, and those behind it.
pub(in crate::lower) fn along_an_axis(g: &mut Graph, it: &Operation<'_>) -> Result<Option<Tensor>> {
    let (Op::Slice { axis, .. } | Op::Gather { axis } | Op::Concat { axis }) = *it.op else {
        return Ok(None);
    };
    let ranks = it.operands.iter().chain([it.result]).map(Tensor::rank);
    if ranks.max().unwrap_or_default() <= MOST {
        return Ok(None);
    }
    let around = |shape: &[Dim]| dims![product(&shape[..axis]), &shape[axis], product(&shape[axis + 1..])];
    let y = match (it.op, it.operands) {
        (Op::Gather { .. }, [x, ids]) => {
            let x = g.reshape(x, around(x.shape()))?;
            g.gather(&x, ids, 1)?
        }
        (Op::Slice { start, end, step, .. }, [x]) => {
            let x = g.reshape(x, around(x.shape()))?;
            let op = Op::Slice { axis: 1, start: start.clone(), end: end.clone(), step: *step };
            g.node(op, &[&x], x.dtype(), around(it.result.shape()))
        }
        (_, operands) => {
            let parts = operands.iter().map(|x| g.reshape(x, around(x.shape())));
            let parts = parts.collect::<Result<Vec<_>>>()?;
            g.concat(&parts.iter().collect::<Vec<_>>(), 1)?
        }
    };
    g.reshape(&y, it.result.shape().to_vec()).map(Some)
}

/// Transpositions of more axes, and of integers of more than four, as several that each let two blocks beside each other change
/// places.
pub(in crate::lower) fn transpose_by_blocks(g: &mut Graph, it: &Operation<'_>) -> Result<Option<Tensor>> {
    let (Op::Transpose { order }, [x]) = (it.op, it.operands) else { return Ok(None) };
    let most = if x.dtype().is_float() { MOST } else { FEWER };
    if order.len() <= most {
        return Ok(None);
    }
    // An axis of length 1 is nowhere.
    let order: Vec<usize> = order.iter().copied().filter(|&axis| x.shape()[axis] != Dim::Fixed(1)).collect();
    let mut axes = order.clone();
    axes.sort_unstable();
    let lengths =
        |axes: &[usize]| axes.iter().fold(Dim::Fixed(1), |all, &axis| all * x.shape()[axis].clone());
    let mut y = x.clone();
    if order.len() <= most {
        let places: Vec<usize> =
            order.iter().filter_map(|axis| axes.iter().position(|a| a == axis)).collect();
        y = g.reshape(&y, axes.iter().map(|&axis| x.shape()[axis].clone()).collect())?;
        y = g.transpose(&y, &places)?;
        return g.reshape(&y, it.result.shape().to_vec()).map(Some);
    }
    for place in 0..order.len() {
        let Some(from) = axes.iter().position(|axis| *axis == order[place]) else { return Ok(None) };
        if from == place {
            continue;
        }
        let block =
            axes[from..].iter().zip(&order[place..]).take_while(|(axis, wanted)| axis == wanted).count();
        let end = from + block;
        let blocks = [&axes[..place], &axes[place..from], &axes[from..end], &axes[end..]].map(lengths);
        y = g.reshape(&y, blocks.to_vec())?;
        y = g.transpose(&y, &[0, 2, 1, 3])?;
        axes[place..end].rotate_left(from - place);
    }
    g.reshape(&y, it.result.shape().to_vec()).map(Some)
}

/// Batch normalisation of volumes and more: all axes behind the third as one.
pub(in crate::lower) fn batch_norm(g: &mut Graph, it: &Operation<'_>) -> Result<Option<Tensor>> {
    let (Op::BatchNorm { .. }, [x, weights @ ..]) = (it.op, it.operands) else { return Ok(None) };
    let [batch, channels, rows, rest @ ..] = x.shape() else { return Ok(None) };
    if x.rank() <= FEWER {
        return Ok(None);
    }
    let x = g.reshape(x, dims![batch, channels, rows, product(rest)])?;
    let operands: Vec<&Tensor> = std::iter::once(&x).chain(weights).collect();
    let y = g.node(it.op.clone(), &operands, x.dtype(), x.shape().to_vec());
    g.reshape(&y, it.result.shape().to_vec()).map(Some)
}

/// Outputs of 64-bit integers that are made of other numbers or truth values, by 32 bits: the tensor processor has no others, and
/// converts those alone to what is handed out.
pub(in crate::lower) fn whole_outputs(g: &mut Graph, _: &Target) -> Result<()> {
    let outputs: Vec<usize> = g.outputs.iter().map(|(_, id)| *id).collect();
    g.rewrite(|g, it| match (it.op, it.operands) {
        (Op::Cast { to: Dtype::I64 }, [x])
            if outputs.contains(&it.result.id) && !matches!(x.dtype(), Dtype::I64 | Dtype::I32) =>
        {
            let narrow = g.cast(x, Dtype::I32);
            Ok(Some(g.cast(&narrow, Dtype::I64)))
        }
        _ => Ok(None),
    })
}

#[cfg(test)]
mod tests;
