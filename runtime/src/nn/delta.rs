//! The gated delta rule: a state that forgets, and is corrected by what it holds for a key before a value is added.

use super::mamba::negative_exp;
use super::{RecurrentLayer, merge_heads, norm_per_head, rms_norm_no_affine, split_heads};
use crate::Result;
use crate::dims;
use crate::graph::{Activation, Dim, Graph, LinearAttention, Scope, Tensor, Unary};

/// The epsilon of the normalisation of queries and keys by their lengths (`l2norm`).
const EPSILON: f64 = 1e-6;

/// The gated delta rule (`torch_chunk_gated_delta_rule`, `torch_recurrent_gated_delta_rule`; Yang, Kautz and Hatamizadeh, 2024,
/// arXiv:2412.06464), and with decays by key Kimi's delta attention (arXiv:2510.26692).
#[derive(Clone, Copy, Debug)]
pub struct DeltaRule {
    /// Heads of values, and states (`linear_num_value_heads`).
    pub heads: usize,
    /// Heads of queries and keys, which neighbouring heads of values share (`linear_num_key_heads`).
    pub key_heads: usize,
    /// The size of a head of keys (`linear_key_head_dim`).
    pub key: usize,
    /// The size of a head of values (`linear_value_head_dim`).
    pub value: usize,
}

/// What the delta rule is given at each position.
#[derive(Clone, Copy, Debug)]
pub struct DeltaInputs<'a> {
    /// Queries `[batch, sequence, key_heads·key]`, which are divided by their lengths here.
    pub q: &'a Tensor,
    /// Keys of the same shape, which are divided by theirs.
    pub k: &'a Tensor,
    /// Values `[batch, sequence, heads·value]`.
    pub v: &'a Tensor,
    /// Logarithms of decays, as [`DeltaRule::decay`] gives them.
    pub decay: &'a Tensor,
    /// How much of what is missing is added `[batch, sequence, heads]`.
    pub beta: &'a Tensor,
}

impl DeltaRule {
    /// What queries read, `[batch, sequence, heads·value]`; the layer's state is `recurrent`.
    ///
    /// # Errors
    /// When the shapes do not go together.
    pub fn forward(&self, g: &mut Graph, x: &DeltaInputs<'_>, layer: &RecurrentLayer<'_>) -> Result<Tensor> {
        let state = layer.state(g, "recurrent", &[self.heads, self.key, self.value])?;
        let (y, state) = self.attend(g, x, &state)?;
        layer.cache.keep_state(g, layer.index, "recurrent", &state)?;
        Ok(y)
    }

    /// What queries read behind a state `[batch, heads, key, value]`, and the state behind the last of them.
    fn attend(&self, g: &mut Graph, x: &DeltaInputs<'_>, state: &Tensor) -> Result<(Tensor, Tensor)> {
        let q = self.normalized(g, x.q)?;
        let k = self.normalized(g, x.k)?;
        let k = g.scale(&k, (self.key as f64).powf(-0.5))?;
        let k = repeat_heads(g, &k, self.key_heads, self.heads)?;
        let rule = LinearAttention {
            q: &q,
            k: &k,
            v: x.v,
            state,
            decay: Some(x.decay),
            beta: Some(x.beta),
            heads: self.heads,
            query_heads: self.key_heads,
            // 1/√key of the rule, and 1/√key that makes of a root mean square a length.
            scale: 1.0 / self.key as f64,
        };
        g.linear_attention(&rule)
    }

    /// Logarithms of decays, `-exp(A_log)·softplus(a + dt_bias)` by the weights at `w`: of a `[batch, sequence, heads]`, or
    /// `[batch, sequence, heads·key]` by key (`KimiLinearForgetGate`), the same shape. `A_log` has one number for each head, its
    /// shape is `a_log`.
    ///
    /// # Errors
    /// When the shapes do not go together.
    pub fn decay(&self, g: &mut Graph, w: &Scope, a: &Tensor, a_log: &[usize]) -> Result<Tensor> {
        let width = a.dim(-1).and_then(Dim::fixed).unwrap_or_default();
        g.enter(w);
        let bias = g.weight(&w.name("dt_bias"), &[width])?;
        let a = g.add(a, &bias)?;
        let a = g.unary(Unary::Softplus, &a);
        let rate = g.weight(&w.name("A_log"), a_log)?;
        let rate = negative_exp(g, &rate);
        let rate = g.reshape(&rate, dims![self.heads, 1])?;
        let rate = g.expand(&rate, dims![self.heads, width / self.heads.max(1)])?;
        let rate = g.reshape(&rate, dims![width])?;
        g.mul(&a, &rate)
    }

    /// Logarithms of decays between `lower_bound` and 0, `lower_bound·σ(exp(A_log)·(a + dt_bias))` by the weights at `w`
    /// (`BailingHybridForgetGate`): of a `[batch, sequence, heads·key]` the same shape.
    ///
    /// # Errors
    /// When the shapes do not go together.
    pub fn bounded_decay(&self, g: &mut Graph, w: &Scope, a: &Tensor, lower_bound: f64) -> Result<Tensor> {
        let (width, heads) = (a.dim(-1).and_then(Dim::fixed).unwrap_or_default(), self.heads);
        g.enter(w);
        let bias = g.weight(&w.name("dt_bias"), &[width])?;
        let a = g.add(a, &bias)?;
        let rate = g.weight(&w.name("A_log"), &[heads])?;
        let rate = g.unary(Unary::Exp, &rate);
        let rate = g.reshape(&rate, dims![heads, 1])?;
        let a = split_heads(g, &a, heads)?;
        let a = g.mul(&a, &rate)?;
        let a = g.unary(Unary::Sigmoid, &a);
        let a = g.scale(&a, lower_bound)?;
        merge_heads(g, &a)
    }

    /// Queries or keys by their root mean square, head by head: √key times the vectors of length 1.
    fn normalized(&self, g: &mut Graph, x: &Tensor) -> Result<Tensor> {
        let epsilon = EPSILON / self.key as f64;
        norm_per_head(g, x, self.key_heads, |g, x| rms_norm_no_affine(g, x, epsilon))
    }

    /// The RMS norm of each head with the weight at `w`, times the activation of a gate (`Qwen3NextRMSNormGated`): x and gate
    /// `[batch, sequence, heads·value]`.
    ///
    /// # Errors
    /// When the shapes do not go together.
    pub fn gated_norm(
        &self,
        g: &mut Graph,
        w: &Scope,
        [x, gate]: [&Tensor; 2],
        act: Activation,
        epsilon: f64,
    ) -> Result<Tensor> {
        let x = norm_per_head(g, x, self.heads, |g, x| g.rms_norm(w, x, epsilon))?;
        let gate = g.activation(act, gate)?;
        g.mul(&x, &gate)
    }
}

/// Heads once for each of those that share them (`repeat_interleave`): `[batch, sequence, from·size]` to `[batch, sequence,
/// to·size]`.
///
/// # Errors
/// When `to` is no multiple of `from`.
pub fn repeat_heads(g: &mut Graph, x: &Tensor, from: usize, to: usize) -> Result<Tensor> {
    if from == to {
        return Ok(x.clone());
    }
    if from == 0 || !to.is_multiple_of(from) {
        return Err(g.error("repeat_heads", format!("{from} heads are not shared by {to}")));
    }
    let size = x.dim(-1).and_then(Dim::fixed).unwrap_or_default() / from;
    let (batch, sequence) = (&x.shape()[0].clone(), &x.shape()[1].clone());
    let x = g.reshape(x, dims![batch, sequence, from, 1, size])?;
    let x = g.expand(&x, dims![batch, sequence, from, to / from, size])?;
    g.reshape(&x, dims![batch, sequence, to * size])
}

#[cfg(test)]
mod tests;
