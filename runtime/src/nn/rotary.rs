//! Rotary position embeddings (RoPE; Su et al., 2021, arXiv:2104.09864).

use crate::Result;
use crate::graph::{Dtype, Graph, RotaryOp, Tensor, Unary};

/// Cosines and sines of a sequence's positions, computed once for all layers (`LlamaRotaryEmbedding`).
#[derive(Clone, Debug)]
pub struct Rotary {
    cos: Tensor,
    sin: Tensor,
    width: usize,
    interleaved: bool,
}

impl Rotary {
    /// From `position_ids` `[batch, sequence]` and one inverse frequency for each pair; cosines and sines are multiplied
    /// by `scaling`. Angles are computed in single precision on every backend.
    ///
    /// # Errors
    /// When the ids have not two axes.
    pub fn new(g: &mut Graph, position_ids: &Tensor, frequencies: &[f32], scaling: f64) -> Result<Self> {
        let [cos, sin] = [Unary::Cos, Unary::Sin].map(|of| g.angles(position_ids, of, frequencies, scaling));
        Ok(Self { cos: cos?, sin: sin?, width: 2 * frequencies.len(), interleaved: false })
    }

    /// As [`Rotary::new`], from inverse frequencies `[pairs]` that the graph computes.
    ///
    /// # Errors
    /// When the shapes do not go together.
    pub fn from_frequencies(
        g: &mut Graph,
        position_ids: &Tensor,
        frequencies: &Tensor,
        scaling: f64,
    ) -> Result<Self> {
        let positions = g.cast(position_ids, Dtype::F32);
        let positions = g.unsqueeze(&positions, 2)?;
        let angles = g.mul(&positions, frequencies)?;
        let cos = g.unary(Unary::Cos, &angles);
        let sin = g.unary(Unary::Sin, &angles);
        let pairs = frequencies.dim(-1).and_then(crate::Dim::fixed).unwrap_or_default();
        let (cos, sin) = (g.scale(&cos, scaling)?, g.scale(&sin, scaling)?);
        Ok(Self { cos, sin, width: 2 * pairs, interleaved: false })
    }

    /// From cosines and sines `[batch, sequence, pairs]`, as tables hold them.
    pub fn from_cos_sin(cos: Tensor, sin: Tensor) -> Self {
        let pairs = cos.dim(-1).and_then(crate::Dim::fixed).unwrap_or_default();
        Self { cos, sin, width: 2 * pairs, interleaved: false }
    }

    /// Cosines and sines times a number that the graph computes.
    ///
    /// # Errors
    /// When it is not a number.
    pub(super) fn scaled(self, g: &mut Graph, scaling: &Tensor) -> Result<Self> {
        let (cos, sin) = (g.mul(&self.cos, scaling)?, g.mul(&self.sin, scaling)?);
        Ok(Self { cos, sin, ..self })
    }

    /// Rotates backwards: negates the sines.
    #[must_use]
    pub fn reversed(mut self, g: &mut Graph) -> Self {
        self.sin = g.unary(Unary::Neg, &self.sin);
        self
    }

    /// Pairs adjacent elements (GPT-J, `rotate_every_two`) instead of halves (`rotate_half`).
    #[must_use]
    pub fn interleaved(mut self) -> Self {
        self.interleaved = true;
        self
    }

    /// Rotates queries or keys `[batch, sequence, heads·size]` (`apply_rotary_pos_emb`), the first `2 · frequencies` elements of each
    /// head.
    ///
    /// # Errors
    /// When heads are narrower than that.
    pub fn apply(&self, g: &mut Graph, x: &Tensor, heads: usize) -> Result<Tensor> {
        let op = RotaryOp { heads, width: self.width, interleaved: self.interleaved };
        g.rotary(x, &self.cos, &self.sin, op)
    }
}
