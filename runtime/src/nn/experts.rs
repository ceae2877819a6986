//! Experts of a mixture of experts: a list of gated MLPs, or batched weights, of which each position computes those that its
//! router selected; shared experts.

use super::{Activation, GatedMlp, Mlp, Routing, glu};
use crate::graph::{Binary, Dim, Graph, Reduction, Scope, Tensor, product, show};
use crate::{Result, dims};

/// Mixture of experts with a module for each (`MixtralExperts` as checkpoints have it, `experts.0.gate_proj.weight`): the
/// outputs of the gated MLPs at `w` for x `[batch, sequence, hidden]`, summed by routing weights.
///
/// # Errors
/// As [`combine_experts`].
pub fn experts(
    g: &mut Graph,
    w: &Scope,
    x: &Tensor,
    routing: &Routing,
    expert: &GatedMlp<'_>,
) -> Result<Tensor> {
    experts_from(g, w, x, routing, expert, 0)
}

/// As [`experts`], of a list that holds those of several routers one after the other (`Ernie4_5_VLMoeMoeBlock` as checkpoints have
/// it): they begin with the module of the number `first`.
///
/// # Errors
/// As [`combine_experts`].
pub fn experts_from(
    g: &mut Graph,
    w: &Scope,
    x: &Tensor,
    routing: &Routing,
    expert: &GatedMlp<'_>,
    first: usize,
) -> Result<Tensor> {
    combine_experts(g, x, routing, |g, x, selected| {
        let selected = SelectedExperts { first, ..selected.clone() };
        let gate = selected.layer(g, w, expert.gate, x, expert.width, expert.bias)?;
        let gate = g.activation(expert.act, &gate)?;
        let up = selected.layer(g, w, expert.up, x, expert.width, expert.bias)?;
        let h = g.mul(&gate, &up)?;
        let hidden = x.dim(-1).and_then(Dim::fixed).unwrap_or_default();
        selected.layer(g, w, expert.down, &h, hidden, expert.bias)
    })
}

/// Mixture of experts without gates, a module for each (`SwitchTransformersExperts`, `NllbMoeExperts`): the outputs of the MLPs
/// at `w` for x `[batch, sequence, hidden]`, summed by routing weights.
///
/// # Errors
/// As [`combine_experts`].
pub fn ungated_experts(
    g: &mut Graph,
    w: &Scope,
    x: &Tensor,
    routing: &Routing,
    expert: &Mlp<'_>,
) -> Result<Tensor> {
    combine_experts(g, x, routing, |g, x, selected| {
        let h = selected.layer(g, w, expert.up, x, expert.width, expert.bias)?;
        let h = g.activation(expert.act, &h)?;
        let hidden = x.dim(-1).and_then(Dim::fixed).unwrap_or_default();
        selected.layer(g, w, expert.down, &h, hidden, expert.bias)
    })
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

/// Experts whose weights are batched (`GraniteMoeParallelExperts`, `Qwen3VLMoeTextExperts`), gate and up projections as one. Files
/// may hold them transposed, as `[experts, in, out]`.
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
    /// The experts' outputs with weights at `w` for x `[batch, sequence, hidden]`, summed by routing weights.
    ///
    /// # Errors
    /// As [`combine_experts`].
    pub fn forward(&self, g: &mut Graph, w: &Scope, x: &Tensor, routing: &Routing) -> Result<Tensor> {
        self.forward_clamped(g, w, x, routing, f64::INFINITY)
    }

    /// As [`BatchedExperts::forward`], but gates are at most `limit`, and up projections at most this far from 0 (`HYV4Experts`).
    ///
    /// # Errors
    /// As [`combine_experts`].
    pub fn forward_clamped(
        &self,
        g: &mut Graph,
        w: &Scope,
        x: &Tensor,
        routing: &Routing,
        limit: f64,
    ) -> Result<Tensor> {
        let hidden = x.dim(-1).and_then(Dim::fixed).unwrap_or_default();
        let [gate_up, down] = [w.name(self.gate_up), w.name(self.down)];
        let [wide, narrow] = [[2 * self.width, hidden], [hidden, self.width]];
        combine_experts(g, x, routing, |g, x, selected| {
            // What is square says nothing of itself; the other is not.
            let (of_wide, of_narrow) = (
                Self::transposed(g, &gate_up, selected.count, wide),
                Self::transposed(g, &down, selected.count, narrow),
            );
            let transposed = [of_wide.or(of_narrow), of_narrow.or(of_wide)].map(|it| it.unwrap_or(false));
            let h = Self::linear(g, &gate_up, x, selected, wide, transposed[0])?;
            let h =
                if limit.is_finite() { self.clamped(g, &h, limit as f32)? } else { glu(g, &h, self.act)? };
            Self::linear(g, &down, &h, selected, narrow, transposed[1])
        })
    }

    /// Whether a file holds a weight `[experts, out, in]` as `[experts, in, out]`, where the shape says so.
    fn transposed(g: &Graph, name: &str, count: usize, [out, width]: [usize; 2]) -> Option<bool> {
        let stores = |shape: [usize; 3]| g.stores(name, &shape);
        (out != width).then(|| !stores([count, out, width]) && stores([count, width, out]))
    }

    /// act(gate) · up, with gates of at most `limit` and up projections at most this far from 0.
    fn clamped(&self, g: &mut Graph, x: &Tensor, limit: f32) -> Result<Tensor> {
        let gate = g.slice(x, 2, 0..self.width)?;
        let up = g.slice(x, 2, self.width..2 * self.width)?;
        let most = g.scalar(limit);
        let gate = g.binary(Binary::Min, &gate, &most)?;
        let gate = g.activation(self.act, &gate)?;
        let up = g.clip(&up, -limit, limit)?;
        g.mul(&gate, &up)
    }

    /// The selected experts' linear layer of a weight `[experts, out, in]`, or as the file holds it.
    fn linear(
        g: &mut Graph,
        name: &str,
        x: &Tensor,
        selected: &SelectedExperts,
        [out, width]: [usize; 2],
        transposed: bool,
    ) -> Result<Tensor> {
        let [rows, columns] = if transposed { [width, out] } else { [out, width] };
        let weight = g.weight(name, &[selected.count, rows, columns])?;
        selected.linear(g, x, &weight, transposed)
    }
}

/// The experts that a router selected for each position.
#[derive(Clone, Debug)]
pub struct SelectedExperts {
    /// Which ones, i64 `[positions, selected]`.
    indices: Tensor,
    /// How many experts there are.
    count: usize,
    /// The number of the first one in a list of modules.
    first: usize,
}

impl SelectedExperts {
    /// Linear layers of experts whose weights are batched: x `[positions, 1 or selected, in]` by `weights` `[experts, out, in]`,
    /// or `[experts, in, out]` where they are `transposed`; to `[positions, selected, out]`.
    ///
    /// # Errors
    /// When x does not fit.
    pub fn linear(&self, g: &mut Graph, x: &Tensor, weights: &Tensor, transposed: bool) -> Result<Tensor> {
        g.expert_linear(x, &self.indices, std::slice::from_ref(weights), transposed)
    }

    /// Rows of a table `[experts, width]`, such as biases: `[positions, selected, width]`.
    ///
    /// # Errors
    /// When the table has no axes.
    pub fn rows(&self, g: &mut Graph, table: &Tensor) -> Result<Tensor> {
        g.gather(table, &self.indices, 0)
    }

    /// The linear layer `name` of experts that are modules of a list at `w`.
    fn layer(
        &self,
        g: &mut Graph,
        w: &Scope,
        name: &str,
        x: &Tensor,
        out: usize,
        bias: bool,
    ) -> Result<Tensor> {
        let layers: Vec<Scope> =
            (0..self.count).map(|index| w.index(self.first + index).scope(name)).collect();
        let width = x.dim(-1).and_then(Dim::fixed).unwrap_or_default();
        let weights = layers.iter().map(|w| g.weight(&w.name("weight"), &[out, width]));
        let weights = weights.collect::<Result<Vec<_>>>()?;
        g.enter(&w.scope(name));
        let h = g.expert_linear(x, &self.indices, &weights, false)?;
        if !bias {
            return Ok(h);
        }
        let biases = layers.iter().map(|w| {
            let bias = g.weight(&w.name("bias"), &[out])?;
            g.unsqueeze(&bias, 0)
        });
        let biases = biases.collect::<Result<Vec<_>>>()?;
        let table = g.concat(&biases.iter().collect::<Vec<_>>(), 0)?;
        let bias = self.rows(g, &table)?;
        g.add(&h, &bias)
    }
}

/// Sums what the experts selected for each position give, by their routing weights: x `[…, hidden]` to the same shape. The
/// experts are given x as `[positions, 1, hidden]`, and give `[positions, selected, hidden]`.
///
/// Between their linear layers and rows of tables, operations are element by element, or take ranges of the last axis: backends
/// that have no kernel for selected experts compute them one after the other for all positions.
///
/// # Errors
/// When the routing weights have no fixed number of experts, or an expert does not fit.
pub fn combine_experts(
    g: &mut Graph,
    x: &Tensor,
    routing: &Routing,
    experts: impl FnOnce(&mut Graph, &Tensor, &SelectedExperts) -> Result<Tensor>,
) -> Result<Tensor> {
    mix_experts(g, x, routing, Weighted::Outputs, experts)
}

/// As [`combine_experts`], with inputs times routing weights in place of outputs (`Llama4TextMoe`): the experts are given
/// `[positions, selected, hidden]`.
///
/// # Errors
/// As [`combine_experts`].
pub fn combine_weighted_inputs(
    g: &mut Graph,
    x: &Tensor,
    routing: &Routing,
    experts: impl FnOnce(&mut Graph, &Tensor, &SelectedExperts) -> Result<Tensor>,
) -> Result<Tensor> {
    mix_experts(g, x, routing, Weighted::Inputs, experts)
}

/// What routing weights are factors of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Weighted {
    /// What goes into experts.
    Inputs,
    /// What experts give.
    Outputs,
}

/// The sum of selected experts, with routing weights before or behind them.
fn mix_experts(
    g: &mut Graph,
    x: &Tensor,
    routing: &Routing,
    weighted: Weighted,
    experts: impl FnOnce(&mut Graph, &Tensor, &SelectedExperts) -> Result<Tensor>,
) -> Result<Tensor> {
    let weights = rows(g, &routing.weights)?;
    let Some(count) = weights.dim(-1).and_then(Dim::fixed) else {
        let problem = format!("{} has no fixed number of experts", show(weights.shape()));
        return Err(g.error("combine_experts", problem));
    };
    g.count_experts(&weights)?;
    let (weights, indices) = g.top_k(&weights, routing.top_k)?;
    let weights = g.unsqueeze(&weights, 2)?;
    let flat = rows(g, x)?;
    let mut flat = g.unsqueeze(&flat, 1)?;
    if weighted == Weighted::Inputs {
        flat = g.mul(&flat, &weights)?;
    }
    let mut h = experts(g, &flat, &SelectedExperts { indices, count, first: 0 })?;
    if weighted == Weighted::Outputs {
        h = g.mul(&h, &weights)?;
    }
    let sum = g.reduce(Reduction::Sum, &h, &[1], false)?;
    g.reshape(&sum, x.shape().to_vec())
}

/// x `[…, hidden]` as rows `[positions, hidden]`.
fn rows(g: &mut Graph, x: &Tensor) -> Result<Tensor> {
    let Some((width, positions)) = x.shape().split_last() else {
        return Err(g.error("experts", format!("{} has no rows", show(x.shape()))));
    };
    g.reshape(x, dims![product(positions), width])
}

#[cfg(test)]
mod tests;
