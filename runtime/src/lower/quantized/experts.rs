//! Selected experts with quantized weights.

use std::collections::HashMap;
use std::mem::discriminant;
use std::ops::Range;

use super::{Kernels, Parts, Weights};
use crate::graph::{Dtype, ExpertBlocks, ExpertLinearOp, Graph, Op, Operation, Tensor};
use crate::lower::target::{Experts, Target};
use crate::weights::{BlockQuantized, Bytes, Run, WeightData, Zeros};
use crate::{Result, dims};

/// Whether the target has a kernel for the selected experts of a graph: quantized ones are all of one form, which it runs as it is.
pub(in crate::lower) fn runs_selected_experts(
    graph: &Graph,
    weights: &[WeightData],
    target: &Target,
) -> Result<bool> {
    if target.experts != Experts::Selected || target.kernels.emulated {
        return Ok(false);
    }
    for node in graph.nodes.iter().filter(|node| matches!(node.op, Op::ExpertLinear(_))) {
        let stored = node.inputs[2..].iter().map(|id| graph.weight_index(graph.tensor(*id)));
        let all: Vec<Option<&BlockQuantized>> = stored
            .map(|index| match index.map(|index| &weights[index].bytes) {
                Some(Bytes::Quantized(blocks)) => Some(&**blocks),
                _ => None,
            })
            .collect();
        let Some(first) = all.iter().flatten().next() else { continue };
        // Activations that are not rounded, and columns in an order of a weight's own, are left to kernels for one weight.
        let exact = target.kernels.accuracy_level == 0;
        let whole =
            node.inputs.len() > 3 || graph.tensor(node.inputs[2]).rank() == 2 || first.batch.is_some();
        let alike = |blocks: &Option<&BlockQuantized>| {
            blocks.is_some_and(|blocks| {
                (blocks.bits, blocks.group, blocks.scale_dtype)
                    == (first.bits, first.group, first.scale_dtype)
                    && discriminant(&blocks.zeros) == discriminant(&first.zeros)
                    && blocks.codebook() == first.codebook()
                    && blocks.batch == first.batch
                    && blocks.outer.is_some() == first.outer.is_some()
                    && blocks.order.is_none()
            })
        };
        if exact || !whole || !all.iter().all(alike) || target.kernels.linear(first)?.is_none() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Linear layers of selected experts by codes and scales; none where the weights are not quantized.
pub(super) fn quantized(
    g: &mut Graph,
    it: &Operation<'_>,
    parts: &HashMap<usize, Parts>,
) -> Result<Option<Tensor>> {
    let (Op::ExpertLinear(op), [x, indices, weights @ ..]) = (it.op, it.operands) else { return Ok(None) };
    let parts: Vec<&Parts> =
        weights.iter().filter_map(|weight| parts.get(&g.weight_index(weight)?)).collect();
    let Some(first) = parts.first().filter(|_| parts.len() == weights.len()) else { return Ok(None) };
    let quantized = ExpertBlocks {
        blocks: first.blocks,
        zero_points: first.zeros.is_some(),
        offsets: first.offsets.is_some(),
        batch: first.batch,
    };
    let all = parts.iter().flat_map(|parts| {
        let scales = [&parts.codes, &parts.scales].into_iter().chain(&parts.outer);
        scales.chain(&parts.zeros).chain(&parts.offsets)
    });
    let operands: Vec<&Tensor> = [x, indices].into_iter().chain(all).collect();
    let op =
        ExpertLinearOp { quantized: Some(quantized), transposed: op.transposed && first.batch.is_none() };
    let shape = it.result.shape().to_vec();
    Ok(Some(g.node(Op::ExpertLinear(op), &operands, Dtype::F32, shape)))
}

/// The values of a layer's weights of `count` experts, `[experts, out, in]`, by `DequantizeLinear`; `part` are the rows of each that
/// count. None where they are of several forms, or of one that it does not have.
pub(in crate::lower) fn dequantized_experts(
    g: &mut Graph,
    weights: &mut Vec<WeightData>,
    experts: &[usize],
    count: usize,
    part: Option<&Range<usize>>,
    kernels: &Kernels,
) -> Result<Option<Tensor>> {
    let mut pieces = vec![];
    let each = count / experts.len().max(1);
    for &index in experts {
        let Bytes::Quantized(blocks) = &weights[index].bytes else { return Ok(None) };
        let rows = blocks.shape[0] / each.max(1);
        let part = part.cloned().unwrap_or(0..rows);
        // Runs of one length, of which each expert has one that counts.
        let runs = rows / part.len().max(1);
        if blocks.order.is_some() || runs * part.len() != rows || !part.start.is_multiple_of(part.len()) {
            return Ok(None);
        }
        for expert in 0..each {
            let run = blocks.rows(Run {
                first: expert * runs + part.start / part.len(),
                length: 1,
                of: each * runs,
            });
            let Some(form) = kernels.linear(&BlockQuantized { batch: None, ..run })? else { return Ok(None) };
            let form = form.widened(form.bits.max(4))?.with_scales_in(Dtype::F32)?;
            pieces.push(form);
        }
    }
    let Some(all) = BlockQuantized::joined(&pieces)? else { return Ok(None) };
    let middle = 1 << (all.bits - 1);
    let zeros: Vec<u8> = match &all.zeros {
        Zeros::Middle => vec![middle; all.shape[0] * all.blocks()],
        Zeros::Codes(zeros) => zeros.to_vec(),
        Zeros::Minimums(_) | Zeros::Codebook(_) => return Ok(None),
    };
    let zeros = match all.bits {
        4 => zeros.chunks(2).map(|pair| pair[0] | pair.get(1).unwrap_or(&0) << 4).collect(),
        _ => zeros,
    };
    if !all.shape[1].is_multiple_of(all.group) {
        return Ok(None);
    }
    let rows = all.shape[0] / count;
    let name = format!("{}.{}{}", g.weights[experts[0]].name, "experts", part.map_or(0, |part| part.start));
    let mut weights = Weights { graph: g, located: weights };
    let width = all.shape[1] * all.bits / 8;
    let codes = weights.add(&format!("{name}.codes"), Dtype::U8, &[count, rows, width], all.codes.clone());
    let scales = [count, rows, all.blocks()];
    let scales = weights.add(&format!("{name}.scales"), Dtype::F32, &scales, all.scales.clone());
    let length = zeros.len();
    let zeros = weights.add(&format!("{name}.zeros"), Dtype::U8, &[length], Bytes::memory(zeros));
    let op = Op::DequantizeLinear { bits: all.bits, group: all.group };
    let shape = dims![count, rows, all.shape[1]];
    Ok(Some(g.node(op, &[&codes, &scales, &zeros], Dtype::F32, shape)))
}

#[cfg(test)]
mod tests;
