//! The weighted sum of all hidden states, as classifiers of audio take it.

use crate::Result;
use crate::graph::{Graph, Tensor};

/// Weighted layer sum (`use_weighted_layer_sum`): hidden states of one shape, the input of the first layer and the output of
/// each, by the softmax of the parameter `layer_weights` `[layers]`.
///
/// # Errors
/// When there are no hidden states, or they differ in shape.
pub fn weighted_layer_sum(g: &mut Graph, states: &[Tensor]) -> Result<Tensor> {
    let weights = g.root().name("layer_weights");
    let weights = g.weight(&weights, &[states.len()])?;
    let weights = g.softmax(&weights)?;
    let mut sum: Option<Tensor> = None;
    for (index, x) in states.iter().enumerate() {
        let weight = g.take(&weights, 0, index as i64)?;
        let x = g.mul(x, &weight)?;
        sum = Some(match sum {
            Some(sum) => g.add(&sum, &x)?,
            None => x,
        });
    }
    sum.ok_or_else(|| g.error("weighted_layer_sum", "there are no hidden states"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::testing::{expect, refusal};

    #[test]
    fn layers_count_by_the_softmax_of_their_weights() {
        let build = |g: &mut Graph| {
            let first = g.constant(&[1, 1, 2], vec![1.0, 2.0])?;
            let second = g.constant(&[1, 1, 2], vec![10.0, 20.0])?;
            weighted_layer_sum(g, &[first, second])
        };
        // A quarter and three quarters.
        expect(&[("layer_weights", &[0.0, 3_f32.ln()])], build, &[1, 1, 2], &[7.75, 15.5]);
    }

    #[test]
    fn hidden_states_are_needed() {
        insta::assert_snapshot!(refusal(|g| weighted_layer_sum(g, &[])), @"weighted_layer_sum in the root: there are no hidden states");
    }
}
