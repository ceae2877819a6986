//! Experts of a mixture of experts: a list of gated MLPs, or two batched weights, summed by routing weights; shared experts.

use super::{Activation, GatedMlp, glu};
use crate::graph::{Dim, Graph, Scope, Tensor, product, show};
use crate::{Result, dims};

/// Mixture of experts with a module for each (`MixtralExperts` as checkpoints have it, `experts.0.gate_proj.weight`): the
/// outputs of the gated MLPs at `w` for x `[batch, sequence, hidden]`, summed by routing weights
/// `[batch, sequence, experts]`.
///
/// # Errors
/// As [`combine_experts`].
pub fn experts(
    g: &mut Graph,
    w: &Scope,
    x: &Tensor,
    routing_weights: &Tensor,
    expert: &GatedMlp<'_>,
) -> Result<Tensor> {
    // On two axes from first to last, and not once more for every linear layer of every expert.
    let [rows, weights] = [x, routing_weights].map(|x| rows(g, x));
    let (rows, weights) = (rows?, weights?);
    let h = combine_experts(g, &weights, |g, index| expert.forward(g, &w.index(index), &rows))?;
    g.reshape(&h, x.shape().to_vec())
}

/// x `[…, hidden]` as rows `[positions, hidden]`.
fn rows(g: &mut Graph, x: &Tensor) -> Result<Tensor> {
    let Some((width, positions)) = x.shape().split_last() else {
        return Err(g.error("experts", format!("{} has no rows", show(x.shape()))));
    };
    g.reshape(x, dims![product(positions), width])
}

/// Adds the shared expert at `w` (`DeepseekV3MoE.shared_experts`) to the sum of the routed ones: h and x
/// `[batch, sequence, hidden]`. One of width 0 is none.
///
/// # Errors
/// When the shapes do not go together.
pub fn add_shared_expert(
    g: &mut Graph,
    h: &Tensor,
    w: &Scope,
    x: &Tensor,
    expert: &GatedMlp<'_>,
) -> Result<Tensor> {
    if expert.width == 0 {
        return Ok(h.clone());
    }
    let shared = expert.forward(g, w, x)?;
    g.add(h, &shared)
}

/// Experts whose weights are batched (`GraniteMoeParallelExperts`), gate and up projections as one.
#[derive(Clone, Copy, Debug)]
pub struct BatchedExperts<'a> {
    /// The weight of gate and up projections `[experts, 2·width, hidden]`, of which the gate is the first half.
    pub gate_up: &'a str,
    /// The weight of the down projections `[experts, hidden, width]`.
    pub down: &'a str,
    /// The intermediate size.
    pub width: usize,
    /// The activation function.
    pub act: Activation,
}

impl BatchedExperts<'_> {
    /// The experts' outputs with weights at `w` for x `[batch, sequence, hidden]`, summed by routing weights
    /// `[batch, sequence, experts]`.
    ///
    /// # Errors
    /// As [`combine_experts`].
    pub fn forward(&self, g: &mut Graph, w: &Scope, x: &Tensor, routing_weights: &Tensor) -> Result<Tensor> {
        let [count, hidden] =
            [routing_weights, x].map(|x| x.dim(-1).and_then(Dim::fixed).unwrap_or_default());
        let gate_up = g.weight(&w.name(self.gate_up), &[count, 2 * self.width, hidden])?;
        let down = g.weight(&w.name(self.down), &[count, hidden, self.width])?;
        combine_experts(g, routing_weights, |g, index| {
            let h = expert_linear(g, x, &gate_up, index, false)?;
            let h = glu(g, &h, self.act)?;
            expert_linear(g, &h, &down, index, false)
        })
    }
}

/// Weighted sum of the experts' outputs `[…, hidden]`, by routing weights `[…, experts]`.
///
/// Every expert computes every token, so that shapes are fixed; weights of 0 add nothing.
///
/// # Errors
/// When the routing weights have no fixed number of experts, or an expert does not fit.
pub fn combine_experts(
    g: &mut Graph,
    routing_weights: &Tensor,
    expert: impl Fn(&mut Graph, usize) -> Result<Tensor>,
) -> Result<Tensor> {
    let mut sum: Option<Tensor> = None;
    let axis = routing_weights.rank().saturating_sub(1);
    for index in 0..routing_weights.dim(-1).and_then(Dim::fixed).unwrap_or_default() {
        let h = expert(g, index)?;
        let weight = g.slice(routing_weights, axis, index..index + 1)?;
        let h = g.mul(&h, &weight)?;
        sum = Some(match sum {
            Some(sum) => g.add(&sum, &h)?,
            None => h,
        });
    }
    sum.ok_or_else(|| {
        g.error(
            "combine_experts",
            format!("{} has no fixed number of experts", show(routing_weights.shape())),
        )
    })
}

/// Linear layer of one expert whose weights are batched: x `[…, in]` by `weights[index]` of `[experts, out, in]`, or of
/// `[experts, in, out]` where they are `transposed`.
///
/// # Errors
/// When there is no such expert, or x does not fit.
pub fn expert_linear(
    g: &mut Graph,
    x: &Tensor,
    weights: &Tensor,
    index: usize,
    transposed: bool,
) -> Result<Tensor> {
    let weight = g.slice(weights, 0, index..index + 1)?;
    let weight = g.reshape(&weight, weights.shape().get(1..).unwrap_or_default().to_vec())?;
    let weight = if transposed { weight } else { g.transpose(&weight, &[1, 0])? };
    g.matmul(x, &weight)
}

#[cfg(test)]
mod tests;
