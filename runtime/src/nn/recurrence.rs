//! Layers whose cache has a fixed size: short convolutions over time and recurrent states.

use super::Cache;
use crate::Result;
use crate::graph::dims::SEQUENCE;
use crate::graph::{Activation, Dim, Dtype, Graph, LinearAttention, Scope, SelectiveScan, Tensor, show};

/// Which new positions are tokens (`create_recurrent_attention_mask`): 1, and 0 for padding, which is kept out of states:
/// `attention_mask` `[batch, past + sequence]` or `[batch, sequence]` to `[batch, sequence, 1]`.
///
/// # Errors
/// When the mask has not two axes.
pub fn recurrent_mask(g: &mut Graph, attention_mask: &Tensor) -> Result<Tensor> {
    let [_, length] = attention_mask.shape() else {
        let problem = format!("a mask [batch, sequence] is needed, not {}", show(attention_mask.shape()));
        return Err(g.error("recurrent_mask", problem));
    };
    let length = length.clone();
    let start = length.clone() - SEQUENCE;
    let new = match start {
        Dim::Fixed(0) => attention_mask.clone(),
        start => g.slice_dims(attention_mask, 1, start, length)?,
    };
    let new = g.cast(&new, Dtype::F32);
    g.unsqueeze(&new, 2)
}

/// The cache of one layer with states.
#[derive(Clone, Copy, Debug)]
pub struct RecurrentLayer<'a> {
    /// The cache of all layers.
    pub cache: &'a Cache,
    /// The layer's index.
    pub index: usize,
    /// What [`recurrent_mask`] gives.
    pub padding: &'a Tensor,
}

impl RecurrentLayer<'_> {
    /// x `[batch, sequence, width]` with zeros in the place of padding (`apply_mask_to_padding_states`).
    ///
    /// # Errors
    /// When x has another shape.
    pub fn mask(&self, g: &mut Graph, x: &Tensor) -> Result<Tensor> {
        g.mul(x, self.padding)
    }

    /// [`Graph::linear_attention`] from the cached state on, which is kept as `what`.
    ///
    /// `x.state` is the initial one of [`RecurrentLayer::state`].
    ///
    /// # Errors
    /// As [`Graph::linear_attention`].
    pub fn attend(&self, g: &mut Graph, what: &str, x: &LinearAttention<'_>) -> Result<Tensor> {
        let (mixed, state) = g.linear_attention(x)?;
        self.cache.keep_state(g, self.index, what, &state)?;
        Ok(mixed)
    }

    /// [`Graph::selective_scan`] from the cached state on, which is kept as `what`.
    ///
    /// `x.state` is the initial one of [`RecurrentLayer::state`].
    ///
    /// # Errors
    /// As [`Graph::selective_scan`].
    pub fn scan(&self, g: &mut Graph, what: &str, x: &SelectiveScan<'_>) -> Result<Tensor> {
        let (y, state) = g.selective_scan(x)?;
        self.cache.keep_state(g, self.index, what, &state)?;
        Ok(y)
    }

    /// A cached state `[batch, shape…]`; zeros at first.
    ///
    /// # Errors
    /// Never; as [`Graph::full`].
    pub fn state(&self, g: &mut Graph, what: &str, shape: &[usize]) -> Result<Tensor> {
        self.cache.past_state(g, self.index, what, shape)
    }
}

/// A causal depthwise convolution over time (`causal_conv1d_fn`, `causal_conv1d_update`; Mamba, arXiv:2312.00752), of which the
/// cache holds the last inputs.
#[derive(Clone, Copy, Debug)]
pub struct CausalConv {
    /// The length of the kernel.
    pub kernel: usize,
    /// Whether it has a bias.
    pub bias: bool,
    /// What is applied to the result.
    pub act: Option<Activation>,
}

impl CausalConv {
    /// x `[batch, sequence, channels]` convolved with the weights `weight` `[channels, 1, kernel]` and `bias` at `w`; the
    /// layer keeps the last inputs as `what`.
    ///
    /// # Errors
    /// When the channels have no fixed number, or the kernel is empty.
    pub fn forward(
        &self,
        g: &mut Graph,
        w: &Scope,
        x: &Tensor,
        layer: &RecurrentLayer<'_>,
        what: &str,
    ) -> Result<Tensor> {
        g.enter(w);
        let (Some(channels), Some(before)) = (x.dim(-1).and_then(Dim::fixed), self.kernel.checked_sub(1))
        else {
            let problem = format!("a kernel of {} does not go over {}", self.kernel, show(x.shape()));
            return Err(g.error("CausalConv", problem));
        };
        let past = layer.state(g, what, &[before, channels])?;
        let weight = g.weight(&w.name("weight"), &[channels, 1, self.kernel])?;
        let bias = self.bias.then(|| g.weight(&w.name("bias"), &[channels])).transpose()?;
        let silu = self.act == Some(Activation::Silu);
        let (y, last) = g.causal_conv(x, &past, &weight, bias.as_ref(), 1, silu)?;
        layer.cache.keep_state(g, layer.index, what, if before == 0 { &past } else { &last })?;
        match self.act {
            Some(act) if !silu => g.activation(act, &y),
            _ => Ok(y),
        }
    }

    /// Queries, keys and values of x `[batch, sequence, hidden]` with a projection each (`q_proj`, …) and a convolution each
    /// (`q_conv1d`, …), `[batch, sequence, width]`. The layer keeps their last inputs as `q_conv`, `k_conv` and `v_conv`.
    ///
    /// # Errors
    /// As [`CausalConv::forward`].
    pub fn separate(
        &self,
        g: &mut Graph,
        w: &Scope,
        x: &Tensor,
        widths: [usize; 3],
        layer: &RecurrentLayer<'_>,
    ) -> Result<[Tensor; 3]> {
        let mut one = |what: &str, width: usize| {
            let h = g.linear_no_bias(&w.scope(&format!("{what}_proj")), x, width)?;
            self.forward(g, &w.scope(&format!("{what}_conv1d")), &h, layer, &format!("{what}_conv"))
        };
        let [q, k, v] = widths;
        Ok([one("q", q)?, one("k", k)?, one("v", v)?])
    }
}
