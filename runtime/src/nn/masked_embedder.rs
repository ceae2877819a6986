//! Logits of the tokens near a hidden state alone, whose table is ordered by clusters.

use crate::Result;
use crate::graph::{Graph, Reduction, Scope, Tensor};

/// Logits of the tokens whose clusters have the highest scores (`Gemma4AssistantMaskedEmbedder`): all tokens are divided into as many
/// clusters of one length, in the order of an integer table.
#[derive(Clone, Copy, Debug)]
pub struct MaskedEmbedder {
    /// How many tokens there are (`vocab_size`).
    pub vocab_size: usize,
    /// How many clusters they are divided into (`num_centroids`).
    pub centroids: usize,
    /// Of how many clusters the tokens have logits (`centroid_intermediate_top_k`).
    pub top_k: usize,
}

impl MaskedEmbedder {
    /// Logits `[batch, sequence, vocab_size]` of hidden states x `[batch, sequence, hidden_size]`, products with the rows of `table`
    /// `[vocab_size, hidden_size]`; those of all other tokens are one less than the least of them in the batch. The scores of
    /// clusters are those of the linear layer `centroids` at `w`, and the tokens that they hold, one cluster after the other,
    /// `token_ordering` `[vocab_size]`.
    ///
    /// # Errors
    /// When the clusters do not divide the tokens, or are fewer than are asked for.
    pub fn forward(&self, g: &mut Graph, w: &Scope, x: &Tensor, table: &Tensor) -> Result<Tensor> {
        let Self { vocab_size, centroids, top_k } = *self;
        g.enter(w);
        if centroids == 0 || !vocab_size.is_multiple_of(centroids) {
            let problem = format!("num_centroids {centroids} does not divide vocab_size {vocab_size}");
            return Err(g.error("Gather", problem));
        }
        let scores = g.linear_no_bias(&w.scope("centroids"), x, centroids)?;
        let (_, clusters) = g.top_k(&scores, top_k)?;
        let tokens = g.integer_weight(&w.name("token_ordering"), &[vocab_size])?;
        let tokens = g.reshape(&tokens, crate::dims![centroids, vocab_size / centroids])?;
        let tokens = g.gather(&tokens, &clusters, 0)?;
        let tokens = g.flatten(&tokens, 2..4)?;
        let rows = g.gather(table, &tokens, 0)?;
        let x = g.unsqueeze(x, 3)?;
        let logits = g.matmul(&rows, &x)?;
        let logits = g.squeeze(&logits, 3)?;
        let least = g.reduce(Reduction::Min, &logits, &[0, 1, 2], true)?;
        let one = g.scalar(1.0);
        let others = g.sub(&least, &one)?;
        let mut shape = x.shape()[..2].to_vec();
        shape.push(vocab_size.into());
        let others = g.expand(&others, shape)?;
        g.scatter_elements(&others, &tokens, &logits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::testing::{expect, refusal};

    const EMBEDDER: MaskedEmbedder = MaskedEmbedder { vocab_size: 6, centroids: 3, top_k: 2 };

    fn logits(of: MaskedEmbedder) -> impl FnOnce(&mut Graph) -> Result<Tensor> {
        move |g| {
            let x = g.constant(&[1, 2, 2], vec![1.0, 2.0, -1.0, 0.5])?;
            let table =
                g.constant(&[6, 2], vec![1.0, 0.0, 0.0, 1.0, 2.0, 1.0, -1.0, 3.0, 0.5, 0.5, 4.0, -2.0])?;
            of.forward(g, &Scope::root(), &x, &table)
        }
    }

    #[test]
    fn tokens_of_the_highest_clusters_have_logits_and_others_one_less_than_the_least() {
        let order = [5.0, 0.0, 3.0, 1.0, 4.0, 2.0];
        let weights: [(&str, &[f32]); 2] =
            [("centroids.weight", &[1.0, 0.0, 0.0, 1.0, -1.0, -1.0]), ("token_ordering", &order)];
        // Scores of the clusters {5, 0}, {3, 1} and {4, 2} are 1, 2 and -3, then -1, 0.5 and 0.5; products with the rows of the first
        // two are 0, 1, 5 and 2, then with those of the last two 2.5, 0.5, -0.25 and -1.5, the least of all.
        let want = [1.0, 2.0, -2.5, 5.0, -2.5, 0.0, -2.5, 0.5, -1.5, 2.5, -0.25, -2.5];
        expect(&weights, logits(EMBEDDER), &[1, 2, 6], &want);
    }

    #[test]
    fn clusters_must_divide_the_tokens() {
        let text = refusal(logits(MaskedEmbedder { centroids: 4, ..EMBEDDER }));
        assert!(text.contains("num_centroids 4 does not divide vocab_size 6"), "{text}");
        let text = refusal(logits(MaskedEmbedder { top_k: 4, ..EMBEDDER }));
        assert!(text.contains("has no 4 largest"), "{text}");
    }
}
