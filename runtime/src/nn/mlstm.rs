//! mLSTM: xLSTM's matrix memory, which is linear attention with exponential input gates and a norm by its sum of keys.

use super::{RecurrentLayer, split_heads};
use crate::Result;
use crate::dims;
use crate::graph::{Binary, Dim, Graph, LinearAttention, Reduction, Tensor, Unary};

/// The matrix memory of mLSTM (`mlstm_recurrent_step_native`; Beck et al., 2024, arXiv:2405.04517).
///
/// It is [`Graph::linear_attention`] of keys times the exponentials of input gates, which a soft cap keeps finite, with one value more
/// that is 1: its sum is what the others are divided by, but for no less than 1. The reference divides both by the exponential of
/// the largest gate so far, which matters to `eps` alone.
#[derive(Clone, Copy, Debug)]
pub struct Mlstm {
    /// Heads (`num_heads`).
    pub heads: usize,
    /// The size of a head of queries and keys (`qk_head_dim`).
    pub key: usize,
    /// The size of a head of values (`v_head_dim`).
    pub value: usize,
    /// What is added to the divisor (`eps`).
    pub eps: f64,
}

impl Mlstm {
    /// Queries and keys `[batch, sequence, heads·key]`, values `[batch, sequence, heads·value]`, input and forget gates
    /// `[batch, sequence, heads]` to `[batch, sequence, heads·value]`. The layer's states are `recurrent` and `largest`.
    ///
    /// # Errors
    /// When the shapes do not go together.
    pub fn forward(
        &self,
        g: &mut Graph,
        [q, k, v]: [&Tensor; 3],
        [input, forget]: [&Tensor; 2],
        layer: &RecurrentLayer<'_>,
    ) -> Result<Tensor> {
        let (heads, key, value) = (self.heads, self.key, self.value);
        let (batch, sequence) = (&q.shape()[0].clone(), &q.shape()[1].clone());
        // The logarithm of a sigmoid.
        let decay = g.unary(Unary::Neg, forget);
        let decay = g.unary(Unary::Softplus, &decay);
        let decay = g.unary(Unary::Neg, &decay);
        let largest = self.largest(g, input, &decay, layer)?;
        let opened = g.unary(Unary::Exp, input);
        let opened = g.unsqueeze(&opened, 3)?;
        let k = split_heads(g, k, heads)?;
        let k = g.mul(&k, &opened)?;
        let k = g.reshape(&k, dims![batch, sequence, heads * key])?;
        let v = split_heads(g, v, heads)?;
        let one = g.full(dims![batch, sequence, heads, 1], 1.0)?;
        let v = g.concat(&[&v, &one], 3)?;
        let v = g.reshape(&v, dims![batch, sequence, heads * (value + 1)])?;
        let state = layer.state(g, "recurrent", &[heads, key, value + 1])?;
        let memory = LinearAttention {
            q,
            k: &k,
            v: &v,
            state: &state,
            decay: Some(&decay),
            beta: None,
            heads,
            query_heads: heads,
            scale: (key as f64).powf(-0.5),
        };
        let h = layer.attend(g, "recurrent", &memory)?;
        let h = split_heads(g, &h, heads)?;
        let above = g.slice(&h, 3, 0..value)?;
        let below = g.slice(&h, 3, value..value + 1)?;
        let below = g.unary(Unary::Abs, &below);
        let least = g.scalar(1.0);
        let below = g.binary(Binary::Max, &below, &least)?;
        let largest = g.unary(Unary::Exp, &largest);
        let largest = g.scale(&largest, self.eps)?;
        let largest = g.unsqueeze(&largest, 3)?;
        let below = g.add(&below, &largest)?;
        let h = g.div(&above, &below)?;
        g.reshape(&h, dims![batch, sequence, heads * value])
    }

    /// The largest input gate so far, less what was forgotten since (`m_state`): `[batch, sequence, heads]`, 0 at first.
    fn largest(
        &self,
        g: &mut Graph,
        input: &Tensor,
        decay: &Tensor,
        layer: &RecurrentLayer<'_>,
    ) -> Result<Tensor> {
        let (batch, sequence) = (&input.shape()[0].clone(), &input.shape()[1].clone());
        // With running sums F of decays, it is F + max(state, the largest gate less its own F).
        let sums = g.cumsum(decay, 1)?;
        let own = g.sub(input, &sums)?;
        let own = g.transpose(&own, &[0, 2, 1])?;
        let own = g.unsqueeze(&own, 2)?;
        let own = g.expand(&own, dims![batch, self.heads, sequence, sequence])?;
        let all = g.arange(sequence);
        let query = g.reshape(&all, dims![sequence, 1])?;
        let earlier = g.binary(Binary::LessOrEqual, &all, &query)?;
        let least = g.scalar(f32::MIN);
        let own = g.select(&earlier, &own, &least)?;
        let most = g.reduce(Reduction::Max, &own, &[3], false)?;
        let most = g.transpose(&most, &[0, 2, 1])?;
        let past = layer.state(g, "largest", &[1, self.heads])?;
        let most = g.binary(Binary::Max, &most, &past)?;
        let largest = g.add(&sums, &most)?;
        let last = g.slice_dims(&largest, 1, sequence.clone() - Dim::Fixed(1), sequence.clone())?;
        let last = g.reshape(&last, past.shape().to_vec())?;
        layer.cache.keep_state(g, layer.index, "largest", &last)?;
        Ok(largest)
    }
}
