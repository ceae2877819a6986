//! Feed-forward layers: two linear layers, or three with a gated linear unit (GLU; Shazeer, 2020, arXiv:2002.05202).

use super::{Activation, split_last};
use crate::Result;
use crate::graph::{Binary, Dim, Graph, Scope, Tensor, Unary, show};

/// The width of a feed-forward layer that is adjusted (`block_auto_adjust_ff_dim`): two thirds, times a factor, rounded up to
/// a multiple.
pub fn adjusted_width(width: usize, multiplier: f64, multiple_of: usize) -> usize {
    let width = width.saturating_mul(2) / 3;
    let multiple_of = multiple_of.max(1);
    ((multiplier * width as f64) as usize).div_ceil(multiple_of).saturating_mul(multiple_of)
}

/// Feed-forward layer of two linear layers (`GPTNeoXMLP`, `BertIntermediate` and `BertOutput`): `down(act(up(x)))`.
#[derive(Clone, Copy, Debug)]
pub struct Mlp<'a> {
    /// The scope of the up projection.
    pub up: &'a str,
    /// The scope of the down projection.
    pub down: &'a str,
    /// The intermediate size.
    pub width: usize,
    /// The activation function.
    pub act: Activation,
    /// Whether both have biases.
    pub bias: bool,
}

impl Mlp<'_> {
    /// The layer with weights at `w`: x `[…, hidden]` f32 to the same shape.
    ///
    /// # Errors
    /// When x is no f32 with a last axis of fixed length.
    pub fn forward(&self, g: &mut Graph, w: &Scope, x: &Tensor) -> Result<Tensor> {
        g.enter(w);
        let hidden = hidden_size(g, x)?;
        let h = g.linear_biased(&w.scope(self.up), x, self.width, self.bias)?;
        let h = g.activation(self.act, &h)?;
        g.linear_biased(&w.scope(self.down), &h, hidden, self.bias)
    }
}

/// Gated feed-forward layer (`LlamaMLP`): `down(act(gate(x)) · up(x))`, SwiGLU with SiLU and GeGLU with GELU.
#[derive(Clone, Copy, Debug)]
pub struct GatedMlp<'a> {
    /// The scope of the gate projection, which the activation function follows.
    pub gate: &'a str,
    /// The scope of the up projection.
    pub up: &'a str,
    /// The scope of the down projection.
    pub down: &'a str,
    /// The intermediate size.
    pub width: usize,
    /// The activation function.
    pub act: Activation,
    /// Whether all three have biases.
    pub bias: bool,
}

impl GatedMlp<'_> {
    /// The layer with weights at `w`: x `[…, hidden]` f32 to the same shape.
    ///
    /// # Errors
    /// When x is no f32 with a last axis of fixed length.
    pub fn forward(&self, g: &mut Graph, w: &Scope, x: &Tensor) -> Result<Tensor> {
        g.enter(w);
        let hidden = hidden_size(g, x)?;
        let h = self.gated(g, w, x)?;
        g.linear_biased(&w.scope(self.down), &h, hidden, self.bias)
    }

    /// What the down projection takes, for layers that normalise it first: x `[…, hidden]` to `[…, width]`.
    ///
    /// # Errors
    /// As [`GatedMlp::forward`].
    pub fn gated(&self, g: &mut Graph, w: &Scope, x: &Tensor) -> Result<Tensor> {
        let gate = g.linear_biased(&w.scope(self.gate), x, self.width, self.bias)?;
        let gate = g.activation(self.act, &gate)?;
        let up = g.linear_biased(&w.scope(self.up), x, self.width, self.bias)?;
        g.mul(&gate, &up)
    }
}

/// Gated feed-forward layer with one projection of gate and up (`Phi3MLP`, `ModernBertMLP`): `down(glu(gate_up(x)))`.
#[derive(Clone, Copy, Debug)]
pub struct FusedGatedMlp<'a> {
    /// The scope of the projection of gate and up, of which the gate is the first half.
    pub gate_up: &'a str,
    /// The scope of the down projection.
    pub down: &'a str,
    /// The intermediate size, half the width of the first.
    pub width: usize,
    /// The activation function.
    pub act: Activation,
    /// Whether both have biases.
    pub bias: bool,
}

impl FusedGatedMlp<'_> {
    /// The layer with weights at `w`: x `[…, hidden]` f32 to the same shape.
    ///
    /// # Errors
    /// When x is no f32 with a last axis of fixed length.
    pub fn forward(&self, g: &mut Graph, w: &Scope, x: &Tensor) -> Result<Tensor> {
        g.enter(w);
        let hidden = hidden_size(g, x)?;
        let h = g.linear_biased(&w.scope(self.gate_up), x, 2 * self.width, self.bias)?;
        let h = glu(g, &h, self.act)?;
        g.linear_biased(&w.scope(self.down), &h, hidden, self.bias)
    }
}

/// Gated linear unit of a fused projection: the first half of the last axis, through the activation function, times the
/// second half; `[…, 2·width]` to `[…, width]`.
///
/// # Errors
/// When the last axis has no fixed, even length.
pub fn glu(g: &mut Graph, x: &Tensor, act: Activation) -> Result<Tensor> {
    let width = hidden_size(g, x)? / 2;
    let [gate, up] = split_last(g, x, [width; 2])?;
    let gate = g.activation(act, &gate)?;
    g.mul(&gate, &up)
}

/// Clamped SwiGLU (`GptOssExperts._apply_gate`): `(up + 1) · gate · sigmoid(alpha · gate)`, for gates and up projections of one
/// shape, with gates of at most `limit` and up projections at most this far from 0.
///
/// # Errors
/// When the shapes do not go together.
pub fn clamped_swiglu(g: &mut Graph, gate: &Tensor, up: &Tensor, alpha: f64, limit: f64) -> Result<Tensor> {
    let most = g.scalar(limit as f32);
    let gate = g.binary(Binary::Min, gate, &most)?;
    let up = g.clip(up, -limit as f32, limit as f32)?;
    let sharp = g.scale(&gate, alpha)?;
    let sharp = g.unary(Unary::Sigmoid, &sharp);
    let gate = g.mul(&gate, &sharp)?;
    let one = g.scalar(1.0);
    let up = g.add(&up, &one)?;
    g.mul(&up, &gate)
}

/// Sigmoid gate of one number a position (`shared_expert_gate` of `Qwen2MoeSparseMoeBlock`): `h · sigmoid(gate(x))`, for h
/// and x `[…, hidden]`.
///
/// # Errors
/// When the last axis of x has no fixed length, or h does not fit.
pub fn sigmoid_gate(g: &mut Graph, w: &Scope, x: &Tensor, h: &Tensor) -> Result<Tensor> {
    let gate = g.linear_no_bias(w, x, 1)?;
    let gate = g.unary(Unary::Sigmoid, &gate);
    g.mul(h, &gate)
}

fn hidden_size(g: &Graph, x: &Tensor) -> Result<usize> {
    x.dim(-1).and_then(Dim::fixed).ok_or_else(|| {
        g.error("Mlp", format!("the last axis of {} must have a fixed length", show(x.shape())))
    })
}

#[cfg(test)]
mod tests;
