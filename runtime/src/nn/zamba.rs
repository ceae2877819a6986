//! Zamba's mixer: Mamba whose channels are in heads with projections of their own.

use super::mamba::selective_scan;
use super::{CausalConv, RecurrentLayer, grouped_linear, merge_heads, split_heads, split_last};
use crate::Result;
use crate::dims;
use crate::graph::{Activation, Dim, Graph, Scope, Tensor};

/// Mamba's mixer with heads (`ZambaMambaMixer`): each head projects ∆, B and C of its own channels.
#[derive(Clone, Copy, Debug)]
pub struct ZambaMamba {
    /// Heads (`n_mamba_heads`).
    pub heads: usize,
    /// Channels of all heads (`intermediate_size`).
    pub width: usize,
    /// States of each channel (`mamba_d_state`).
    pub state: usize,
    /// The width that ∆ is projected from (`mamba_dt_rank`).
    pub rank: usize,
    /// The length of the convolution's kernel (`mamba_d_conv`).
    pub kernel: usize,
    /// Whether the convolution has a bias (`mamba_conv_bias`).
    pub conv_bias: bool,
    /// Whether the input and output projections have biases (`mamba_proj_bias`).
    pub bias: bool,
    /// The activation function behind the convolution (`hidden_mamba_act`).
    pub act: Activation,
}

impl ZambaMamba {
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
        // Every other channel of what is projected is a gate.
        let projected = g.linear_biased(&w.scope("in_proj"), &x, 2 * self.width, self.bias)?;
        let projected = split_heads(g, &projected, self.width)?;
        let [u, gate] = [g.take(&projected, 3, 0)?, g.take(&projected, 3, 1)?];
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
        let (heads, width, rank, state) = (self.heads, self.width, self.rank, self.state);
        let size = width / heads.max(1);
        g.enter(w);
        let weight = g.weight(&w.name("x_proj_weight"), &[heads, rank + 2 * state, size])?;
        let weight = g.transpose(&weight, &[0, 2, 1])?;
        let projected = grouped_linear(g, u, &weight)?;
        let projected = split_heads(g, &projected, heads)?;
        let [dt, b, c] = split_last(g, &projected, [rank, state, state])?;
        let [dt, b, c] = [merge_heads(g, &dt)?, merge_heads(g, &b)?, merge_heads(g, &c)?];
        let weight = g.weight(&w.name("dt_proj_weight"), &[heads, size, rank])?;
        let weight = g.transpose(&weight, &[0, 2, 1])?;
        let dt = grouped_linear(g, &dt, &weight)?;
        let bias = g.weight(&w.name("dt_proj_bias"), &[heads, size])?;
        let bias = g.reshape(&bias, dims![width])?;
        let dt = g.add(&dt, &bias)?;
        let a_log = g.weight(&w.name("A_log"), &[heads, size, state])?;
        let a_log = g.reshape(&a_log, dims![width, state])?;
        let d = g.weight(&w.name("D"), &[heads, size])?;
        let d = g.reshape(&d, dims![width])?;
        selective_scan(g, layer, [u, &dt, gate], [&b, &c], [&a_log, &d], heads)
    }
}
