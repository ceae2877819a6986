//! Cross-attention of encoder-decoders: keys and values of the encoder's hidden states, computed once for all tokens.

use super::Cache;
use crate::graph::{Dim, Graph, Tensor};
use crate::{GraphKind, Result};

/// Keys and values of cross-attention, layer by layer.
pub type CrossKv = Vec<(Tensor, Tensor)>;

/// The cross-attention of a decoder's layers to an encoder's hidden states (`EncoderDecoderCache.cross_attention_cache`).
#[derive(Clone, Debug)]
pub struct CrossAttention {
    /// Layers of the decoder.
    pub layers: usize,
    /// Heads of a layer.
    pub heads: usize,
    /// The size of a head.
    pub size: usize,
    /// The number of hidden states.
    pub keys: Dim,
}

impl CrossAttention {
    /// Keys and values of every layer: what `project` makes of the encoder's hidden states `[batch, keys, width]` for a
    /// layer, `[batch, keys, heads·size]` each, which [`GraphKind::Encoder`] leaves in the cache; in the graphs that continue
    /// the cache what lies there, `[batch, heads, keys, size]`.
    ///
    /// # Errors
    /// When the graph continues no cache and there are no hidden states, or they cannot be projected.
    pub fn keys_and_values(
        &self,
        g: &mut Graph,
        cache: &Cache,
        states: Option<&Tensor>,
        mut project: impl FnMut(&mut Graph, usize, &Tensor) -> Result<(Tensor, Tensor)>,
    ) -> Result<CrossKv> {
        let kind = cache.kind();
        let layer = |index| {
            if kind.is_cached() {
                return cache.cross_kv(g, index, self.heads, self.size, &self.keys);
            }
            let Some(states) = states else {
                return Err(g.error("CrossAttention", "the encoder's hidden states are missing"));
            };
            let (k, v) = project(g, index, states)?;
            if kind == GraphKind::Encoder {
                cache.cache_cross_kv(g, index, &k, &v, self.heads)?;
            }
            Ok((k, v))
        };
        (0..self.layers).map(layer).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::show;
    use crate::nn::testing::{expect, refusal};

    const CROSS: CrossAttention = CrossAttention { layers: 2, heads: 2, size: 1, keys: Dim::Fixed(2) };

    fn project(g: &mut Graph, index: usize, states: &Tensor) -> Result<(Tensor, Tensor)> {
        let w = g.scope("layers").index(index);
        Ok((g.linear_no_bias(&w.scope("k"), states, 2)?, g.linear_no_bias(&w.scope("v"), states, 2)?))
    }

    /// Of two hidden states, where they are not cached.
    fn of(g: &mut Graph, kind: GraphKind) -> Result<CrossKv> {
        let states = g.constant(&[1, 2, 2], vec![1.0, 2.0, 3.0, 4.0])?;
        let cache = Cache::new(g, kind).within("decoder");
        CROSS.keys_and_values(g, &cache, (!kind.is_cached()).then_some(&states), project)
    }

    #[test]
    fn the_encoder_leaves_them_by_head() {
        const WEIGHTS: [(&str, &[f32]); 4] = [
            ("layers.0.k.weight", &[1.0, 0.0, 0.0, 1.0]),
            ("layers.0.v.weight", &[0.0, 1.0, 1.0, 0.0]),
            ("layers.1.k.weight", &[2.0, 0.0, 0.0, 2.0]),
            ("layers.1.v.weight", &[1.0, 0.0, 0.0, 1.0]),
        ];
        for (name, want) in [
            ("present.0.encoder.key", [1.0, 3.0, 2.0, 4.0]),
            ("present.0.encoder.value", [2.0, 4.0, 1.0, 3.0]),
            ("present.1.encoder.key", [2.0, 6.0, 4.0, 8.0]),
            ("present.1.encoder.value", [1.0, 3.0, 2.0, 4.0]),
        ] {
            let build = |g: &mut Graph| {
                of(g, GraphKind::Encoder)?;
                Ok(g.outputs().find(|(known, _)| *known == name).unwrap().1.clone())
            };
            expect(&WEIGHTS, build, &[1, 2, 2, 1], &want);
        }
    }

    #[test]
    fn later_tokens_read_them_and_need_no_projections() {
        let mut g = Graph::new();
        let kv = of(&mut g, GraphKind::Decode).unwrap();
        assert_eq!(show(kv[1].0.shape()), "[batch, 2, 2, 1]");
        let names: Vec<_> = g.inputs().iter().map(|input| input.name.as_str()).collect();
        assert_eq!(names[2..], ["past_key_values.1.encoder.key", "past_key_values.1.encoder.value"]);
        assert!(g.outputs().next().is_none() && g.weights().is_empty());
    }

    #[test]
    fn a_forward_pass_caches_nothing() {
        let mut g = Graph::new();
        let kv = of(&mut g, GraphKind::Forward).unwrap();
        assert_eq!(show(kv[0].1.shape()), "[1, 2, 2]");
        assert!(g.outputs().next().is_none());
    }

    #[test]
    fn hidden_states_are_needed_where_nothing_is_cached() {
        let problem = refusal(|g| {
            let cache = Cache::new(g, GraphKind::Forward);
            CROSS.keys_and_values(g, &cache, None, project)
        });
        insta::assert_snapshot!(problem, @"CrossAttention in the root: the encoder's hidden states are missing");
    }
}
