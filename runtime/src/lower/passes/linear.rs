//! The forms of a linear layer.

use crate::Result;
use crate::dims;
use crate::graph::{Dim, Graph, Op, Operation, Tensor, product};

/// Linear layers on two axes, between two reshapes: ONNX's `Gemm`.
pub(in crate::lower) fn flatten(g: &mut Graph, it: &Operation<'_>) -> Result<Option<Tensor>> {
    let (Op::Linear, [x, rest @ ..]) = (it.op, it.operands) else { return Ok(None) };
    let Some((width, rows)) = x.shape().split_last().filter(|(_, rows)| rows.len() != 1) else {
        return Ok(None);
    };
    let rows = product(rows);
    let out = it.result.dim(-1).cloned().unwrap_or(Dim::Fixed(0));
    let flat = g.reshape(x, dims![&rows, width])?;
    let operands: Vec<_> = std::iter::once(&flat).chain(rest).collect();
    let y = g.node(Op::Linear, &operands, it.result.dtype(), dims![rows, out]);
    Ok(Some(g.reshape(&y, it.result.shape().to_vec())?))
}

/// Linear layers as products with the transposed weight.
pub(in crate::lower) fn by_product(g: &mut Graph, it: &Operation<'_>) -> Result<Option<Tensor>> {
    let (Op::Linear, [x, weight, bias @ ..]) = (it.op, it.operands) else { return Ok(None) };
    let weight = g.transpose(weight, &[1, 0])?;
    let y = g.node(Op::MatMul, &[x, &weight], it.result.dtype(), it.result.shape().to_vec());
    Ok(Some(match bias {
        [bias, ..] => g.add(&y, bias)?,
        [] => y,
    }))
}

/// Linear layers over a fixed number of rows on three axes, `[1, rows, in]`.
///
/// OpenVINO 2026.4's plugin for processors fails with a segmentation fault where it makes one kernel of each of several gated
/// MLPs that read the same rows, as experts do (`TokenizeGatedMLPSnippets`).
pub(in crate::lower) fn rows_on_three_axes(g: &mut Graph, it: &Operation<'_>) -> Result<Option<Tensor>> {
    let (Op::Linear, [x, rest @ ..]) = (it.op, it.operands) else { return Ok(None) };
    let ([Dim::Fixed(_), Dim::Fixed(_)], [_, out]) = (x.shape(), it.result.shape()) else { return Ok(None) };
    let rows = g.unsqueeze(x, 0)?;
    let shape = dims![1, &x.shape()[0], out];
    let operands: Vec<_> = std::iter::once(&rows).chain(rest).collect();
    let y = g.node(Op::Linear, &operands, it.result.dtype(), shape);
    Ok(Some(g.reshape(&y, it.result.shape().to_vec())?))
}

/// Linear layers over long sequences as products with the transposed weight of three axes, `[1, in, out]`.
///
/// QNN 2.7 gives wrong numbers for one of two where a batch holds more than one sequence of more than 1024 positions that
/// are no multiple of 8, such as Whisper's 1500.
pub(in crate::lower) fn long_by_batched_product(g: &mut Graph, it: &Operation<'_>) -> Result<Option<Tensor>> {
    const MOST: usize = 1024;
    let (Op::Linear, [x, weight, bias @ ..]) = (it.op, it.operands) else { return Ok(None) };
    let [batch @ .., Dim::Fixed(positions), _] = x.shape() else { return Ok(None) };
    if product(batch) == Dim::Fixed(1) || *positions <= MOST || positions.is_multiple_of(8) {
        return Ok(None);
    }
    let weight = g.transpose(weight, &[1, 0])?;
    let weight = g.unsqueeze(&weight, 0)?;
    let y = g.matmul(x, &weight)?;
    Ok(Some(match bias {
        [bias, ..] => g.add(&y, bias)?,
        [] => y,
    }))
}
