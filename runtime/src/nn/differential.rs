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
