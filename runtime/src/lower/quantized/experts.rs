//! Selected experts with quantized weights.

use std::collections::HashMap;
use std::mem::discriminant;

use super::Parts;
use crate::Result;
use crate::graph::{Dtype, ExpertBlocks, ExpertLinearOp, Graph, Op, Operation, Tensor};
use crate::lower::Target;
use crate::weights::{BlockQuantized, Bytes, WeightData};

/// Whether the target has a kernel for the selected experts of a graph: quantized ones are all of one form, which it runs as it is.
pub(in crate::lower) fn runs_selected_experts(
    graph: &Graph,
    weights: &[WeightData],
    target: &Target,
) -> Result<bool> {
    if !target.selected_experts || target.kernels.emulated {
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

#[cfg(test)]
mod tests;
