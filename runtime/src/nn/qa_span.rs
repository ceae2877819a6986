//! Extractive question answering: where an answer starts and ends.

use crate::Result;
use crate::graph::{Graph, Scope, Tensor};

/// Start and end logits (`BertForQuestionAnswering.qa_outputs`): hidden states `[batch, sequence, width]` through one linear
/// layer at `w`, `[batch, sequence]` each.
///
/// # Errors
/// When the hidden states have not three axes, or no fixed width.
pub fn qa_span(g: &mut Graph, w: &Scope, hidden: &Tensor) -> Result<[Tensor; 2]> {
    let span = g.linear(w, hidden, 2)?;
    Ok([g.take(&span, 2, 0)?, g.take(&span, 2, 1)?])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::testing::{expect, refusal};

    #[test]
    fn the_first_column_is_the_start() {
        let weights: [(&str, &[f32]); 2] =
            [("qa_outputs.weight", &[1.0, 0.0, 0.0, 10.0]), ("qa_outputs.bias", &[0.5, -0.5])];
        for (index, want) in [[1.5, 3.5], [19.5, 39.5]].iter().enumerate() {
            let build = |g: &mut Graph| {
                let hidden = g.constant(&[1, 2, 2], vec![1.0, 2.0, 3.0, 4.0])?;
                Ok(qa_span(g, &g.scope("qa_outputs"), &hidden)?[index].clone())
            };
            expect(&weights, build, &[1, 2], want);
        }
    }

    #[test]
    fn every_token_has_logits() {
        let problem = refusal(|g| {
            let pooled = g.constant(&[1, 2], vec![1.0, 2.0])?;
            qa_span(g, &g.scope("qa_outputs"), &pooled)
        });
        insta::assert_snapshot!(problem, @"Gather in qa_outputs: [1, 2] has no axis 2");
    }
}
