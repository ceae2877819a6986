//! Lightning indexers: which keys sparse attention reads, by scores of small heads.

use super::{Cache, Rotary, merge_heads, split_heads, split_last};
use crate::Result;

use crate::graph::{Activation, Binary, Dim, Graph, Reduction, Scope, Tensor};

/// The lightning indexer of sparse attention (`DeepseekV32Indexer`; DeepSeek-AI, 2025, arXiv:2512.02556): of each query the keys of the
/// highest scores are read. Heads share one key; their scores are cut off at 0, and summed by weights of the query.
#[derive(Clone, Copy, Debug)]
pub struct Indexer<'a> {
    /// Heads (`index_n_heads`).
    pub heads: usize,
    /// The size of a head (`index_head_dim`).
    pub size: usize,
    /// How many keys a query reads (`index_topk`).
    pub top_k: usize,
    /// The epsilon of the norm of keys.
    pub eps: f64,
    /// How many elements of a head stand before those that rotate.
    pub unrotated: usize,
    /// Rotary position embeddings, paired as the indexer pairs them.
    pub rotary: &'a Rotary,
    /// The cache, which holds the indexer's keys as `index_key`.
    pub cache: &'a Cache,
    /// The layer's index.
    pub layer: usize,
}

impl Indexer<'_> {
    /// The mask `[batch, 1, sequence, past + sequence]`, without the keys that are not read: of hidden states x
    /// `[batch, sequence, hidden]` and the latent queries q `[batch, sequence, q_lora_rank]`, by the weights at `w`. Keys whose
    /// scores are equal to the lowest that is read are read too.
    ///
    /// # Errors
    /// When the shapes do not go together.
    pub fn mask(&self, g: &mut Graph, w: &Scope, [x, q]: [&Tensor; 2], mask: &Tensor) -> Result<Tensor> {
        let (heads, size) = (self.heads, self.size);
        let q = g.linear_no_bias(&w.scope("wq_b"), q, heads * size)?;
        let q = self.rotated_first(g, &q, heads)?;
        let q = self.rotary.apply(g, &q, heads)?;
        let k = g.linear_no_bias(&w.scope("wk"), x, size)?;
        let k = g.layer_norm(&w.scope("k_norm"), &k, self.eps)?;
        let k = self.rotated_first(g, &k, 1)?;
        let k = self.rotary.apply(g, &k, 1)?;
        let k = self.cache.append(g, self.layer, "index_key", &k)?;
        let q = split_heads(g, &q, heads)?;
        let q = g.transpose(&q, &[0, 2, 1, 3])?;
        let k = g.transpose(&k, &[0, 1, 3, 2])?;
        let scores = g.matmul(&q, &k)?;
        let scores = g.activation(Activation::Relu, &scores)?;
        let weights = g.linear_no_bias(&w.scope("weights_proj"), x, heads)?;
        let weights = g.transpose(&weights, &[0, 2, 1])?;
        let weights = g.unsqueeze(&weights, 3)?;
        let scores = g.mul(&scores, &weights)?;
        let scores = g.reduce(Reduction::Sum, &scores, &[1], true)?;
        let scores = g.scale(&scores, ((size * heads) as f64).powf(-0.5))?;
        select_keys(g, &scores, mask, self.top_k)
    }

    /// Heads x `[batch, sequence, heads·size]` with what rotates before the rest, in queries as in keys, so that scores are the same.
    fn rotated_first(&self, g: &mut Graph, x: &Tensor, heads: usize) -> Result<Tensor> {
        if self.unrotated == 0 {
            return Ok(x.clone());
        }
        let x = split_heads(g, x, heads)?;
        let [rest, rotated] = split_last(g, &x, [self.unrotated, self.size.saturating_sub(self.unrotated)])?;
        let x = g.concat(&[&rotated, &rest], 3)?;
        merge_heads(g, &x)
    }
}

/// A mask, which broadcasts to `[batch, heads, sequence, keys]`, without the keys whose scores of this shape are not among the `top_k` highest of the keys that it
/// has; all where it has no more.
///
/// # Errors
/// When the shapes differ.
pub fn select_keys(g: &mut Graph, scores: &Tensor, mask: &Tensor, top_k: usize) -> Result<Tensor> {
    let least = g.scalar(f32::MIN);
    let mask = g.expand(mask, scores.shape().to_vec())?;
    let scores = g.select(&mask, scores, &least)?;
    // There may be fewer keys than are read, which a graph of any length cannot ask.
    let mut shape = scores.shape().to_vec();
    if let Some(keys) = shape.last_mut() {
        *keys = Dim::Fixed(top_k);
    }
    let none = g.full(shape, f32::MIN)?;
    let padded = g.concat(&[&scores, &none], 3)?;
    let (highest, _) = g.top_k(&padded, top_k)?;
    let lowest = g.slice(&highest, 3, top_k.saturating_sub(1)..top_k)?;
    let selected = g.binary(Binary::GreaterOrEqual, &scores, &lowest)?;
    g.binary(Binary::And, &mask, &selected)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Dtype;
    use crate::nn::testing::expect;

    #[test]
    fn the_highest_scores_of_visible_keys_are_read() {
        let of = |top_k: usize| {
            move |g: &mut Graph| {
                let scores = g.constant(&[1, 1, 2, 4], vec![3.0, 1.0, 9.0, 9.0, 1.0, 4.0, 2.0, 3.0])?;
                let seen = g.constant(&[1, 1, 2, 4], vec![1.0, 1.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0])?;
                let half = g.scalar(0.5);
                let mask = g.binary(Binary::Greater, &seen, &half)?;
                let mask = select_keys(g, &scores, &mask, top_k)?;
                Ok(g.cast(&mask, Dtype::F32))
            }
        };
        expect(&[], of(1), &[1, 1, 2, 4], &[1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0]);
        expect(&[], of(2), &[1, 1, 2, 4], &[1.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 1.0]);
        expect(&[], of(7), &[1, 1, 2, 4], &[1.0, 1.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0]);
    }
}
