//! Attention: its options and its masks.

use crate::Result;
use crate::graph::{Binary, Dtype, Graph, Tensor};

/// The options of [`Graph::attention`].
#[derive(Clone, Copy, Debug)]
pub struct Attention<'a> {
    /// Query heads.
    pub heads: usize,
    /// Key and value heads; fewer than `heads` where heads share them.
    pub kv_heads: usize,
    /// Multiplies the scores; `1/√size` of a head where not given.
    pub scale: Option<f64>,
    /// Which positions are seen (bool) or what is added to the scores (f32); broadcasts to
    /// `[batch, heads, q, k]`.
    pub mask: Option<&'a Tensor>,
    /// Whether a position sees none after it. With a mask that leaves some position nothing at all to see, engines
    /// differ: [`causal_padding_mask`] says both in one.
    pub causal: bool,
    /// `c · tanh(score / c)` before the mask, where not zero.
    pub softcap: f64,
}

impl Default for Attention<'_> {
    fn default() -> Self {
        Self { heads: 1, kv_heads: 1, scale: None, mask: None, causal: false, softcap: 0.0 }
    }
}

/// `attention_mask` `[batch, sequence]`, 1 for tokens and 0 for padding, as a mask of attention scores
/// `[batch, 1, 1, sequence]`: every position sees all tokens and no padding.
///
/// # Errors
/// When the mask has not two axes.
pub fn padding_mask(g: &mut Graph, attention_mask: &Tensor) -> Result<Tensor> {
    let [batch, sequence] = attention_mask.shape() else {
        return Err(g.misfit("padding_mask", "attention_mask must be [batch, sequence]"));
    };
    let shape = crate::dims![batch, 1, 1, sequence];
    let seen = g.cast(attention_mask, Dtype::Bool);
    g.reshape(&seen, shape)
}

/// As [`padding_mask`], but every position sees only the tokens up to its own: `[batch, 1, sequence, sequence]`.
///
/// # Errors
/// When the mask has not two axes.
pub fn causal_padding_mask(g: &mut Graph, attention_mask: &Tensor) -> Result<Tensor> {
    let seen = padding_mask(g, attention_mask)?;
    let sequence = seen.shape()[3].clone();
    let positions = g.positions(&sequence);
    let queries = g.reshape(&positions, crate::dims![&sequence, 1])?;
    let keys = g.reshape(&positions, crate::dims![1, &sequence])?;
    let earlier = g.binary(Binary::LessOrEqual, &keys, &queries)?;
    g.binary(Binary::And, &seen, &earlier)
}
