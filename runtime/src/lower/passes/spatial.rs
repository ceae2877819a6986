//! The forms of convolutions.

use crate::Result;
use crate::graph::{Dim, Graph, Op, Operation, PadMode, PoolOp, Tensor};

/// Channels of zeros where convolutions read three at a time: WebGPU does where their number is a multiple of 3 and none
/// of 4, and gives wrong numbers unless it is just 3: <https://github.com/microsoft/onnxruntime/issues/29651>.
pub(in crate::lower) fn pad_channels(g: &mut Graph, it: &Operation<'_>) -> Result<Option<Tensor>> {
    let (Op::Conv(op), [x, weight, rest @ ..]) = (it.op, it.operands) else { return Ok(None) };
    let channels = x.dim(1).and_then(Dim::fixed).unwrap_or_default();
    let threes = channels > 3 && channels.is_multiple_of(3) && !channels.is_multiple_of(4);
    if !threes || op.groups != 1 {
        return Ok(None);
    }
    let added = channels.next_multiple_of(4) - channels;
    let around = [(1, 0, added)];
    let x = g.pad(x, &around, PadMode::Constant(0.0))?;
    let weight = g.pad(weight, &around, PadMode::Constant(0.0))?;
    let operands: Vec<_> = [&x, &weight].into_iter().chain(rest).collect();
    Ok(Some(it.again(g, &operands, it.result.dtype())))
}

/// Pools of one axis as those of two, of which the second has one place: WebNN and Core ML pool images alone.
pub(in crate::lower) fn pool_on_two_axes(g: &mut Graph, it: &Operation<'_>) -> Result<Option<Tensor>> {
    let (Op::Pool(op), [x]) = (it.op, it.operands) else { return Ok(None) };
    let ([kernel], [stride], [padding]) = (&*op.kernel, &*op.stride, &*op.padding) else { return Ok(None) };
    let flat = PoolOp {
        by: op.by,
        kernel: vec![*kernel, 1],
        stride: vec![*stride, 1],
        padding: vec![*padding, (0, 0)],
    };
    let image = g.unsqueeze(x, 3)?;
    let mut shape = it.result.shape().to_vec();
    shape.push(Dim::Fixed(1));
    let pooled = g.node(Op::Pool(flat), &[&image], x.dtype(), shape);
    g.squeeze(&pooled, 3).map(Some)
}
