//! Blocks of detection transformers (DETR, arXiv:2005.12872).

use super::Activation;
use crate::Result;
use crate::graph::{Graph, Scope, Tensor};

/// The MLP of class logits or boxes (`DetrMLPPredictionHead`): three linear layers at `0`, `1` and `2` of `layers`, ReLU between
/// them, x `[…, width]` to `[…, out]`.
///
/// # Errors
/// When the last axis of x has no fixed length.
pub fn mlp_prediction_head(
    g: &mut Graph,
    layers: &Scope,
    x: &Tensor,
    width: usize,
    out: usize,
) -> Result<Tensor> {
    let h = g.linear(&layers.index(0), x, width)?;
    let h = g.activation(Activation::Relu, &h)?;
    let h = g.linear(&layers.index(1), &h, width)?;
    let h = g.activation(Activation::Relu, &h)?;
    g.linear(&layers.index(2), &h, out)
}

#[cfg(test)]
mod tests {
    use super::super::testing::expect;
    use super::*;

    #[test]
    fn three_layers_have_relu_between_them_and_none_behind() {
        let weights: [(&str, &[f32]); 6] = [
            ("layers.0.weight", &[1.0, -1.0]),
            ("layers.0.bias", &[0.0, 5.0]),
            ("layers.1.weight", &[2.0, 1.0, -3.0, 0.0]),
            ("layers.1.bias", &[1.0, 2.0]),
            ("layers.2.weight", &[-1.0, 4.0]),
            ("layers.2.bias", &[-0.5]),
        ];
        let build = |g: &mut Graph| {
            let x = g.constant(&[2, 1], vec![2.0, -1.0])?;
            mlp_prediction_head(g, &Scope::root().scope("layers"), &x, 2, 1)
        };
        // (2, 3) and (0, 6); then (8, 0) and (7, 2).
        expect(&weights, build, &[2, 1], &[-8.5, 0.5]);
    }
}
