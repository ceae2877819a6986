//! Mamba-2's mixer: a causal convolution and structured state space duality, which is linear attention with a decay by head.

use super::mamba::negative_exp;
use super::{CausalConv, RecurrentLayer, repeat_heads, rms_norm_no_affine};
use crate::Result;
use crate::dims;
use crate::graph::{Activation, Dim, Graph, LinearAttention, Scope, Tensor, Unary};

/// Mamba-2's mixer (`Mamba2Mixer`; Dao and Gu, 2024, arXiv:2405.21060).
///
/// Its state space is [`Graph::linear_attention`]: keys are B and queries C, which the heads of a group share, values ∆·x, and
/// the logarithms of decays ∆·A, one for each head.
#[derive(Clone, Copy, Debug)]
pub struct Mamba2<'a> {
    /// Heads (`num_heads`).
    pub heads: usize,
    /// Channels of a head (`head_dim`).
    pub head_dim: usize,
    /// Groups of heads that share B and C (`n_groups`).
    pub groups: usize,
    /// States of each channel (`state_size`).
    pub state: usize,
    /// The length of the convolution's kernel (`conv_kernel`).
    pub kernel: usize,
    /// Whether the convolution has a bias (`use_conv_bias`).
    pub conv_bias: bool,
    /// Whether the input projection has a bias (`use_bias`).
    pub bias: bool,
    /// Whether the output projection has one.
    pub out_bias: bool,
    /// The activation function behind the convolution.
    pub act: Activation,
    /// The least and the largest ∆ (`time_step_limit`).
    pub time_step_limit: (f64, f64),
    /// Where the norm over the channels of each group stands.
    pub norm: GatedNorm,
    /// The epsilon of that norm.
    pub norm_eps: f64,
    /// Multipliers of what is projected: the gate, x, B, C and ∆ (`FalconH1Mixer`); none where there are fewer.
    pub multipliers: &'a [f64],
}

/// Where the norm of a gated mixer stands (`MambaRMSNormGated`, `FalconH1RMSNormGated`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GatedNorm {
    /// Nowhere: there is a gate alone.
    None,
    /// Before the gate.
    BeforeGate,
    /// Behind the gate.
    BehindGate,
}

impl Mamba2<'_> {
    /// x `[batch, sequence, hidden]`, mixed over time, by the weights at `w`; the layer's states are `conv` and `recurrent`.
    ///
    /// # Errors
    /// When the shapes do not go together.
    pub fn forward(
        &self,
        g: &mut Graph,
        w: &Scope,
        x: &Tensor,
        layer: &RecurrentLayer<'_>,
    ) -> Result<Tensor> {
        let hidden = x.dim(-1).and_then(Dim::fixed).unwrap_or_default();
        let x = layer.mask(g, x)?;
        let width = self.heads * self.head_dim;
        let conv_width = width + 2 * self.groups * self.state;
        let projected =
            g.linear_biased(&w.scope("in_proj"), &x, width + conv_width + self.heads, self.bias)?;
        let projected = self.multiplied(g, &projected)?;
        let gate = g.slice(&projected, 2, 0..width)?;
        let dt = g.slice(&projected, 2, width + conv_width..width + conv_width + self.heads)?;
        let y = g.slice(&projected, 2, width..width + conv_width)?;
        let y = self.mix(g, w, [&y, &dt], layer)?;
        let gate = g.activation(Activation::Silu, &gate)?;
        let norm = w.scope("norm");
        let y = if self.norm == GatedNorm::BeforeGate { self.normed(g, &norm, &y)? } else { y };
        let y = g.mul(&y, &gate)?;
        let y = if self.norm == GatedNorm::BehindGate { self.normed(g, &norm, &y)? } else { y };
        g.linear_biased(&w.scope("out_proj"), &y, hidden, self.out_bias)
    }

    /// The convolution and the state space: x, B and C together `[batch, sequence, width + 2·groups·state]` and ∆
    /// `[batch, sequence, heads]` to `[batch, sequence, width]`.
    ///
    /// # Errors
    /// When the shapes do not go together.
    pub fn mix(
        &self,
        g: &mut Graph,
        w: &Scope,
        [x, dt]: [&Tensor; 2],
        layer: &RecurrentLayer<'_>,
    ) -> Result<Tensor> {
        let conv = CausalConv { kernel: self.kernel, bias: self.conv_bias, act: Some(self.act) };
        let x = conv.forward(g, &w.scope("conv1d"), x, layer, "conv")?;
        let x = layer.mask(g, &x)?;
        g.in_single(|g| self.scan(g, w, [&x, dt], layer))
    }

    /// The state space of x, B and C behind the convolution, in single precision as in the reference.
    fn scan(
        &self,
        g: &mut Graph,
        w: &Scope,
        [x, dt]: [&Tensor; 2],
        layer: &RecurrentLayer<'_>,
    ) -> Result<Tensor> {
        let (heads, groups, state) = (self.heads, self.groups, self.state);
        let width = heads * self.head_dim;
        let (batch, sequence) = (&x.shape()[0].clone(), &x.shape()[1].clone());
        let u = g.slice(x, 2, 0..width)?;
        let b = g.slice(x, 2, width..width + groups * state)?;
        let c = g.slice(x, 2, width + groups * state..width + 2 * groups * state)?;
        g.enter(w);
        let dt_bias = g.weight(&w.name("dt_bias"), &[heads])?;
        let dt = g.add(dt, &dt_bias)?;
        let dt = g.unary(Unary::Softplus, &dt);
        let dt = match self.time_step_limit {
            // Its softplus is above 0 as it is, and below the largest number.
            (least, most) if least <= 0.0 && most >= f64::from(f32::MAX) => dt,
            (least, most) => g.clip(&dt, least as f32, most as f32)?,
        };
        let a = g.weight(&w.name("A_log"), &[heads])?;
        let a = negative_exp(g, &a);
        let decay = g.mul(&dt, &a)?;
        let by_head = g.reshape(&u, dims![batch, sequence, heads, self.head_dim])?;
        let dt = g.unsqueeze(&dt, 3)?;
        let v = g.mul(&by_head, &dt)?;
        let v = g.reshape(&v, dims![batch, sequence, width])?;
        let k = repeat_heads(g, &b, groups, heads)?;
        let past = layer.state(g, "recurrent", &[heads, state, self.head_dim])?;
        let space = LinearAttention {
            q: &c,
            k: &k,
            v: &v,
            state: &past,
            decay: Some(&decay),
            beta: None,
            heads,
            query_heads: groups,
            scale: 1.0,
        };
        let y = layer.attend(g, "recurrent", &space)?;
        let d = g.weight(&w.name("D"), &[heads])?;
        let d = g.unsqueeze(&d, 1)?;
        let skipped = g.mul(&by_head, &d)?;
        let skipped = g.reshape(&skipped, dims![batch, sequence, width])?;
        g.add(&y, &skipped)
    }

    /// What is projected, times its multipliers.
    fn multiplied(&self, g: &mut Graph, projected: &Tensor) -> Result<Tensor> {
        let [gate, x, b, c, dt] = *self.multipliers else { return Ok(projected.clone()) };
        if self.multipliers.iter().all(|multiplier| *multiplier == 1.0) {
            return Ok(projected.clone());
        }
        let (width, shared) = (self.heads * self.head_dim, self.groups * self.state);
        let parts = [(gate, width), (x, width), (b, shared), (c, shared), (dt, self.heads)];
        let row: Vec<f32> =
            parts.iter().flat_map(|&(multiplier, width)| vec![multiplier as f32; width]).collect();
        let row = g.constant(&[row.len()], row)?;
        g.mul(projected, &row)
    }

    /// The RMS norm of the mixer, group by group (`MambaRMSNormGated`).
    fn normed(&self, g: &mut Graph, w: &Scope, x: &Tensor) -> Result<Tensor> {
        let (groups, epsilon) = (self.groups, self.norm_eps);
        if groups <= 1 {
            return g.rms_norm(w, x, epsilon);
        }
        let width = self.heads * self.head_dim;
        let apart = g.reshape(x, dims![&x.shape()[0], &x.shape()[1], groups, width / groups])?;
        let apart = rms_norm_no_affine(g, &apart, epsilon)?;
        let x = g.reshape(&apart, x.shape().to_vec())?;
        g.enter(w);
        let scale = g.weight(&w.name("weight"), &[width])?;
        g.mul(&x, &scale)
    }
}

/// The least and the largest ∆ of `time_step_limit`; none where the list is shorter.
pub fn time_step_limit(limits: &[f64]) -> (f64, f64) {
    let at = |index: usize| limits.get(index).copied();
    (at(0).unwrap_or(0.0), at(1).unwrap_or(f64::INFINITY))
}
