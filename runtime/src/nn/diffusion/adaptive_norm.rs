//! Adaptive layer normalisation of diffusion transformers (`AdaLayerNormZero`, `AdaLayerNormContinuous`; Peebles & Xie, 2022,
//! arXiv:2212.09748).

use crate::Result;
use crate::graph::{Activation, Dim, Graph, Scope, Tensor};
use crate::nn::layer_norm_no_affine;

/// The shifts, scales and gates that a timestep's embedding stands for (`AdaLayerNormZero`): `N` parts of a linear layer of
/// SiLU of `embedding` `[batch, …]`, each `[batch, 1, width]`.
///
/// # Errors
/// When the last axis of the embedding has no fixed length.
pub fn modulation<const N: usize>(
    g: &mut Graph,
    w: &Scope,
    embedding: &Tensor,
    width: usize,
) -> Result<[Tensor; N]> {
    let h = projected(g, w, embedding, N * width)?;
    crate::nn::split_last(g, &h, [width; N])
}

/// The same where their number is known as the graph is built.
///
/// # Errors
/// As [`modulation`].
pub fn modulation_parts(
    g: &mut Graph,
    w: &Scope,
    embedding: &Tensor,
    width: usize,
    count: usize,
) -> Result<Vec<Tensor>> {
    let h = projected(g, w, embedding, count * width)?;
    g.split(&h, 2, &vec![width; count])
}

fn projected(g: &mut Graph, w: &Scope, embedding: &Tensor, width: usize) -> Result<Tensor> {
    let h = g.activation(Activation::Silu, embedding)?;
    let h = g.linear(&w.scope("linear"), &h, width)?;
    g.unsqueeze(&h, 1)
}

/// x times one more than `scale`, and `shift`: x `[batch, positions, width]`, the others `[batch, 1, width]`.
///
/// # Errors
/// When the shapes do not go together.
pub fn modulate(g: &mut Graph, x: &Tensor, shift: &Tensor, scale: &Tensor) -> Result<Tensor> {
    let one = g.scalar(1.0);
    let scale = g.add(scale, &one)?;
    let x = g.mul(x, &scale)?;
    g.add(&x, shift)
}

/// Layer normalisation without weights, [modulated](modulate).
///
/// # Errors
/// As [`modulate`].
pub fn modulated_norm(
    g: &mut Graph,
    x: &Tensor,
    shift: &Tensor,
    scale: &Tensor,
    epsilon: f64,
) -> Result<Tensor> {
    let x = layer_norm_no_affine(g, x, epsilon)?;
    modulate(g, &x, shift, scale)
}

/// x and `gate` times h, a gated residual.
///
/// # Errors
/// When the shapes do not go together.
pub fn gated_residual(g: &mut Graph, x: &Tensor, gate: &Tensor, h: &Tensor) -> Result<Tensor> {
    let h = g.mul(gate, h)?;
    g.add(x, &h)
}

/// Layer normalisation whose scale comes before its shift (`AdaLayerNormContinuous`): x `[batch, positions, width]`, by an
/// embedding `[batch, …]`.
///
/// # Errors
/// When the last axis of x or of the embedding has no fixed length.
pub fn ada_layer_norm_continuous(
    g: &mut Graph,
    w: &Scope,
    x: &Tensor,
    embedding: &Tensor,
    epsilon: f64,
) -> Result<Tensor> {
    let width = x.dim(-1).and_then(Dim::fixed).unwrap_or_default();
    let [scale, shift] = modulation(g, w, embedding, width)?;
    modulated_norm(g, x, &shift, &scale, epsilon)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::testing::expect;

    /// SiLU of the embedding 0 is 0, so that the parts are the biases; the norm gives (-1, 1).
    const NORM: [(&str, &[f32]); 2] =
        [("n.linear.weight", &[0.0; 4]), ("n.linear.bias", &[1.0, 2.0, 10.0, 20.0])];

    fn two(g: &mut Graph) -> Result<(Tensor, Tensor)> {
        Ok((g.constant(&[1, 1, 2], vec![3.0, 5.0])?, g.constant(&[1, 1], vec![0.0])?))
    }

    #[test]
    fn a_continuous_norm_has_its_scale_first() {
        let build = |g: &mut Graph| {
            let (x, embedding) = two(g)?;
            ada_layer_norm_continuous(g, &Scope::root().scope("n"), &x, &embedding, 0.0)
        };
        expect(&NORM, build, &[1, 1, 2], &[-2.0 + 10.0, 3.0 + 20.0]);
    }

    #[test]
    fn a_shift_comes_first_and_a_gate_is_added() {
        let build = |g: &mut Graph| {
            let (x, embedding) = two(g)?;
            let [shift, scale] = modulation(g, &Scope::root().scope("n"), &embedding, 2)?;
            let h = modulated_norm(g, &x, &shift, &scale, 0.0)?;
            gated_residual(g, &x, &shift, &h)
        };
        // (-11 + 1, 21 + 2), times (1, 2), and x.
        expect(&NORM, build, &[1, 1, 2], &[3.0 - 10.0, 5.0 + 46.0]);
    }
}
