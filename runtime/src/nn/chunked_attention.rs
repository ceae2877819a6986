//! Attention within chunks of tokens (`create_chunked_causal_mask`; Llama 4).

use crate::graph::{Binary, Dim, Dtype, Graph, Reduction, Tensor, Unary};
use crate::{Result, dims};

use super::attention::causal_mask;

/// Causal mask within chunks of so many tokens, counted from the first that is no padding, over cached and new keys:
/// `attention_mask` `[batch, past + sequence]` to bool `[batch, 1, sequence, past + sequence]` (`chunked_overlay`).
///
/// # Errors
/// When the mask has not two axes.
pub fn chunked_causal_mask(
    g: &mut Graph,
    attention_mask: &Tensor,
    past: &Dim,
    chunk: usize,
) -> Result<Tensor> {
    let mask = causal_mask(g, attention_mask, past, None)?;
    let [batch, keys] = attention_mask.shape() else {
        return Err(g.error("Equal", "an attention mask is [batch, sequence]"));
    };
    let queries = keys.clone() - past.clone();
    // Padding on the left has no token before it.
    let seen = g.cumsum(attention_mask, 1)?;
    let zero = g.integer(0);
    let leading = g.binary(Binary::Equal, &seen, &zero)?;
    let leading = g.cast(&leading, Dtype::F32);
    let leading = g.reduce(Reduction::Sum, &leading, &[1], true)?;
    let places = g.arange(keys);
    let places = g.cast(&places, Dtype::F32);
    let places = g.sub(&places, &leading)?;
    let size = g.scalar(chunk as f32);
    let chunks = g.div(&places, &size)?;
    let chunks = g.unary(Unary::Floor, &chunks);
    let own = match past {
        Dim::Fixed(0) => chunks.clone(),
        past => g.slice_dims(&chunks, 1, past.clone(), keys.clone())?,
    };
    let own = g.reshape(&own, dims![batch, 1, queries, 1])?;
    let others = g.reshape(&chunks, dims![batch, 1, 1, keys])?;
    let same = g.binary(Binary::Equal, &own, &others)?;
    g.binary(Binary::And, &mask, &same)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{expect, refusal};
    use super::*;

    #[test]
    fn tokens_see_earlier_ones_of_their_chunk() {
        let build = |g: &mut Graph| {
            let attention_mask = g.integers(&[2, 4], vec![1, 1, 1, 1, 0, 1, 1, 1])?;
            let mask = chunked_causal_mask(g, &attention_mask, &Dim::Fixed(0), 2)?;
            Ok(g.cast(&mask, Dtype::F32))
        };
        let whole = [1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 1.0];
        // The first is padding: the second and the third are a chunk, the last one begins another.
        let padded = [0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0];
        expect(&[], build, &[2, 1, 4, 4], &[whole, padded].concat());
    }

    #[test]
    fn new_tokens_see_cached_ones_of_their_chunk() {
        let build = |g: &mut Graph| {
            let attention_mask = g.integers(&[1, 5], vec![1; 5])?;
            let mask = chunked_causal_mask(g, &attention_mask, &Dim::Fixed(3), 2)?;
            Ok(g.cast(&mask, Dtype::F32))
        };
        expect(&[], build, &[1, 1, 2, 5], &[0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]);
    }

    #[test]
    fn a_mask_without_a_batch_is_refused() {
        let error = refusal(|g| {
            let attention_mask = g.integers(&[4], vec![1; 4])?;
            chunked_causal_mask(g, &attention_mask, &Dim::Fixed(0), 2)
        });
        assert!(error.contains('['), "{error}");
    }
}
