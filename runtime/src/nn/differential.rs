//! Differential attention (Ye et al., 2024, arXiv:2410.05258): the difference of two attentions over shared values.

use crate::Result;
use crate::graph::{Dim, Graph, Reduction, Scope, Tensor, Unary};

/// Values of differential attention (`DiffLlamaAttention`): the first half of the heads repeated twice, and the second half
/// repeated twice; `[batch, sequence, heads·size]` or `[batch, heads, sequence, size]`.
///
/// # Errors
/// When there are no heads to halve.
pub fn differential_values(g: &mut Graph, v: &Tensor) -> Result<[Tensor; 2]> {
    let axis = if v.rank() == 4 { 1 } else { 2 };
    let length = v.shape().get(axis).and_then(Dim::fixed).unwrap_or_default();
    let first = g.slice(v, axis, 0..length / 2)?;
    let second = g.slice(v, axis, length / 2..length)?;
    Ok([g.concat(&[&first, &first], axis)?, g.concat(&[&second, &second], axis)?])
}

/// λ of differential attention: `exp(λq₁·λk₁) - exp(λq₂·λk₂) + initial`, the weight of the subtracted attention.
///
/// # Errors
/// When a weight is used with another shape.
pub fn differential_lambda(g: &mut Graph, w: &Scope, size: usize, initial: f64) -> Result<Tensor> {
    g.enter(w);
    let mut powers = vec![];
    for [q, k] in [["lambda_q1", "lambda_k1"], ["lambda_q2", "lambda_k2"]] {
        let (q, k) = (g.weight(&w.name(q), &[size])?, g.weight(&w.name(k), &[size])?);
        let product = g.mul(&q, &k)?;
        let sum = g.reduce(Reduction::Sum, &product, &[0], false)?;
        powers.push(g.unary(Unary::Exp, &sum));
    }
    let factor = g.sub(&powers[0], &powers[1])?;
    let initial = g.scalar(initial as f32);
    g.add(&factor, &initial)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::testing::{expect, refusal};

    #[test]
    fn each_half_of_the_values_is_repeated() {
        for (index, want) in [[0.0, 1.0, 0.0, 1.0], [2.0, 3.0, 2.0, 3.0]].into_iter().enumerate() {
            let new = |g: &mut Graph| {
                let v = g.constant(&[1, 1, 4], vec![0.0, 1.0, 2.0, 3.0])?;
                Ok(differential_values(g, &v)?[index].clone())
            };
            expect(&[], new, &[1, 1, 4], &want);
            // Two heads of two positions: the axis of heads is halved.
            let cached = |g: &mut Graph| {
                let v = g.constant(&[1, 2, 2, 1], vec![0.0, 1.0, 2.0, 3.0])?;
                Ok(differential_values(g, &v)?[index].clone())
            };
            expect(&[], cached, &[1, 2, 2, 1], &want);
        }
    }

    #[test]
    fn lambda_is_the_difference_of_two_exponentials() {
        let weights: [(&str, &[f32]); 4] = [
            ("attn.lambda_q1", &[1.0, 0.0]),
            ("attn.lambda_k1", &[0.5, 9.0]),
            ("attn.lambda_q2", &[0.0, 1.0]),
            ("attn.lambda_k2", &[9.0, -1.0]),
        ];
        let build = |g: &mut Graph| differential_lambda(g, &g.scope("attn"), 2, 0.2);
        // exp(0.5) - exp(-1) + 0.2
        expect(&weights, build, &[], &[1.480_841_8]);
    }

    #[test]
    fn a_lambda_of_another_size_is_refused() {
        let problem = refusal(|g| {
            let w = g.scope("attn");
            g.weight("attn.lambda_k1", &[3])?;
            differential_lambda(g, &w, 2, 0.2)
        });
        insta::assert_snapshot!(problem, @"Weight in attn: `attn.lambda_k1` is used with two shapes: [3] and [2]");
    }
}
