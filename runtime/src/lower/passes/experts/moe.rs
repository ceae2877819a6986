//! Mixtures of experts by ONNX Runtime's kernel (`com.microsoft.MoE`), which computes the selected experts alone.

use std::borrow::Cow;

use super::mixture::Mixture;
use crate::Result;
use crate::graph::{Activation, Binary, Contrib, Dim, Dtype, Graph, MoeOp, Op, Reduction, Tensor, Unary};
use crate::lower::{Kernels, Target};
use crate::weights::WeightData;

/// Sums over selected experts by the kernel. Mixtures of another form stay, and so do those of quantized weights.
pub(in crate::lower) fn by_kernel(
    g: &mut Graph,
    stored: &mut Cow<'_, [WeightData]>,
    target: &Target,
) -> Result<()> {
    // The least of the numbers that are no subnormal ones.
    let least = if target.float == Dtype::F16 { 6.2e-5 } else { 1.2e-38 };
    // What is quantized is left to kernels of linear layers.
    let kernels = Kernels { linear_bits: &[], ..target.kernels };
    g.rewrite(|g, it| {
        let Some(mixture) = Mixture::of(g, it) else { return Ok(None) };
        // Its GELU is an approximation, which is another one than the reference's.
        if !matches!(mixture.act, Activation::Silu | Activation::Relu) {
            return Ok(None);
        }
        // Gates are known of SiLU alone.
        if mixture.up.is_some() && mixture.act != Activation::Silu {
            return Ok(None);
        }
        let mut weights = vec![];
        for projection in [&mixture.gate, &mixture.down].into_iter().chain(&mixture.up) {
            let Some(weight) = projection.weight(g, stored, &kernels)? else { return Ok(None) };
            weights.push(weight);
        }
        if let Some(up) = weights.get(2).cloned() {
            weights.truncate(2);
            weights[0] = interleaved(g, &weights[0], &up)?;
        }
        moe(g, &mixture, &weights, least, it.result).map(Some)
    })?;
    g.prune();
    Ok(())
}

/// The rows of each expert's two weights `[experts, width, in]` in turns, `[experts, 2 · width, in]`.
fn interleaved(g: &mut Graph, gate: &Tensor, up: &Tensor) -> Result<Tensor> {
    let [experts, width, inner] = [0, 1, 2].map(|axis| gate.shape()[axis].clone());
    let (gate, up) = (g.unsqueeze(gate, 2)?, g.unsqueeze(up, 2)?);
    let both = g.concat(&[&gate, &up], 2)?;
    g.reshape(&both, vec![experts, width * Dim::Fixed(2), inner])
}

/// The kernel selects experts by logits and weighs them by a softmax over the selected: the logarithms of routing weights give
/// these divided by their sum.
fn moe(g: &mut Graph, it: &Mixture, weights: &[Tensor], least: f32, result: &Tensor) -> Result<Tensor> {
    let least = g.scalar(least);
    let logits = g.binary(Binary::Max, &it.routing, &least)?;
    let logits = g.unary(Unary::Log, &logits);
    let selected = it.indices.shape()[1].fixed().unwrap_or_default();
    let op = Op::Contrib(Contrib::Moe(MoeOp { selected, act: it.act, gated: it.up.is_some() }));
    let operands: Vec<&Tensor> = [&it.x, &logits].into_iter().chain(weights).collect();
    let y = g.node(op, &operands, it.x.dtype(), result.shape().to_vec());
    let sum = g.reduce(Reduction::Sum, &it.routing, &[1], true)?;
    g.mul(&y, &sum)
}
