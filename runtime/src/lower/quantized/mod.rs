//! Quantized weights as a backend runs them: its kernels' operators where it has some, dequantized values elsewhere.

mod convolutions;
mod experts;
mod kernels;
mod parts;
mod readers;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use super::Target;
use crate::Result;
use crate::dims;
use crate::graph::{
    Binary, BlockOp, Contrib, Dim, Dtype, Graph, MatMulNBitsOp, Op, Operation, PadMode, Reduction, Tensor,
    Unary, product,
};
use crate::weights::BlockQuantized;
use crate::weights::{Bytes, WeightData};
use convolutions::Convolution;
pub(super) use experts::{dequantized_experts, runs_selected_experts};
pub use kernels::Kernels;
use parts::Parts;
pub(super) use parts::Weights;
pub(crate) use readers::Readers;

/// The graph with operations of block-quantized weights where linear layers and embeddings read some, and its weights: codes,
/// scales and zeros as weights of their own. What else reads one gets its values.
pub(super) fn formed<'a>(
    mut graph: Graph,
    weights: &'a [WeightData],
    target: &Target,
) -> Result<(Graph, Cow<'a, [WeightData]>)> {
    if weights.iter().all(|weight| !matches!(weight.bytes, Bytes::Quantized(_))) {
        return Ok((graph, Cow::Borrowed(weights)));
    }
    let mut weights = weights.to_vec();
    let (mut linear, mut embedding, mut convolutions) = (HashMap::new(), HashMap::new(), HashMap::new());
    let readers = Readers::of(&graph);
    for (index, readers) in readers.into_iter().enumerate() {
        let Bytes::Quantized(blocks) = &weights[index].bytes else { continue };
        let blocks = Arc::clone(blocks);
        let name = graph.weights[index].name.clone();
        let kernels = &target.kernels;
        let scaled = |form: BlockQuantized| match kernels.casts_scales {
            true => Ok(form),
            false => form.with_scales_in(target.float),
        };
        if let Some(groups) =
            readers.convolution.filter(|_| kernels.quantize_convolutions() && blocks.is_by_row())
        {
            convolutions.insert(index, Convolution::of(&mut graph, &mut weights, index, groups, kernels)?);
            continue;
        }
        let by_linear = if readers.linear { kernels.linear(&blocks)? } else { None };
        let by_linear = by_linear.map(scaled).transpose()?;
        let by_rows = if readers.embedding && !kernels.emulated { kernels.embedding(&blocks)? } else { None };
        let by_rows = by_rows.map(scaled).transpose()?;
        let values = readers.others
            || readers.convolution.is_some()
            || readers.linear && by_linear.is_none()
            || readers.embedding && by_rows.is_none();
        if let Some(form) = by_linear {
            linear.insert(index, Parts::of_linear(&mut graph, &mut weights, &name, &form, kernels)?);
        }
        if let Some(form) = by_rows {
            embedding.insert(index, Parts::of_embedding(&mut graph, &mut weights, &name, &form)?);
        }
        if values {
            weights[index] = dequantized(&weights[index], &blocks, target.float)?;
        }
    }
    let kernels = target.kernels;
    graph.rewrite(|g, it| match (it.op, it.operands) {
        (Op::Linear, [_, weight, ..]) => match g.weight_index(weight).and_then(|index| linear.get(&index)) {
            Some(parts) => linear_layer(g, it, parts, &kernels).map(Some),
            None => Ok(None),
        },
        (Op::Conv(op), [x, weight, bias @ ..]) => {
            match g.weight_index(weight).and_then(|index| convolutions.get(&index)) {
                Some(convolution) => convolution.written(g, it, op, x, bias).map(Some),
                None => Ok(None),
            }
        }
        (Op::ExpertLinear(_), _) => experts::quantized(g, it, &linear),
        (Op::Gather { axis: 0 }, [table, ids]) => {
            match g.weight_index(table).and_then(|index| embedding.get(&index)) {
                Some(parts) => rows(g, it, ids, parts).map(Some),
                None => Ok(None),
            }
        }
        _ => Ok(None),
    })?;
    Ok((graph, Cow::Owned(weights)))
}

/// A weight's values in memory: in the type that the target computes in, or one of 16 bits that holds them exactly.
fn dequantized(weight: &WeightData, blocks: &BlockQuantized, float: Dtype) -> Result<WeightData> {
    let values = blocks.dequantize()?;
    let dtype = if blocks.exact_dtype() == Dtype::Bf16 { Dtype::Bf16 } else { float };
    Ok(WeightData { dtype, bytes: Bytes::memory(dtype.encoded(&values)), ..weight.clone() })
}

/// `x · wᵀ + b` by `MatMulNBits`; minimums are what they add to each block's sum of x, by a linear layer.
fn linear_layer(g: &mut Graph, it: &Operation<'_>, parts: &Parts, kernels: &Kernels) -> Result<Tensor> {
    let (mut x, mut bias) = (it.operands[0].clone(), it.operands.get(2).cloned());
    let last = x.rank() - 1;
    if let Some(order) = &parts.order {
        let order = g.integers(&[order.len()], order.iter().map(|&column| column.into()).collect())?;
        x = g.gather(&x, &order, last)?;
    }
    let (width, out) = (x.shape()[last].clone(), it.result.shape()[last].clone());
    let corrected = match &parts.offsets {
        Some(offsets) if !kernels.by_casts => {
            let sums = in_blocks(g, &x, parts.blocks.group)?;
            let sums = g.reduce(Reduction::Sum, &sums, &[last + 1], false)?;
            let operands: Vec<&Tensor> = [&sums, offsets].into_iter().chain(&bias).collect();
            let shape = it.result.shape().to_vec();
            let corrected = g.node(Op::Linear, &operands, it.result.dtype(), shape);
            bias = None;
            Some(corrected)
        }
        _ => None,
    };
    let mut shape = it.result.shape().to_vec();
    if let Some(rank) = kernels.rank.filter(|&rank| rank != x.rank()) {
        let rows = product(&x.shape()[..last]);
        let ones = vec![Dim::Fixed(1); rank - 2];
        x = g.reshape(&x, [&ones[..], &dims![&rows, &width]].concat())?;
        shape = [&ones[..], &dims![rows, out]].concat();
    }
    let fused = bias.as_ref().filter(|_| kernels.bias);
    let op = MatMulNBitsOp {
        blocks: parts.blocks,
        accuracy_level: kernels.accuracy_level,
        zero_points: parts.zeros.is_some(),
        bias: fused.is_some(),
    };
    let mut y = match &parts.values {
        Some(values) => {
            let x = rounded(g, &x, parts.blocks.group)?;
            let operands: Vec<&Tensor> = [&x, values].into_iter().chain(fused).collect();
            g.node(Op::Linear, &operands, it.result.dtype(), shape)
        }
        None if kernels.by_casts => {
            let values = cast_values(g, parts, &width)?;
            let operands: Vec<&Tensor> = [&x, &values].into_iter().chain(fused).collect();
            g.node(Op::Linear, &operands, it.result.dtype(), shape)
        }
        None => {
            let scales = [&x, &parts.codes, &parts.scales].into_iter().chain(&parts.outer);
            let operands: Vec<&Tensor> = scales.chain(&parts.zeros).chain(fused).collect();
            g.node(Op::Contrib(Contrib::MatMulNBits(op)), &operands, it.result.dtype(), shape)
        }
    };
    if y.shape() != it.result.shape() {
        y = g.reshape(&y, it.result.shape().to_vec())?;
    }
    let added = if kernels.bias { None } else { bias };
    [corrected, added].into_iter().flatten().try_fold(y, |y, more| g.add(&y, &more))
}

/// The values of codes of 8 bits, `[out, in]`: `(code − zero) · scale`, or `code · scale + minimum`.
fn cast_values(g: &mut Graph, parts: &Parts, width: &Dim) -> Result<Tensor> {
    let dtype = parts.scales.dtype();
    let codes = g.cast(&parts.codes, dtype);
    let scales = g.unsqueeze(&parts.scales, 2)?;
    let values = match (&parts.offsets, &parts.zeros) {
        (Some(minimums), _) => {
            let minimums = g.unsqueeze(minimums, 2)?;
            let scaled = g.mul(&codes, &scales)?;
            g.add(&scaled, &minimums)?
        }
        (None, zeros) => {
            let zeros = match zeros {
                Some(zeros) => {
                    let zeros = g.unsqueeze(zeros, 2)?;
                    g.cast(&zeros, dtype)
                }
                None => g.scalar(128.0),
            };
            let centred = g.sub(&codes, &zeros)?;
            g.mul(&centred, &scales)?
        }
    };
    let [out, blocks, group] = values.shape() else { return Ok(values) };
    let filled = dims![out, product(&[blocks.clone(), group.clone()])];
    let values = g.reshape(&values, filled)?;
    match width.fixed() {
        Some(width) => g.slice(&values, 1, 0..width),
        None => Ok(values),
    }
}

/// The blocks of x's last axis, the last one filled up with zeros: `[…, blocks, group]`.
fn in_blocks(g: &mut Graph, x: &Tensor, group: usize) -> Result<Tensor> {
    let last = x.rank() - 1;
    let width = x.dim(-1).and_then(Dim::fixed).unwrap_or_default();
    let blocks = width.div_ceil(group);
    let missing = blocks * group - width;
    let x = match missing {
        0 => x.clone(),
        _ => g.pad(x, &[(last, 0, missing)], PadMode::Constant(0.0))?,
    };
    let shape = [&x.shape()[..last], &dims![blocks, group]].concat();
    g.reshape(&x, shape)
}

/// x as `MatMulNBits` rounds it at accuracy level 4: to 8 bits, of which the largest number of a block is 127.
fn rounded(g: &mut Graph, x: &Tensor, group: usize) -> Result<Tensor> {
    let (shape, last) = (x.shape().to_vec(), x.rank() - 1);
    let blocks = in_blocks(g, x, group)?;
    let sizes = g.unary(Unary::Abs, &blocks);
    let largest = g.reduce(Reduction::Max, &sizes, &[last + 1], true)?;
    let step = g.scale(&largest, 1.0 / 127.0)?;
    // A block of zeros has no step.
    let least = g.scalar(f32::MIN_POSITIVE);
    let divisor = g.binary(Binary::Max, &step, &least)?;
    let codes = g.div(&blocks, &divisor)?;
    let codes = g.unary(Unary::Round, &codes);
    let x = g.mul(&codes, &step)?;
    let filled = product(&x.shape()[last..]);
    let x = g.reshape(&x, [&shape[..last], &[filled]].concat())?;
    match shape[last].fixed() {
        Some(width) => g.slice(&x, last, 0..width),
        None => Ok(x),
    }
}

/// Rows of a table by `GatherBlockQuantized`.
fn rows(g: &mut Graph, it: &Operation<'_>, ids: &Tensor, parts: &Parts) -> Result<Tensor> {
    let BlockOp { group, .. } = parts.blocks;
    let width = it.result.dim(-1).and_then(Dim::fixed).unwrap_or_default();
    let blocks = width.div_ceil(group);
    let shape = [ids.shape(), &dims![blocks * group]].concat();
    let scales = [&parts.codes, ids, &parts.scales].into_iter().chain(&parts.outer);
    let operands: Vec<&Tensor> = scales.chain(&parts.zeros).collect();
    let op = Op::Contrib(Contrib::GatherBlockQuantized(parts.blocks));
    let mut y = g.node(op, &operands, it.result.dtype(), shape.clone());
    if let Some(offsets) = &parts.offsets {
        let added = g.gather(offsets, ids, 0)?;
        let added = g.unsqueeze(&added, ids.rank() + 1)?;
        y = g.reshape(&y, [ids.shape(), &dims![blocks, group]].concat())?;
        y = g.add(&y, &added)?;
        y = g.reshape(&y, shape)?;
    }
    if blocks * group == width { Ok(y) } else { g.slice(&y, ids.rank(), 0..width) }
}
