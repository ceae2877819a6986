//! Linear layers whose inputs and outputs are clamped.

use crate::Result;
use crate::graph::{Binary, Graph, Scope, Tensor};

/// A linear layer without bias (`Gemma4ClippableLinear`), its weight at `linear` below `w`: `[…, in]` to `[…, out]`. Where it is
/// `clipped`, inputs are clamped to `input_min..=input_max` and outputs to `output_min..=output_max`, numbers of the checkpoint.
///
/// # Errors
/// When x is not floating point.
pub fn clipped_linear(g: &mut Graph, w: &Scope, x: &Tensor, out: usize, clipped: bool) -> Result<Tensor> {
    let linear = w.scope("linear");
    if !clipped {
        return g.linear_no_bias(&linear, x, out);
    }
    let x = clamp(g, w, x, ["input_min", "input_max"])?;
    let x = g.linear_no_bias(&linear, &x, out)?;
    clamp(g, w, &x, ["output_min", "output_max"])
}

fn clamp(g: &mut Graph, w: &Scope, x: &Tensor, [least, most]: [&str; 2]) -> Result<Tensor> {
    let least = g.weight(&w.name(least), &[])?;
    let x = g.binary(Binary::Max, x, &least)?;
    let most = g.weight(&w.name(most), &[])?;
    g.binary(Binary::Min, &x, &most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::testing::expect;

    const WEIGHTS: [(&str, &[f32]); 5] = [
        ("q.linear.weight", &[1.0, 2.0, -1.0, 10.0]),
        ("q.input_min", &[-1.0]),
        ("q.input_max", &[2.0]),
        ("q.output_min", &[0.25]),
        ("q.output_max", &[2.25]),
    ];

    fn build(g: &mut Graph, clipped: bool) -> Result<Tensor> {
        let x = g.constant(&[2, 2], vec![3.0, 0.25, -4.0, -0.5])?;
        let w = g.scope("q");
        clipped_linear(g, &w, &x, 2, clipped)
    }

    #[test]
    fn inputs_and_outputs_are_clamped() {
        // [2, 0.25] and [-1, -0.5] by the weight: [2.5, 0.5] and [-2, -4].
        expect(&WEIGHTS, |g| build(g, true), &[2, 2], &[2.25, 0.5, 0.25, 0.25]);
    }

    #[test]
    fn only_where_the_configuration_says_so() {
        expect(&WEIGHTS[..1], |g| build(g, false), &[2, 2], &[3.5, -0.5, -5.0, -1.0]);
    }
}
