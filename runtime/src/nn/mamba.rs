//! Mamba's mixer: a causal convolution and a selective scan.

use super::{CausalConv, RecurrentLayer, rms_norm_no_affine};
use crate::Result;
use crate::graph::{Activation, Dim, Graph, Scope, SelectiveScan, Tensor, Unary};

/// Mamba's mixer (`MambaMixer`; Gu and Dao, 2023, arXiv:2312.00752).
///
/// Its scan is [`Graph::selective_scan`], whose B and C all channels share.
#[derive(Clone, Copy, Debug)]
pub struct Mamba {
    /// Channels of the convolution and the scan (`intermediate_size`).
    pub width: usize,
    /// States of each channel (`state_size`).
    pub state: usize,
    /// The width that ∆ is projected from (`time_step_rank`).
    pub rank: usize,
    /// The length of the convolution's kernel (`conv_kernel`).
    pub kernel: usize,
    /// Whether the convolution has a bias (`use_conv_bias`).
    pub conv_bias: bool,
    /// Whether the input and output projections have biases (`use_bias`).
    pub bias: bool,
    /// The activation function behind the convolution.
    pub act: Activation,
    /// The normalisation of ∆, B and C.
    pub norm: BcDtNorm,
}

/// How ∆, B and C are normalised before they are used.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum BcDtNorm {
    /// Not at all.
    None,
    /// By their root mean square alone, with this epsilon (`FalconMambaMixer`).
    Rms(f64),
    /// By RMS norms with weights of their own, with this epsilon (`JambaMambaMixer`).
    Weighted(f64),
}

impl Mamba {
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
        let projected = g.linear_biased(&w.scope("in_proj"), &x, 2 * self.width, self.bias)?;
        let u = g.slice(&projected, 2, 0..self.width)?;
        let gate = g.slice(&projected, 2, self.width..2 * self.width)?;
        let conv = CausalConv { kernel: self.kernel, bias: self.conv_bias, act: Some(self.act) };
        let u = conv.forward(g, &w.scope("conv1d"), &u, layer, "conv")?;
        let u = layer.mask(g, &u)?;
        let y = self.scan(g, w, &u, &gate, layer)?;
        g.linear_biased(&w.scope("out_proj"), &y, hidden, self.bias)
    }

    /// The selective scan of u `[batch, sequence, width]`, times SiLU of the gate.
    fn scan(
        &self,
        g: &mut Graph,
        w: &Scope,
        u: &Tensor,
        gate: &Tensor,
        layer: &RecurrentLayer<'_>,
    ) -> Result<Tensor> {
        let (width, state) = (self.width, self.state);
        let projected = g.linear_no_bias(&w.scope("x_proj"), u, self.rank + 2 * state)?;
        let [dt, b, c] = <[Tensor; 3]>::try_from(g.split(&projected, 2, &[self.rank, state, state])?)
            .map_err(|_| g.error("Mamba", "three parts are expected"))?;
        let dt = self.normed(g, w, "dt_layernorm", &dt)?;
        let b = self.normed(g, w, "b_layernorm", &b)?;
        let c = self.normed(g, w, "c_layernorm", &c)?;
        let dt = g.linear(&w.scope("dt_proj"), &dt, width)?;
        g.enter(w);
        let a_log = g.weight(&w.name("A_log"), &[width, state])?;
        let d = g.weight(&w.name("D"), &[width])?;
        selective_scan(g, layer, [u, &dt, gate], [&b, &c], [&a_log, &d], 1)
    }

    fn normed(&self, g: &mut Graph, w: &Scope, name: &str, x: &Tensor) -> Result<Tensor> {
        match self.norm {
            BcDtNorm::None => Ok(x.clone()),
            BcDtNorm::Rms(epsilon) => rms_norm_no_affine(g, x, epsilon),
            BcDtNorm::Weighted(epsilon) => g.rms_norm(&w.scope(name), x, epsilon),
        }
    }
}

/// [`Graph::selective_scan`] of channels, their ∆ and gates `[batch, sequence, width]`, B and C `[batch, sequence, groups·state]`, and
/// `A_log` `[width, state]` and D `[width]`; the layer's state is `recurrent`.
pub(super) fn selective_scan(
    g: &mut Graph,
    layer: &RecurrentLayer<'_>,
    [u, delta, z]: [&Tensor; 3],
    [b, c]: [&Tensor; 2],
    [a_log, d]: [&Tensor; 2],
    groups: usize,
) -> Result<Tensor> {
    // As in the reference, whatever the rest is computed in.
    let a = &g.in_single(|g| Ok(negative_exp(g, a_log)))?;
    let [width, state] = [0, 1].map(|axis| a.dim(axis).and_then(Dim::fixed).unwrap_or_default());
    let past = layer.state(g, "recurrent", &[width, state, 1])?;
    let scan = SelectiveScan { u, delta, a, b, c, d, state: &past, z: Some(z), groups };
    layer.scan(g, "recurrent", &scan)
}

/// A of a state space from `A_log`: its eigenvalues, all below 0.
pub(super) fn negative_exp(g: &mut Graph, x: &Tensor) -> Tensor {
    let x = g.unary(Unary::Exp, x);
    g.unary(Unary::Neg, &x)
}
