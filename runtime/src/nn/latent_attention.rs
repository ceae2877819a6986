//! Multi-head latent attention: queries, keys and values that are projected from latents of low rank.

use super::{Rotary, merge_heads, split_heads, split_last};
use crate::graph::{Graph, Scope, Tensor};
use crate::{Result, dims};

/// The epsilon of latents' norms, which no configuration changes.
const EPS: f64 = 1e-6;

/// The projections of multi-head latent attention (`DeepseekV3Attention`; DeepSeek-V2, 2024, arXiv:2405.04434): heads have a part
/// without positions and a rotary one, which is before the other here, in queries as in keys, so that scores are the same.
#[derive(Clone, Copy, Debug)]
pub struct LatentAttention<'a> {
    /// The number of heads.
    pub heads: usize,
    /// The rank of latent keys and values (`kv_lora_rank`).
    pub kv_lora_rank: usize,
    /// The elements of a query or key without positions (`qk_nope_head_dim`).
    pub qk_nope_head_dim: usize,
    /// Those that rotate (`qk_rope_head_dim`), which keys of all heads share.
    pub qk_rope_head_dim: usize,
    /// The elements of a value (`v_head_dim`).
    pub v_head_dim: usize,
    /// Whether projections to latents have biases (`attention_bias`).
    pub bias: bool,
    /// Rotary position embeddings.
    pub rotary: &'a Rotary,
}

impl LatentAttention<'_> {
    /// The width of all queries, or of all keys.
    pub fn width(&self) -> usize {
        self.heads * (self.qk_nope_head_dim + self.qk_rope_head_dim)
    }

    /// Latent queries of hidden states x (`q_a_proj`, `q_a_layernorm`): `[batch, sequence, rank]`.
    ///
    /// # Errors
    /// When x has no width.
    pub fn latent_queries(&self, g: &mut Graph, w: &Scope, x: &Tensor, rank: usize) -> Result<Tensor> {
        let h = g.linear_biased(&w.scope("q_a_proj"), x, rank, self.bias)?;
        g.rms_norm(&w.scope("q_a_layernorm"), &h, EPS)
    }

    /// Queries `[batch, sequence, heads·size]`, rotated, with what rotates before the rest.
    ///
    /// # Errors
    /// When they have another width.
    pub fn rotate_queries(&self, g: &mut Graph, q: &Tensor) -> Result<Tensor> {
        let q = split_heads(g, q, self.heads)?;
        let [rest, rotated] = split_last(g, &q, [self.qk_nope_head_dim, self.qk_rope_head_dim])?;
        let q = g.concat(&[&rotated, &rest], 3)?;
        let q = merge_heads(g, &q)?;
        self.rotary.apply_q(g, &q, self.heads)
    }

    /// Keys, with what rotates before the rest, and values of hidden states x (`kv_a_proj_with_mqa`, `kv_a_layernorm`, `kv_b_proj`):
    /// `[batch, sequence, heads·size]` each.
    ///
    /// # Errors
    /// When x has not the axes `[batch, sequence, hidden]`.
    pub fn keys_and_values(&self, g: &mut Graph, w: &Scope, x: &Tensor) -> Result<[Tensor; 2]> {
        let (heads, rank, rope) = (self.heads, self.kv_lora_rank, self.qk_rope_head_dim);
        let h = g.linear_biased(&w.scope("kv_a_proj_with_mqa"), x, rank + rope, self.bias)?;
        let [h, rotated] = split_last(g, &h, [rank, rope])?;
        let rotated = self.rotary.apply(g, &rotated, 1)?;
        let rotated = g.unsqueeze(&rotated, 2)?;
        let h = g.rms_norm(&w.scope("kv_a_layernorm"), &h, EPS)?;
        let sizes = [self.qk_nope_head_dim, self.v_head_dim];
        let h = g.linear_no_bias(&w.scope("kv_b_proj"), &h, heads * (sizes[0] + sizes[1]))?;
        let h = split_heads(g, &h, heads)?;
        let [rest, v] = split_last(g, &h, sizes)?;
        let [batch, sequence] = [rest.shape()[0].clone(), rest.shape()[1].clone()];
        let rotated = g.expand(&rotated, dims![batch, sequence, heads, rope])?;
        let k = g.concat(&[&rotated, &rest], 3)?;
        Ok([merge_heads(g, &k)?, merge_heads(g, &v)?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::testing::{expect, refusal};

    /// Two heads of one element without positions and two that rotate by a quarter turn at position 1; values of one.
    fn attention(rotary: &Rotary) -> LatentAttention<'_> {
        LatentAttention {
            heads: 2,
            kv_lora_rank: 1,
            qk_nope_head_dim: 1,
            qk_rope_head_dim: 2,
            v_head_dim: 1,
            bias: false,
            rotary,
        }
    }

    fn rotary(g: &mut Graph) -> Result<Rotary> {
        let positions = g.integers(&[1, 2], vec![0, 1])?;
        Rotary::new(g, &positions, &[std::f32::consts::FRAC_PI_2], 1.0)
    }

    #[test]
    fn the_rotary_part_of_queries_comes_first() {
        let build = |g: &mut Graph| {
            let rotary = rotary(g)?;
            let q = (1..=12).map(|x| x as f32).collect();
            let q = g.constant(&[1, 2, 6], q)?;
            attention(&rotary).rotate_queries(g, &q)
        };
        let want = [2.0, 3.0, 1.0, 5.0, 6.0, 4.0, -9.0, 8.0, 7.0, -12.0, 11.0, 10.0];
        expect(&[], build, &[1, 2, 6], &want);
        let error = refusal(|g| {
            let rotary = rotary(g)?;
            let q = g.constant(&[1, 2, 4], vec![0.0; 8])?;
            attention(&rotary).rotate_queries(g, &q)
        });
        assert!(error.contains("[1, 2]"), "{error}");
    }

    #[test]
    fn keys_share_what_rotates_and_values_stand_beside_them() {
        // Rows of the latent, which its norm makes 1 or -1, and of what rotates; of each head a key's element and a value.
        let weights: [(&str, &[f32]); 3] = [
            ("w.kv_a_proj_with_mqa.weight", &[1.0, 2.0, 3.0]),
            ("w.kv_a_layernorm.weight", &[10.0]),
            ("w.kv_b_proj.weight", &[1.0, 2.0, 3.0, 4.0]),
        ];
        let build = |part: usize| {
            move |g: &mut Graph| {
                let rotary = rotary(g)?;
                let x = g.constant(&[1, 2, 1], vec![5.0, -7.0])?;
                let w = g.scope("w");
                let both = attention(&rotary).keys_and_values(g, &w, &x)?;
                Ok(both[part].clone())
            }
        };
        let keys = [10.0, 15.0, 10.0, 10.0, 15.0, 30.0, 21.0, -14.0, -10.0, 21.0, -14.0, -30.0];
        expect(&weights, build(0), &[1, 2, 6], &keys);
        expect(&weights, build(1), &[1, 2, 2], &[20.0, 40.0, -20.0, -40.0]);
    }

    #[test]
    fn latent_queries_are_normalised() {
        let weights: [(&str, &[f32]); 2] =
            [("w.q_a_proj.weight", &[3.0, -3.0]), ("w.q_a_layernorm.weight", &[1.0, 2.0])];
        let build = |g: &mut Graph| {
            let rotary = rotary(g)?;
            let x = g.constant(&[1, 1, 1], vec![4.0])?;
            let w = g.scope("w");
            attention(&rotary).latent_queries(g, &w, &x, 2)
        };
        expect(&weights, build, &[1, 1, 2], &[1.0, -2.0]);
    }
}
