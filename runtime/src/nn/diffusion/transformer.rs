//! Transformers over feature maps (`Transformer2DModel`, `BasicTransformerBlock`).

use crate::graph::{Activation, Conv, Graph, Scope, Tensor};
use crate::nn::{MultiHead, flatten_feature_map, split_last, unflatten_feature_map};
use crate::{Result, graph::Dim, graph::show};

/// The epsilon of the group normalisation before the blocks.
const INPUT_NORM_EPS: f64 = 1e-6;
/// The epsilon of the blocks' layer normalisation.
const BLOCK_NORM_EPS: f64 = 1e-5;

/// Transformer blocks of self-attention, cross-attention and a feed-forward layer over the positions of a feature map
/// (`Transformer2DModel` of continuous inputs).
#[derive(Clone, Copy, Debug)]
pub struct SpatialTransformer<'a> {
    /// The number of blocks.
    pub layers: usize,
    /// The heads of both attentions.
    pub heads: usize,
    /// The groups of the normalisation before the first block.
    pub groups: usize,
    /// Whether the projections around the blocks are linear layers and not 1 × 1 convolutions.
    pub use_linear_projection: bool,
    /// Whether the first attention is cross-attention too.
    pub only_cross_attention: bool,
    /// What cross-attention sees: `[batch, sequence, cross_attention_dim]`.
    pub encoder_hidden_states: &'a Tensor,
}

impl SpatialTransformer<'_> {
    /// The transformer with weights at `w`: x `[batch, channels, rows, columns]` f32 to the same shape.
    ///
    /// # Errors
    /// When x has not four axes or no fixed number of channels, or the heads do not divide them.
    pub fn forward(&self, g: &mut Graph, w: &Scope, x: &Tensor) -> Result<Tensor> {
        let Some(width) = x.dim(1).and_then(Dim::fixed).filter(|_| x.rank() == 4) else {
            let problem = format!("{} is not [batch, channels, rows, columns]", show(x.shape()));
            return Err(g.error("Transformer2DModel", problem));
        };
        let grid = [x.shape()[2].clone(), x.shape()[3].clone()];
        let h = g.group_norm(&w.scope("norm"), x, self.groups, INPUT_NORM_EPS)?;
        let (proj_in, proj_out) = (w.scope("proj_in"), w.scope("proj_out"));
        let pointwise = Conv::new(width, &[1, 1]);
        let mut h = if self.use_linear_projection {
            let h = flatten_feature_map(g, &h)?;
            g.linear(&proj_in, &h, width)?
        } else {
            let h = g.conv(&proj_in, &h, &pointwise)?;
            flatten_feature_map(g, &h)?
        };
        for index in 0..self.layers {
            h = self.block(g, &w.scope("transformer_blocks").index(index), &h, width)?;
        }
        let h = if self.use_linear_projection {
            let h = g.linear(&proj_out, &h, width)?;
            unflatten_feature_map(g, &h, &grid)?
        } else {
            let h = unflatten_feature_map(g, &h, &grid)?;
            g.conv(&proj_out, &h, &pointwise)?
        };
        g.add(&h, x)
    }

    /// Pre-norm self-attention, cross-attention and GEGLU feed-forward layer (`BasicTransformerBlock`).
    fn block(&self, g: &mut Graph, w: &Scope, x: &Tensor, width: usize) -> Result<Tensor> {
        let attention = MultiHead {
            projections: ["to_q", "to_k", "to_v", "to_out.0"],
            bias: [false, false, false, true],
            ..MultiHead::new(self.heads, width)
        };
        let h = g.layer_norm(&w.scope("norm1"), x, BLOCK_NORM_EPS)?;
        let seen = if self.only_cross_attention { self.encoder_hidden_states } else { &h };
        let h = attention.attend(g, &w.scope("attn1"), [&h, seen, seen])?;
        let x = g.add(&h, x)?;
        let h = g.layer_norm(&w.scope("norm2"), &x, BLOCK_NORM_EPS)?;
        let text = self.encoder_hidden_states;
        let h = attention.attend(g, &w.scope("attn2"), [&h, text, text])?;
        let x = g.add(&h, &x)?;
        let h = g.layer_norm(&w.scope("norm3"), &x, BLOCK_NORM_EPS)?;
        let h = glu_feed_forward(g, &w.scope("ff"), &h, 4 * width, Activation::Gelu)?;
        g.add(&h, &x)
    }
}

/// Feed-forward layer of a gated linear unit, whose gate is the second half of `net.0.proj` (`FeedForward` with `GEGLU` or
/// `SwiGLU`): x `[…, width]` to the same shape.
///
/// # Errors
/// When the last axis of x has no fixed length.
pub fn glu_feed_forward(
    g: &mut Graph,
    w: &Scope,
    x: &Tensor,
    inner: usize,
    act: Activation,
) -> Result<Tensor> {
    let width = x.dim(-1).and_then(Dim::fixed).unwrap_or_default();
    let h = g.linear(&w.scope("net.0.proj"), x, 2 * inner)?;
    let [value, gate] = split_last(g, &h, [inner; 2])?;
    let gate = g.activation(act, &gate)?;
    let h = g.mul(&value, &gate)?;
    g.linear(&w.scope("net.2"), &h, width)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::testing::{evaluate, expect, refusal};

    #[test]
    fn the_second_half_is_the_gate() {
        let build = |g: &mut Graph| {
            let x = g.constant(&[1, 1, 1], vec![2.0])?;
            glu_feed_forward(g, &Scope::root().scope("ff"), &x, 1, Activation::Gelu)
        };
        let weights: [(&str, &[f32]); 4] = [
            ("ff.net.0.proj.weight", &[3.0, 0.5]),
            ("ff.net.0.proj.bias", &[1.0, 0.0]),
            ("ff.net.2.weight", &[10.0]),
            ("ff.net.2.bias", &[5.0]),
        ];
        // The value is 7, the gate GELU(1) = 0.8413447.
        expect(&weights, build, &[1, 1, 1], &[63.894_13]);
    }

    /// One position of two channels: attention gives the values of what it sees, the feed-forward layer nothing.
    fn transformed(linear: bool, only_cross_attention: bool) -> Vec<f32> {
        let build = move |g: &mut Graph| {
            let x = g.constant(&[1, 2, 1, 1], vec![1.0, 3.0])?;
            let text = g.constant(&[1, 1, 1], vec![100.0])?;
            let transformer = SpatialTransformer {
                layers: 1,
                heads: 1,
                groups: 1,
                use_linear_projection: linear,
                only_cross_attention,
                encoder_hidden_states: &text,
            };
            transformer.forward(g, &Scope::root().scope("t"), &x)
        };
        const ONE: [f32; 4] = [1.0, 0.0, 0.0, 1.0];
        let mut weights: Vec<(String, Vec<f32>)> = vec![];
        let mut put = |name: &str, values: &[f32]| weights.push((format!("t.{name}"), values.to_vec()));
        for (name, weight) in [("norm", [1.0, 1.0]), ("transformer_blocks.0.norm1", [0.0, 0.0])] {
            put(&format!("{name}.weight"), &weight);
            put(&format!("{name}.bias"), &[0.0, 2.0]);
        }
        for name in ["transformer_blocks.0.norm2", "transformer_blocks.0.norm3"] {
            put(&format!("{name}.weight"), &[1.0, 1.0]);
            put(&format!("{name}.bias"), &[0.0, 0.0]);
        }
        for name in ["proj_in", "proj_out"] {
            put(&format!("{name}.weight"), &ONE);
            put(&format!("{name}.bias"), &[0.0, 0.0]);
        }
        for (name, keys) in [("attn1", if only_cross_attention { 1 } else { 2 }), ("attn2", 1)] {
            put(&format!("transformer_blocks.0.{name}.to_q.weight"), &ONE);
            for projection in ["to_k", "to_v"] {
                let weight = if keys == 2 { &ONE[..] } else { &[1.0, 0.0][..] };
                put(&format!("transformer_blocks.0.{name}.{projection}.weight"), weight);
            }
            put(&format!("transformer_blocks.0.{name}.to_out.0.weight"), &ONE);
            put(&format!("transformer_blocks.0.{name}.to_out.0.bias"), &[0.0, 10.0]);
        }
        put("transformer_blocks.0.ff.net.0.proj.weight", &[0.0; 32]);
        put("transformer_blocks.0.ff.net.0.proj.bias", &[0.0; 16]);
        put("transformer_blocks.0.ff.net.2.weight", &[0.0; 16]);
        put("transformer_blocks.0.ff.net.2.bias", &[0.0, 1000.0]);
        let weights: Vec<_> = weights.iter().map(|(name, values)| (name.as_str(), &values[..])).collect();
        evaluate(&weights, build).map(|(_, y)| y).unwrap_or_default()
    }

    #[test]
    fn a_block_is_two_attentions_and_a_feed_forward_layer() {
        // The norm with its bias gives (-1, 3); of one key, attention gives its value.
        let near = |got: Vec<f32>, want: [f32; 2]| {
            assert!(got.is_empty() || (got[0] - want[0]).abs() + (got[1] - want[1]).abs() < 1e-2, "{got:?}");
        };
        // (0, 2) of itself, (100, 0) of the text, a bias of 10 twice, 1000 of the feed-forward layer, and x.
        for linear in [false, true] {
            near(transformed(linear, false), [-1.0 + 100.0 + 1.0, 3.0 + 2.0 + 20.0 + 1000.0 + 3.0]);
        }
        near(transformed(false, true), [-1.0 + 200.0 + 1.0, 3.0 + 20.0 + 1000.0 + 3.0]);
    }

    #[test]
    fn a_feature_map_is_needed() {
        let problem = refusal(|g| {
            let x = g.constant(&[1, 2, 2], vec![0.0; 4])?;
            let transformer = SpatialTransformer {
                layers: 1,
                heads: 1,
                groups: 1,
                use_linear_projection: false,
                only_cross_attention: false,
                encoder_hidden_states: &x,
            };
            transformer.forward(g, &Scope::root(), &x)
        });
        insta::assert_snapshot!(problem, @"Transformer2DModel in the root: [1, 2, 2] is not [batch, channels, rows, columns]");
    }
}
