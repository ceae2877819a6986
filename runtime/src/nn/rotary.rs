//! Rotary position embeddings (RoPE; Su et al., 2021, arXiv:2104.09864).

use super::{merge_heads, split_heads};
use crate::Result;
use crate::graph::{Dtype, Graph, RotaryOp, Tensor, Unary};

/// Cosines and sines of a sequence's positions, computed once for all layers (`LlamaRotaryEmbedding`).
#[derive(Clone, Debug)]
pub struct Rotary {
    cos: Tensor,
    sin: Tensor,
    width: usize,
    interleaved: bool,
    query_scale: Option<Tensor>,
    /// Cosines and sines of the second halves of heads, where these turn by others than the first ones.
    second: Option<(Tensor, Tensor)>,
}

impl Rotary {
    /// From `position_ids` `[batch, sequence]` and one inverse frequency for each pair; cosines and sines are multiplied
    /// by `scaling`. Angles are computed in single precision on every backend.
    ///
    /// # Errors
    /// When the ids have not two axes.
    pub fn new(g: &mut Graph, position_ids: &Tensor, frequencies: &[f32], scaling: f64) -> Result<Self> {
        let [cos, sin] = [Unary::Cos, Unary::Sin].map(|of| g.angles(position_ids, of, frequencies, scaling));
        Ok(Self {
            cos: cos?,
            sin: sin?,
            width: 2 * frequencies.len(),
            interleaved: false,
            query_scale: None,
            second: None,
        })
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
        Ok(Self { cos, sin, width: 2 * pairs, interleaved: false, query_scale: None, second: None })
    }

    /// Positions along several axes (`recomposition_frequencies` of `Qwen2VLRotaryEmbedding`): from `position_ids`
    /// `[axes, batch, sequence]` and of each pair its inverse frequency and the axis that it rotates by.
    ///
    /// # Errors
    /// When the ids have not three axes, or there are other numbers of frequencies than of axes.
    pub fn by_axes(
        g: &mut Graph,
        position_ids: &Tensor,
        frequencies: &[f32],
        axes: &[usize],
        scaling: f64,
    ) -> Result<Self> {
        let ([count, batch, sequence], pairs) = (position_ids.shape(), frequencies.len()) else {
            return Err(g.error("RotaryEmbedding", "positions along axes are [axes, batch, sequence]"));
        };
        let count = count.fixed().unwrap_or_default();
        if axes.len() != pairs || axes.iter().any(|axis| *axis >= count) {
            let problem = format!("{pairs} pairs cannot rotate by the axes {axes:?} of {count}");
            return Err(g.error("RotaryEmbedding", problem));
        }
        let shape = crate::dims![batch, sequence, count * pairs];
        let columns = axes.iter().enumerate().map(|(pair, axis)| (axis * pairs + pair) as i64).collect();
        let columns = g.integers(&[pairs], columns)?;
        let mut of = |unary: Unary| {
            let all = g.angles(position_ids, unary, frequencies, scaling)?;
            let all = g.transpose(&all, &[1, 2, 0, 3])?;
            let all = g.reshape(&all, shape.clone())?;
            g.gather(&all, &columns, 2)
        };
        let (cos, sin) = (of(Unary::Cos)?, of(Unary::Sin)?);
        Ok(Self::from_cos_sin(cos, sin))
    }

    /// As [`Rotary::by_axes`], but that the second halves of heads turn by other axes than the first ones (`recomposition_frequencies`
    /// of `HunYuanVLRotaryEmbedding`): of each element its axis.
    ///
    /// # Errors
    /// As [`Rotary::by_axes`].
    pub fn by_axes_of_elements(
        g: &mut Graph,
        position_ids: &Tensor,
        frequencies: &[f32],
        axes: &[usize],
        scaling: f64,
    ) -> Result<Self> {
        let (first, second) = axes.split_at(axes.len() / 2);
        let second = Self::by_axes(g, position_ids, frequencies, second, scaling)?;
        let first = Self::by_axes(g, position_ids, frequencies, first, scaling)?;
        Ok(Self { second: Some((second.cos, second.sin)), ..first })
    }

    /// From cosines and sines `[batch, sequence, pairs]`, as tables hold them.
    pub fn from_cos_sin(cos: Tensor, sin: Tensor) -> Self {
        let pairs = cos.dim(-1).and_then(crate::Dim::fixed).unwrap_or_default();
        Self { cos, sin, width: 2 * pairs, interleaved: false, query_scale: None, second: None }
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

    /// Pairs halves again (`rotate_half`), whatever other layers pair.
    #[must_use]
    pub fn halves(mut self) -> Self {
        self.interleaved = false;
        self
    }

    /// Scales queries by their position after the rotation: `scale` `[batch, sequence, 1]` (`get_llama_4_attn_scale`).
    #[must_use]
    pub fn scale_queries(mut self, scale: Tensor) -> Self {
        self.query_scale = Some(scale);
        self
    }

    /// Rotates queries `[batch, sequence, heads·size]` and keys `[batch, sequence, kv_heads·size]`, and scales queries where
    /// [`Rotary::scale_queries`] says so.
    ///
    /// # Errors
    /// As [`Rotary::apply`].
    pub fn apply_qk(
        &self,
        g: &mut Graph,
        [q, k]: [&Tensor; 2],
        [heads, kv_heads]: [usize; 2],
    ) -> Result<(Tensor, Tensor)> {
        Ok((self.apply_q(g, q, heads)?, self.apply(g, k, kv_heads)?))
    }

    /// Rotates queries `[batch, sequence, heads·size]` as [`Rotary::apply`] does, and scales them where [`Rotary::scale_queries`]
    /// says so.
    ///
    /// # Errors
    /// As [`Rotary::apply`].
    pub fn apply_q(&self, g: &mut Graph, q: &Tensor, heads: usize) -> Result<Tensor> {
        let q = self.apply(g, q, heads)?;
        match &self.query_scale {
            Some(scale) => g.mul(&q, scale),
            None => Ok(q),
        }
    }

    /// Rotates queries or keys `[batch, sequence, heads·size]` (`apply_rotary_pos_emb`), the first `2 · frequencies` elements of each
    /// head; all of them where the halves of heads turn by different axes.
    ///
    /// # Errors
    /// When heads are narrower than that.
    pub fn apply(&self, g: &mut Graph, x: &Tensor, heads: usize) -> Result<Tensor> {
        let op = RotaryOp { heads, width: self.width, interleaved: self.interleaved };
        let first = g.rotary(x, &self.cos, &self.sin, op)?;
        let Some((cos, sin)) = &self.second else { return Ok(first) };
        let second = g.rotary(x, cos, sin, op)?;
        let [first, second] = [split_heads(g, &first, heads)?, split_heads(g, &second, heads)?];
        let first = g.slice(&first, 3, 0..self.width / 2)?;
        let second = g.slice(&second, 3, self.width / 2..self.width)?;
        let x = g.concat(&[&first, &second], 3)?;
        merge_heads(g, &x)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::testing::{expect, refusal};

    /// A quarter turn at position 1, over two heads of two elements for queries and one for keys.
    fn rotated(g: &mut Graph, of: fn(&mut Graph, Rotary) -> Rotary, keys: bool) -> Result<Tensor> {
        let positions = g.integers(&[1, 2], vec![0, 1])?;
        let rotary = Rotary::new(g, &positions, &[std::f32::consts::FRAC_PI_2], 1.0)?;
        let rotary = of(g, rotary);
        let q = g.constant(&[1, 2, 4], vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0])?;
        let k = g.constant(&[1, 2, 2], vec![1.0, 2.0, 5.0, 6.0])?;
        let (q, k) = rotary.apply_qk(g, [&q, &k], [2, 1])?;
        Ok(if keys { k } else { q })
    }

    #[test]
    fn queries_and_keys_are_rotated_head_by_head() {
        let queries = [1.0, 2.0, 3.0, 4.0, -6.0, 5.0, -8.0, 7.0];
        expect(&[], |g| rotated(g, |_, rotary| rotary, false), &[1, 2, 4], &queries);
        expect(&[], |g| rotated(g, |_, rotary| rotary, true), &[1, 2, 2], &[1.0, 2.0, -6.0, 5.0]);
        let backwards = [1.0, 2.0, 6.0, -5.0];
        expect(&[], |g| rotated(g, |g, rotary| rotary.reversed(g), true), &[1, 2, 2], &backwards);
    }

    #[test]
    fn queries_alone_are_scaled_by_position() {
        let scaled = |g: &mut Graph, rotary: Rotary| {
            let scale = g.constant(&[1, 2, 1], vec![1.0, 10.0]).unwrap();
            rotary.scale_queries(scale)
        };
        let queries = [1.0, 2.0, 3.0, 4.0, -60.0, 50.0, -80.0, 70.0];
        expect(&[], |g| rotated(g, scaled, false), &[1, 2, 4], &queries);
        expect(&[], |g| rotated(g, scaled, true), &[1, 2, 2], &[1.0, 2.0, -6.0, 5.0]);
    }

    #[test]
    fn pairs_rotate_by_their_axes() {
        let build = |g: &mut Graph| {
            // One token at row 1 and column 0, another at row 0 and column 1.
            let positions = g.integers(&[2, 1, 2], vec![1, 0, 0, 1])?;
            let quarter = std::f32::consts::FRAC_PI_2;
            let rotary = Rotary::by_axes(g, &positions, &[quarter, quarter], &[0, 1], 1.0)?;
            let x = g.constant(&[1, 2, 4], vec![1.0, 2.0, 3.0, 4.0, 1.0, 2.0, 3.0, 4.0])?;
            rotary.apply(g, &x, 1)
        };
        expect(&[], build, &[1, 2, 4], &[-3.0, 2.0, 1.0, 4.0, 1.0, -4.0, 3.0, 2.0]);
        let error = refusal(|g| {
            let positions = g.integers(&[2, 1, 1], vec![0, 0])?;
            Rotary::by_axes(g, &positions, &[1.0], &[2], 1.0)?;
            g.constant(&[1], vec![0.0])
        });
        assert!(error.contains("1 pairs cannot rotate by the axes [2] of 2"), "{error}");
    }

    #[test]
    fn neighbours_are_pairs_where_it_is_interleaved() {
        let build = |interleaved: bool| {
            move |g: &mut Graph| {
                let positions = g.integers(&[1, 1], vec![1])?;
                let rotary = Rotary::new(g, &positions, &[std::f32::consts::FRAC_PI_2, 0.0], 2.0)?;
                let rotary = if interleaved { rotary.interleaved() } else { rotary };
                let q = g.constant(&[1, 1, 4], vec![1.0, 2.0, 3.0, 4.0])?;
                rotary.apply(g, &q, 1)
            }
        };
        expect(&[], build(false), &[1, 1, 4], &[-6.0, 4.0, 2.0, 8.0]);
        expect(&[], build(true), &[1, 1, 4], &[-4.0, 2.0, 6.0, 8.0]);
    }

    #[test]
    fn heads_narrower_than_the_rotation_are_refused() {
        let problem = refusal(|g| {
            let positions = g.integers(&[1, 1], vec![1])?;
            let rotary = Rotary::new(g, &positions, &[1.0, 0.5], 1.0)?;
            let q = g.constant(&[1, 1, 4], vec![0.0; 4])?;
            rotary.apply_qk(g, [&q, &q], [2, 1])
        });
        insta::assert_snapshot!(problem, @"RotaryEmbedding in the root: 2 heads rotated over 4 do not fit x [1, 1, 4], cos [1, 1, 2], sin [1, 1, 2]");
    }
}
