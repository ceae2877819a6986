//! Rotary embeddings whose frequencies depend on the sequence length: dynamic NTK scaling and LongRoPE
//! (`transformers.modeling_rope_utils`).

use super::{RopeParameters, RopeScaling, Rotary};
use crate::Result;
use crate::graph::{Binary, Dtype, Graph, Reduction, Tensor, Unary};

impl RopeParameters {
    /// Rotary embedding (`LlamaRotaryEmbedding`) of `position_ids` `[batch, sequence]` for heads of `head_size`;
    /// `max_position_embeddings` is the configuration's.
    ///
    /// # Errors
    /// When the ids have not two axes, or these parameters are none for heads of the size.
    pub fn rotary(
        &self,
        g: &mut Graph,
        position_ids: &Tensor,
        head_size: usize,
        max_position_embeddings: usize,
    ) -> Result<Rotary> {
        self.check(head_size).map_err(|problem| g.error("RotaryEmbedding", problem))?;
        let longest = max_position_embeddings;
        let short = self.frequencies(head_size, longest, None);
        let scaling = short.attention_factor;
        match &self.scaling {
            RopeScaling::Dynamic { factor, alpha: None } => {
                let frequencies = self.dynamic_ntk(g, position_ids, head_size, longest, *factor)?;
                Rotary::from_frequencies(g, position_ids, &frequencies, scaling)
            }
            RopeScaling::Longrope { original_max_position_embeddings: original, .. } => {
                let original = original.unwrap_or(longest);
                let long = self.frequencies(head_size, longest, Some(original + 1));
                let (long, long_scaling) = (long.inverse, long.attention_factor);
                let pairs = long.len();
                let (short, long) = (g.constant(&[pairs], short.inverse)?, g.constant(&[pairs], long)?);
                let most = g.scalar(original as f32);
                let length = length(g, position_ids)?;
                let longer = g.binary(Binary::Greater, &length, &most)?;
                let frequencies = g.select(&longer, &long, &short)?;
                if scaling == long_scaling {
                    return Rotary::from_frequencies(g, position_ids, &frequencies, scaling);
                }
                let scalings = [long_scaling, scaling].map(|scaling| g.scalar(scaling as f32));
                let scaling = g.select(&longer, &scalings[0], &scalings[1])?;
                Rotary::from_frequencies(g, position_ids, &frequencies, 1.0)?.scaled(g, &scaling)
            }
            _ => Rotary::new(g, position_ids, &short.inverse, scaling),
        }
    }

    /// Llama 4's attention temperature (`get_llama_4_attn_scale`): the factor of queries at `position_ids`
    /// `[batch, sequence]`, `[batch, sequence, 1]`, `1 + beta · ln(1 + ⌊position / original length⌋)`.
    ///
    /// # Errors
    /// When the ids are not integers.
    pub fn llama_4_attn_scale(
        &self,
        g: &mut Graph,
        position_ids: &Tensor,
        max_position_embeddings: usize,
    ) -> Result<Tensor> {
        let original = match self.scaling {
            RopeScaling::Yarn { original_max_position_embeddings: original, .. } => original,
            _ => None,
        };
        let original = original.unwrap_or(max_position_embeddings);
        let (original, one) = (g.scalar(original as f32), g.scalar(1.0));
        let times = g.cast(position_ids, Dtype::F32);
        let times = g.div(&times, &original)?;
        let times = g.unary(Unary::Floor, &times);
        let times = g.add(&times, &one)?;
        let logarithm = g.unary(Unary::Log, &times);
        let scale = g.scale(&logarithm, self.llama_4_scaling_beta.unwrap_or_default())?;
        let scale = g.add(&scale, &one)?;
        g.unsqueeze(&scale, 2)
    }

    /// Attention scale with YaRN's `mscale_all_dim` (`yarn_get_mscale` of `DeepseekV3Attention`); `scale` otherwise.
    pub fn yarn_scale(&self, scale: f64) -> f64 {
        match self.scaling {
            RopeScaling::Yarn { factor: Some(factor), mscale_all_dim: Some(all), .. } if factor > 1.0 => {
                scale * (0.1 * all * factor.ln() + 1.0).powi(2)
            }
            _ => scale,
        }
    }

    /// Frequencies of dynamic NTK scaling, whose base grows with sequences longer than `longest`.
    fn dynamic_ntk(
        &self,
        g: &mut Graph,
        position_ids: &Tensor,
        head_size: usize,
        longest: usize,
        factor: f64,
    ) -> Result<Tensor> {
        let width = self.width(head_size);
        let length = length(g, position_ids)?;
        let least = g.scalar(longest as f32);
        let length = g.binary(Binary::Max, &length, &least)?;
        let stretch = g.scale(&length, factor / longest as f64)?;
        let rest = g.scalar((factor - 1.0) as f32);
        let stretch = g.sub(&stretch, &rest)?;
        let power = g.scalar((width as f64 / (width as f64 - 2.0)) as f32);
        let stretch = g.binary(Binary::Pow, &stretch, &power)?;
        let base = g.scale(&stretch, self.rope_theta)?;
        let powers: Vec<_> = (0..width / 2).map(|pair| -((2 * pair) as f32 / width as f32)).collect();
        let powers = g.constant(&[width / 2], powers)?;
        g.binary(Binary::Pow, &base, &powers)
    }
}

/// The sequence length, by the last position.
fn length(g: &mut Graph, position_ids: &Tensor) -> Result<Tensor> {
    let last = g.reduce(Reduction::Max, position_ids, &[0, 1], false)?;
    let last = g.cast(&last, Dtype::F32);
    let one = g.scalar(1.0);
    g.add(&last, &one)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value as Json, json};

    use super::*;
    use crate::nn::testing::expect;

    fn read(rope: Json) -> RopeParameters {
        serde_json::from_value(rope).unwrap()
    }

    #[test]
    fn queries_are_scaled_by_the_logarithm_of_their_position() {
        let rope =
            read(json!({"rope_type": "yarn", "rope_theta": 1e4, "original_max_position_embeddings": 4,
            "llama_4_scaling_beta": 0.1}));
        let build = |g: &mut Graph| {
            let positions = g.integers(&[1, 4], vec![0, 3, 4, 12])?;
            rope.llama_4_attn_scale(g, &positions, 64)
        };
        // 1 + 0.1 · ln of 1, 1, 2 and 4.
        expect(&[], build, &[1, 4, 1], &[1.0, 1.0, 1.069_314_7, 1.138_629_4]);
    }

    #[test]
    fn yarn_scales_attention_where_it_stretches() {
        let yarn = |factor: f64| {
            read(json!({"rope_type": "yarn", "rope_theta": 1e4, "factor": factor, "mscale_all_dim": 1.0}))
        };
        assert!((yarn(40.0).yarn_scale(0.5) - 0.936_927).abs() < 1e-6, "{}", yarn(40.0).yarn_scale(0.5));
        assert_eq!(yarn(1.0).yarn_scale(0.5), 0.5);
        assert_eq!(RopeParameters::of(1e4).yarn_scale(0.5), 0.5);
    }

    #[test]
    fn dynamic_ntk_stretches_beyond_the_longest_sequence() {
        // Of length 8 for 4 the base grows by (2 · 8 / 4 - 1)², and the second frequency is its inverse root.
        for (last, second) in [(3, 0.01), (7, 1.0 / 300.0)] {
            let build = |g: &mut Graph| {
                let positions = g.integers(&[1, 2], vec![0, last])?;
                RopeParameters::of(1e4).dynamic_ntk(g, &positions, 4, 4, 2.0)
            };
            expect(&[], build, &[2], &[1.0, second]);
        }
    }

    #[test]
    fn longrope_has_other_factors_for_longer_texts() {
        let rope =
            read(json!({"rope_type": "longrope", "rope_theta": 1e4, "original_max_position_embeddings": 2,
            "short_factor": [1.0, 1.0], "long_factor": [2.0, 2.0]}));
        // Angles of 1 and 0.01 at position 1 of a short text and at 2 of a long one; the attention factor is √2.
        let want = [0.764_102_8, 1.414_142_8, 1.190_019_7, 0.014_141_9];
        for position in [1, 2] {
            let build = |g: &mut Graph| {
                let positions = g.integers(&[1, 1], vec![position])?;
                let rotary = rope.rotary(g, &positions, 4, 4)?;
                let q = g.constant(&[1, 1, 4], vec![1.0, 1.0, 0.0, 0.0])?;
                rotary.apply(g, &q, 1)
            };
            expect(&[], build, &[1, 1, 4], &want);
        }
    }
}
