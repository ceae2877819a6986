//! Mixtures of experts by ONNX Runtime's kernel (`com.microsoft.MoE`), which computes the selected experts alone.

use std::borrow::Cow;

use super::gating::Gating;
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
        let Gating { act, limit, .. } = mixture.gating;
        // Its GELU is an approximation, which is another one than the reference's. Gates are known of SiLU alone.
        let known = match mixture.up {
            Some(_) => act == Activation::Silu,
            None => limit.is_none() && matches!(act, Activation::Silu | Activation::Relu),
        };
        if !known {
            return Ok(None);
        }
        let Some(first) = first_layer(g, &mixture, stored, &kernels)? else { return Ok(None) };
        let Some(down) = mixture.down.weight(g, stored, &kernels)? else { return Ok(None) };
        let layers = [first, (down, mixture.down.biases(g))];
        moe(g, &mixture, &layers, least, it.result).map(Some)
    })?;
    g.prune();
    Ok(())
}

/// The weight of a linear layer of all experts, `[experts, out, in]`, and its biases `[experts, out]`.
type Linear = (Tensor, Option<Tensor>);

/// The layer that experts begin with; gates and what they are factors of have their rows in turns.
fn first_layer(
    g: &mut Graph,
    it: &Mixture,
    stored: &mut Cow<'_, [WeightData]>,
    kernels: &Kernels,
) -> Result<Option<Linear>> {
    let Some(up) = &it.up else {
        let weight = it.gate.weight(g, stored, kernels)?;
        return Ok(weight.map(|weight| (weight, it.gate.biases(g))));
    };
    if let Some((both, [gate, up])) = it.gate_and_up()
        && (gate.step, gate.start, up.step, up.start) == (2, 0, 2, 1)
    {
        let weight = both.weight(g, stored, kernels)?;
        return Ok(weight.map(|weight| (weight, both.bias)));
    }
    let (gate, factor) = (it.gate.weight(g, stored, kernels)?, up.weight(g, stored, kernels)?);
    let (Some(gate), Some(factor)) = (gate, factor) else { return Ok(None) };
    let weight = in_turns(g, &gate, &factor)?;
    let bias = match (it.gate.biases(g), up.biases(g)) {
        (Some(gate), Some(factor)) => Some(in_turns(g, &gate, &factor)?),
        (None, None) => None,
        _ => return Ok(None),
    };
    Ok(Some((weight, bias)))
}

/// The rows of each expert's two weights `[experts, width, …]` in turns, `[experts, 2 · width, …]`.
fn in_turns(g: &mut Graph, gate: &Tensor, up: &Tensor) -> Result<Tensor> {
    let mut shape = gate.shape().to_vec();
    shape[1] = shape[1].clone() * Dim::Fixed(2);
    let (gate, up) = (g.unsqueeze(gate, 2)?, g.unsqueeze(up, 2)?);
    let both = g.concat(&[&gate, &up], 2)?;
    g.reshape(&both, shape)
}

/// The kernel selects experts by logits and weighs them by a softmax over the selected: the logarithms of routing weights give
/// these divided by their sum.
fn moe(g: &mut Graph, it: &Mixture, layers: &[Linear; 2], least: f32, result: &Tensor) -> Result<Tensor> {
    let least = g.scalar(least);
    let logits = g.binary(Binary::Max, &it.routing, &least)?;
    let logits = g.unary(Unary::Log, &logits);
    let selected = it.indices.shape()[1].fixed().unwrap_or_default();
    let Gating { act, alpha, beta, limit } = it.gating;
    let gated = it.up.is_some();
    let biases = layers.each_ref().map(|(_, bias)| bias.is_some());
    let op = Op::Contrib(Contrib::Moe(MoeOp { selected, act, gated, alpha, beta, limit, biases }));
    let x = it.rows(g)?;
    let layers = layers.iter().flat_map(|(weight, bias)| std::iter::once(weight).chain(bias));
    let operands: Vec<&Tensor> = [&x, &logits].into_iter().chain(layers).collect();
    let y = g.node(op, &operands, x.dtype(), result.shape().to_vec());
    // What x has been multiplied by already is 1 there.
    if it.values.is_none() {
        return Ok(y);
    }
    let sum = g.reduce(Reduction::Sum, &it.routing, &[1], true)?;
    g.mul(&y, &sum)
}
