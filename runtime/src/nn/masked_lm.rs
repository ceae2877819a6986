//! The decoder of masked language modelling heads, tied to the token embeddings or not.

use crate::Result;
use crate::graph::{Graph, Scope, Tensor};

/// Decoder of a masked language modelling head (`BertLMPredictionHead.decoder`): x `[…, width]` to logits `[…, vocab_size]`.
///
/// Tied to the token embeddings at `tied`, its weight is theirs and its bias the parameter `bias`; otherwise it is the linear
/// layer at `w`, and `bias` has another name there, which checkpoints hold unused.
///
/// # Errors
/// When x has no fixed width, or the token embeddings are used with another.
pub fn masked_lm_decoder(
    g: &mut Graph,
    w: &Scope,
    tied: Option<&Scope>,
    bias: &str,
    x: &Tensor,
    vocab_size: usize,
) -> Result<Tensor> {
    if let Some(tied) = tied {
        return g.linear_with(&tied.name("weight"), Some(bias), x, vocab_size);
    }
    g.weight(bias, &[vocab_size])?;
    g.linear(w, x, vocab_size)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::testing::{expect, refusal};

    fn build(g: &mut Graph, tied: bool) -> Result<Tensor> {
        let x = g.constant(&[1, 1, 2], vec![1.0, 10.0])?;
        let (w, table) = (g.scope("cls.decoder"), g.scope("word_embeddings"));
        masked_lm_decoder(g, &w, tied.then_some(&table), "cls.bias", &x, 3)
    }

    /// Rows of three tokens.
    const ROWS: [f32; 6] = [1.0, 0.0, 0.0, 1.0, 1.0, 1.0];

    #[test]
    fn the_token_embeddings_are_its_weight() {
        let weights: [(&str, &[f32]); 2] =
            [("word_embeddings.weight", &ROWS), ("cls.bias", &[0.5, 0.0, -0.5])];
        expect(&weights, |g| build(g, true), &[1, 1, 3], &[1.5, 10.0, 10.5]);
    }

    #[test]
    fn a_layer_of_its_own_has_its_own_bias() {
        let weights: [(&str, &[f32]); 3] = [
            ("cls.decoder.weight", &ROWS),
            ("cls.decoder.bias", &[0.0, 0.25, 0.0]),
            ("cls.bias", &[9.0, 9.0, 9.0]),
        ];
        expect(&weights, |g| build(g, false), &[1, 1, 3], &[1.0, 10.25, 11.0]);
    }

    #[test]
    fn the_token_embeddings_have_its_width() {
        let problem = refusal(|g| {
            let ids = g.integers(&[1, 1], vec![0])?;
            g.embedding(&g.scope("word_embeddings"), &ids, 3, 4)?;
            build(g, true)
        });
        insta::assert_snapshot!(problem, @"Weight in word_embeddings: `word_embeddings.weight` is used with two shapes: [3, 4] and [3, 2]");
    }
}
