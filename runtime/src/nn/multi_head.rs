//! Multi-head attention with its projections (Vaswani et al., 2017, arXiv:1706.03762).

use super::{Attention, Rotary, split_last};
use crate::Result;
use crate::graph::{Graph, Scope, Tensor};

/// Multi-head attention with linear projections of queries, keys, values and the result (`BertSelfAttention`, `ViTAttention`,
/// `DetrCrossAttention`), where asked for with grouped heads (`EuroBertAttention`) and rotary position embeddings
/// (`EsmSelfAttention`).
#[derive(Clone, Copy, Debug)]
pub struct MultiHead<'a> {
    /// The scopes of the projections: queries, keys, values, result. Where the first three are one, it is fused: a linear layer
    /// that gives queries, keys and values side by side (`Wqkv`).
    pub projections: [&'a str; 4],
    /// Whether queries, keys, values and the result have biases.
    pub bias: [bool; 4],
    /// The number of heads.
    pub heads: usize,
    /// The number of key and value heads.
    pub kv_heads: usize,
    /// The width of queries: the heads, each of its size.
    pub width: usize,
    /// The width of the result.
    pub output_width: usize,
    /// The rotary position embeddings of queries and keys.
    pub rotary: Option<&'a Rotary>,
    /// The mask, as [`Attention`] takes it.
    pub mask: Option<&'a Tensor>,
}

impl MultiHead<'_> {
    /// As many key as query heads, projections at `q_proj`, `k_proj`, `v_proj` and `o_proj`, all with biases; no rotary
    /// position embeddings, no mask.
    pub fn new(heads: usize, width: usize) -> Self {
        Self {
            projections: ["q_proj", "k_proj", "v_proj", "o_proj"],
            bias: [true; 4],
            heads,
            kv_heads: heads,
            width,
            output_width: width,
            rotary: None,
            mask: None,
        }
    }

    /// Self-attention with weights at `w`: x `[batch, positions, …]` f32 to `[batch, positions, output_width]`.
    ///
    /// # Errors
    /// When the last axis of x has no fixed length, the heads do not divide the width, or the mask does not fit.
    pub fn forward(&self, g: &mut Graph, w: &Scope, x: &Tensor) -> Result<Tensor> {
        self.attend(g, w, [x, x, x])
    }

    /// Attention over separate inputs of queries `[batch, positions, …]`, keys and values `[batch, keys, …]`:
    /// `[batch, positions, output_width]`.
    ///
    /// # Errors
    /// As [`MultiHead::forward`].
    pub fn attend(&self, g: &mut Graph, w: &Scope, inputs: [&Tensor; 3]) -> Result<Tensor> {
        let projected = self.project(g, w, inputs)?;
        self.attend_projected(g, w, projected)
    }

    /// Queries `[batch, positions, width]`, keys and values `[batch, keys, kv_heads·size]` of these inputs, before rotary
    /// position embeddings: the first half of [`MultiHead::attend`]. A fused projection reads the input of queries alone.
    ///
    /// # Errors
    /// When the last axis of an input has no fixed length.
    pub fn project(
        &self,
        g: &mut Graph,
        w: &Scope,
        [query, key, value]: [&Tensor; 3],
    ) -> Result<[Tensor; 3]> {
        let [q, k, v, _] = self.projections;
        let kv_width = self.width * self.kv_heads / self.heads.max(1);
        if q == k && k == v {
            let joint = g.linear_biased(&w.scope(q), query, self.width + 2 * kv_width, self.bias[0])?;
            return split_last(g, &joint, [self.width, kv_width, kv_width]);
        }
        Ok([
            g.linear_biased(&w.scope(q), query, self.width, self.bias[0])?,
            g.linear_biased(&w.scope(k), key, kv_width, self.bias[1])?,
            g.linear_biased(&w.scope(v), value, kv_width, self.bias[2])?,
        ])
    }

    /// Attention of queries over keys and values as [`MultiHead::project`] gives them, and the projection of the result:
    /// `[batch, positions, output_width]`.
    ///
    /// # Errors
    /// When the heads do not divide the widths, or the mask or the rotary position embeddings do not fit.
    pub fn attend_projected(&self, g: &mut Graph, w: &Scope, [q, k, v]: [Tensor; 3]) -> Result<Tensor> {
        g.enter(w);
        let (heads, kv_heads) = (self.heads, self.kv_heads);
        let (q, k) = match self.rotary {
            Some(rotary) => rotary.apply_qk(g, [&q, &k], [heads, kv_heads])?,
            None => (q, k),
        };
        let options = Attention { heads, kv_heads, mask: self.mask, ..Attention::default() };
        let h = g.attention(&q, &k, &v, &options)?;
        g.linear_biased(&w.scope(self.projections[3]), &h, self.output_width, self.bias[3])
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{expect, refusal};
    use super::*;
    use crate::graph::Dtype;

    /// Queries (ln 2, 0) and (0, ln 3) of these inputs, values one more than their inputs, and a result with its halves swapped.
    fn weights<'a>(q: &'a [f32; 4], q_bias: &'a [f32; 2]) -> [(&'a str, &'a [f32]); 7] {
        [
            ("w.query.weight", q),
            ("w.query.bias", q_bias),
            ("w.key.weight", &[1.0, 0.0, 0.0, 1.0]),
            ("w.value.weight", &[1.0, 0.0, 0.0, 1.0]),
            ("w.value.bias", &[1.0, 1.0]),
            ("w.out.weight", &[0.0, 1.0, 1.0, 0.0]),
            ("w.out.bias", &[10.0, 20.0]),
        ]
    }

    fn attend(g: &mut Graph, mask: Option<&Tensor>) -> Result<Tensor> {
        let query = g.constant(&[1, 2, 2], vec![0.0, -1.0, -1.0, 0.0])?;
        let key = g.constant(&[1, 2, 2], vec![1.0, 0.0, 0.0, 1.0])?;
        let value = g.constant(&[1, 2, 2], vec![2.0, 3.0, 5.0, 7.0])?;
        let attention = MultiHead {
            projections: ["query", "key", "value", "out"],
            bias: [true, false, true, true],
            mask,
            ..MultiHead::new(2, 2)
        };
        attention.attend(g, &Scope::root().scope("w"), [&query, &key, &value])
    }

    #[test]
    fn each_head_mixes_values_by_its_own_scores() {
        let (ln2, ln3) = (2.0_f32.ln(), 3.0_f32.ln());
        let (q, q_bias) = ([ln2, 0.0, 0.0, ln3], [ln2, ln3]);
        let weights = weights(&q, &q_bias);
        // The first head mixes 3 and 6 by 2/3 and 1/2, the second 4 and 8 by 1/2 and 1/4.
        expect(&weights, |g| attend(g, None), &[1, 2, 2], &[16.0, 24.0, 17.0, 24.5]);
        let masked = |g: &mut Graph| {
            let mask = g.integers(&[1, 1, 1, 2], vec![1, 0])?;
            let mask = g.cast(&mask, Dtype::Bool);
            attend(g, Some(&mask))
        };
        expect(&weights, masked, &[1, 2, 2], &[14.0, 23.0, 14.0, 23.0]);
    }

    #[test]
    fn self_attention_has_queries_keys_and_values_of_one_input() {
        let weights: [(&str, &[f32]); 8] = [
            ("q_proj.weight", &[2.0_f32.ln(), 0.0]),
            ("q_proj.bias", &[0.0]),
            ("k_proj.weight", &[0.0, 1.0]),
            ("k_proj.bias", &[0.0]),
            ("v_proj.weight", &[3.0, 6.0]),
            ("v_proj.bias", &[1.0]),
            ("o_proj.weight", &[1.0]),
            ("o_proj.bias", &[0.5]),
        ];
        let build = |g: &mut Graph| {
            let x = g.constant(&[1, 2, 2], vec![1.0, 0.0, 0.0, 1.0])?;
            MultiHead::new(1, 1).forward(g, &Scope::root(), &x)
        };
        // Values 4 and 7; the first position mixes them by 1/3 and 2/3, the second by halves.
        expect(&weights, build, &[1, 2, 1], &[6.5, 6.0]);
        let heads = |g: &mut Graph| {
            let x = g.constant(&[1, 2, 2], vec![0.0; 4])?;
            MultiHead::new(2, 3).forward(g, &Scope::root(), &x)
        };
        insta::assert_snapshot!(refusal(heads), @"Attention in the root: 2 heads and 2 key/value heads do not divide q [1, 2, 3], k [1, 2, 3], v [1, 2, 3]");
    }

    #[test]
    fn a_fused_projection_gives_queries_keys_and_values_side_by_side() {
        // Queries (x, 0), keys (y), values (y): two query heads share a key/value head.
        let weights: [(&str, &[f32]); 3] = [
            ("attn.Wqkv.weight", &[2.0_f32.ln(), 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 3.0]),
            ("attn.Wo.weight", &[1.0, 0.0, 0.0, 1.0, 1.0, 1.0]),
            ("attn.Wo.bias", &[0.0, 0.0, 0.5]),
        ];
        let build = |g: &mut Graph| {
            let x = g.constant(&[1, 2, 2], vec![1.0, 0.0, 1.0, 1.0])?;
            let attention = MultiHead {
                projections: ["Wqkv", "Wqkv", "Wqkv", "Wo"],
                bias: [false, false, false, true],
                kv_heads: 1,
                output_width: 3,
                ..MultiHead::new(2, 2)
            };
            attention.forward(g, &Scope::root().scope("attn"), &x)
        };
        // The first head mixes values 0 and 3 by 1/3 and 2/3, the second, whose queries are 0, by halves.
        expect(&weights, build, &[1, 2, 3], &[2.0, 1.5, 4.0, 2.0, 1.5, 4.0]);
    }

    #[test]
    fn queries_and_keys_turn_with_their_positions() {
        let identity: &[f32] = &[1.0, 0.0, 0.0, 1.0];
        let weights = [
            ("q_proj.weight", identity),
            ("k_proj.weight", identity),
            ("v_proj.weight", identity),
            ("o_proj.weight", identity),
        ];
        let build = |g: &mut Graph| {
            let x = g.constant(&[1, 2, 2], vec![2.0, 0.0, 2.0, 0.0])?;
            let positions = g.integers(&[1, 2], vec![0, 1])?;
            // A quarter turn a position: the score of another position is 0, that of the same one 4/√2.
            let rotary = Rotary::new(g, &positions, &[std::f32::consts::FRAC_PI_2], 1.0)?;
            let value = g.constant(&[1, 2, 2], vec![1.0, 0.0, 0.0, 1.0])?;
            let attention = MultiHead { bias: [false; 4], rotary: Some(&rotary), ..MultiHead::new(1, 2) };
            attention.attend(g, &Scope::root(), [&x, &x, &value])
        };
        let same = 1.0 / (1.0 + (-4.0 / 2.0_f32.sqrt()).exp());
        expect(&weights, build, &[1, 2, 2], &[same, 1.0 - same, 1.0 - same, same]);
    }
}
