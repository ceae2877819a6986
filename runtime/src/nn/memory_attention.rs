//! Attention of a frame to memory of earlier frames and to pointers at objects (SAM 2, arXiv:2408.00714).

use super::{Activation, Attention, Mlp, MultiHead, Rotary};
use crate::graph::{Dim, Graph, Scope, Tensor};
use crate::{Result, dims};

/// The memory of an object that a frame attends to.
#[derive(Clone, Copy, Debug)]
pub struct ObjectMemory<'a> {
    /// Features of frames and the object's masks there, then tokens of object pointers, `[batch, tokens, width]`.
    pub tokens: &'a Tensor,
    /// The position embeddings of these.
    pub positions: &'a Tensor,
    /// How many tokens are of frames; these alone have rotary position embeddings.
    pub frames: &'a Dim,
    /// Which tokens count, broadcast to `[batch, heads, places, tokens]`: bool.
    pub mask: &'a Tensor,
}

/// Memory attention (`Sam2VideoMemoryAttention`): layers of self-attention, attention to memory and an MLP, each behind a norm.
#[derive(Clone, Copy, Debug)]
pub struct MemoryAttention<'a> {
    /// The number of layers.
    pub layers: usize,
    /// The number of heads.
    pub heads: usize,
    /// The width of all heads together.
    pub width: usize,
    /// The linear layers of the MLPs below the scope of each layer.
    pub mlp: [&'a str; 2],
    /// The intermediate size of the MLPs.
    pub mlp_width: usize,
    /// Their activation function.
    pub act: Activation,
    /// Rotary position embeddings of the places of a frame.
    pub places: &'a Rotary,
    /// The same for all frames of memory.
    pub remembered: &'a Rotary,
}

impl MemoryAttention<'_> {
    /// What becomes of x, the places of a frame: `[batch, places, hidden]` f32 to the same shape.
    ///
    /// # Errors
    /// When the shapes do not fit.
    pub fn forward(&self, g: &mut Graph, w: &Scope, x: &Tensor, memory: &ObjectMemory<'_>) -> Result<Tensor> {
        let hidden = x.dim(-1).and_then(Dim::fixed).unwrap_or_default();
        let keys = g.add(memory.tokens, memory.positions)?;
        let mut x = x.clone();
        for index in 0..self.layers {
            let w = w.scope("layers").index(index);
            let h = g.layer_norm(&w.scope("layer_norm1"), &x, EPSILON)?;
            let attention = MultiHead {
                output_width: hidden,
                rotary: Some(self.places),
                ..MultiHead::new(self.heads, self.width)
            };
            let h = attention.forward(g, &w.scope("self_attn"), &h)?;
            x = g.add(&x, &h)?;
            let h = g.layer_norm(&w.scope("layer_norm2"), &x, EPSILON)?;
            let h =
                self.attend(g, &w.scope("cross_attn_image"), [&h, &keys, memory.tokens], memory, hidden)?;
            x = g.add(&x, &h)?;
            let h = g.layer_norm(&w.scope("layer_norm3"), &x, EPSILON)?;
            let [up, down] = self.mlp;
            let mlp = Mlp { up, down, width: self.mlp_width, act: self.act, bias: true };
            let h = mlp.forward(g, &w, &h)?;
            x = g.add(&x, &h)?;
        }
        g.layer_norm(&w.scope("layer_norm"), &x, EPSILON)
    }

    /// Attention to memory (`Sam2VideoRoPEAttention` with `num_k_exclude_rope`).
    fn attend(
        &self,
        g: &mut Graph,
        w: &Scope,
        inputs: [&Tensor; 3],
        memory: &ObjectMemory<'_>,
        hidden: usize,
    ) -> Result<Tensor> {
        let [q, k, v] = MultiHead::new(self.heads, self.width).project(g, w, inputs)?;
        let q = self.places.apply(g, &q, self.heads)?;
        let all = k.shape()[1].clone();
        let frames = g.slice_dims(&k, 1, Dim::Fixed(0), memory.frames.clone())?;
        let frames = g.reshape(&frames, dims![&k.shape()[0], memory.frames, self.width])?;
        let frames = self.remembered.apply(g, &frames, self.heads)?;
        let pointers = g.slice_dims(&k, 1, memory.frames.clone(), all)?;
        let k = g.concat(&[&frames, &pointers], 1)?;
        let k = g.reshape(&k, v.shape().to_vec())?;
        let mask = Some(memory.mask);
        let options = Attention { heads: self.heads, kv_heads: self.heads, mask, ..Attention::default() };
        let h = g.attention(&q, &k, &v, &options)?;
        g.linear(&w.scope("o_proj"), &h, hidden)
    }
}

const EPSILON: f64 = 1e-5;

#[cfg(test)]
mod tests {
    use super::super::testing::evaluate;
    use super::*;

    /// A frame of two places over memory of one frame and one pointer, which counts or not; projections are the identity.
    fn placed(pointer: [f32; 2], counts: bool) -> Option<Vec<f32>> {
        let mut weights: Vec<(String, Vec<f32>)> = vec![];
        for attention in ["self_attn", "cross_attn_image"] {
            for projection in ["q_proj", "k_proj", "v_proj", "o_proj"] {
                let name = format!("layers.0.{attention}.{projection}");
                weights.push((format!("{name}.weight"), vec![1.0, 0.0, 0.0, 1.0]));
                weights.push((format!("{name}.bias"), vec![0.0; 2]));
            }
        }
        for norm in ["layers.0.layer_norm1", "layers.0.layer_norm2", "layers.0.layer_norm3", "layer_norm"] {
            weights.push((format!("{norm}.weight"), vec![1.0, 2.0]));
            weights.push((format!("{norm}.bias"), vec![0.5, 0.0]));
        }
        for linear in ["linear1", "linear2"] {
            weights.push((format!("layers.0.{linear}.weight"), vec![0.0; 4]));
            weights.push((format!("layers.0.{linear}.bias"), vec![0.0; 2]));
        }
        let weights: Vec<_> =
            weights.iter().map(|(name, values)| (name.as_str(), values.as_slice())).collect();
        let build = |g: &mut Graph| {
            let x = g.constant(&[1, 2, 2], vec![1.0, -2.0, 0.5, 3.0])?;
            let tokens = g.constant(&[1, 3, 2], [vec![3.0, 1.0, -1.0, 4.0], pointer.to_vec()].concat())?;
            let positions = g.constant(&[1, 3, 2], vec![0.1, 0.2, 0.3, 0.4, 20.0, -20.0])?;
            let seen = g.constant(&[1, 1, 1, 3], vec![1.0, 1.0, f32::from(counts)])?;
            let zero = g.scalar(0.0);
            let mask = g.binary(crate::graph::Binary::Greater, &seen, &zero)?;
            let ids = g.integers(&[1, 2], vec![0, 1])?;
            let rotary = Rotary::new(g, &ids, &[1.0], 1.0)?.interleaved();
            let (places, frames) = (&rotary, &Dim::Fixed(2));
            let attention = MemoryAttention {
                layers: 1,
                heads: 1,
                width: 2,
                mlp: ["linear1", "linear2"],
                mlp_width: 2,
                act: Activation::Relu,
                places,
                remembered: places,
            };
            let memory = ObjectMemory { tokens: &tokens, positions: &positions, frames, mask: &mask };
            attention.forward(g, &Scope::root(), &x, &memory)
        };
        evaluate(&weights, build).map(|(_, values)| values)
    }

    #[test]
    fn tokens_of_memory_that_do_not_count_change_nothing() {
        let (Some(first), Some(other)) = (placed([0.5, 3.0], false), placed([-7.0, 1.0], false)) else {
            return;
        };
        assert_eq!(first, other);
        // Its position draws the first place to it, whose sign it turns.
        let Some(counted) = placed([-9.0, 9.0], true) else { return };
        assert!(first.iter().zip(&counted).any(|(one, other)| (one - other).abs() > 1.0), "{counted:?}");
    }
}
