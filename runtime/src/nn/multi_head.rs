//! Multi-head attention with its projections (Vaswani et al., 2017, arXiv:1706.03762).

use super::Attention;
use crate::Result;
use crate::graph::{Graph, Scope, Tensor};

/// Multi-head attention with linear projections of queries, keys, values and the result (`ViTAttention`, `DetrCrossAttention`).
#[derive(Clone, Copy, Debug)]
pub struct MultiHead<'a> {
    /// The scopes of the projections: queries, keys, values, result.
    pub projections: [&'a str; 4],
    /// Whether queries, keys and values have biases; the result has one.
    pub bias: [bool; 3],
    /// The number of heads.
    pub heads: usize,
    /// The width of queries, keys, values and the result.
    pub width: usize,
    /// The mask, as [`Attention`] takes it.
    pub mask: Option<&'a Tensor>,
}

impl MultiHead<'_> {
    /// Projections at `q_proj`, `k_proj`, `v_proj` and `o_proj`, all with biases; no mask.
    pub fn new(heads: usize, width: usize) -> Self {
        let projections = ["q_proj", "k_proj", "v_proj", "o_proj"];
        Self { projections, bias: [true; 3], heads, width, mask: None }
    }

    /// Self-attention with weights at `w`: x `[batch, positions, …]` f32 to `[batch, positions, width]`.
    ///
    /// # Errors
    /// When the last axis of x has no fixed length, the heads do not divide the width, or the mask does not fit.
    pub fn forward(&self, g: &mut Graph, w: &Scope, x: &Tensor) -> Result<Tensor> {
        self.attend(g, w, [x, x, x])
    }

    /// Attention over separate inputs of queries `[batch, positions, …]`, keys and values `[batch, keys, …]`:
    /// `[batch, positions, width]`.
    ///
    /// # Errors
    /// As [`MultiHead::forward`].
    pub fn attend(&self, g: &mut Graph, w: &Scope, [query, key, value]: [&Tensor; 3]) -> Result<Tensor> {
        let [q, k, v, o] = self.projections.map(|name| w.scope(name));
        let q = g.linear_biased(&q, query, self.width, self.bias[0])?;
        let k = g.linear_biased(&k, key, self.width, self.bias[1])?;
        let v = g.linear_biased(&v, value, self.width, self.bias[2])?;
        g.enter(w);
        let options =
            Attention { heads: self.heads, kv_heads: self.heads, mask: self.mask, ..Attention::default() };
        let h = g.attention(&q, &k, &v, &options)?;
        g.linear(&o, &h, self.width)
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
            bias: [true, false, true],
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
}
