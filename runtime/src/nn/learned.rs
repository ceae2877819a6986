//! Activation functions and factors with weights.

use serde::Deserialize;
use serde::de::value::{Error, StrDeserializer};

use super::Activation;
use crate::Result;
use crate::graph::{Binary, Graph, Reduction, Scope, Tensor, Unary};

/// The activation function of this name: `xielu` with its weights at `w`, or one without weights.
///
/// # Errors
/// When there is none of that name, or x is not floating point.
pub fn learned_activation(g: &mut Graph, w: &Scope, name: &str, x: &Tensor) -> Result<Tensor> {
    if name == "xielu" {
        return xielu(g, w, x);
    }
    let act = Activation::deserialize(StrDeserializer::<Error>::new(name));
    let act = act.map_err(|e| g.misfit("activation", format!("hidden_act: {e}")))?;
    g.activation(act, x)
}

/// `αₚ x² + β x` for positive x and `(e^min(x, ε) - 1 - x) αₙ + β x` for others (arXiv:2411.13010).
fn xielu(g: &mut Graph, w: &Scope, x: &Tensor) -> Result<Tensor> {
    g.enter(w);
    let one = g.scalar(1.0);
    let zero = g.scalar(0.0);
    let softplus = |g: &mut Graph, name: &str| -> Result<Tensor> {
        let alpha = g.weight(&w.name(name), &[1])?;
        let power = g.unary(Unary::Exp, &alpha);
        let power = g.add(&power, &one)?;
        Ok(g.unary(Unary::Log, &power))
    };
    let beta = g.weight(&w.name("beta"), &[])?;
    let epsilon = g.weight(&w.name("eps"), &[])?;
    let rising = softplus(g, "alpha_p")?;
    let falling = softplus(g, "alpha_n")?;
    let falling = g.add(&falling, &beta)?;
    let straight = g.mul(x, &beta)?;
    // Of the two curves one is nothing wherever the other is something, but for ε, which is lost in either.
    let (above, below) = (g.binary(Binary::Max, x, &zero)?, g.binary(Binary::Min, x, &zero)?);
    let square = g.mul(&above, &above)?;
    let square = g.mul(&square, &rising)?;
    let least = g.binary(Binary::Min, &below, &epsilon)?;
    let power = g.unary(Unary::Exp, &least);
    let power = g.sub(&power, &one)?;
    let power = g.sub(&power, &below)?;
    let power = g.mul(&power, &falling)?;
    let curved = g.add(&square, &power)?;
    g.add(&curved, &straight)
}

/// `exp(λq₁·λk₁) - exp(λq₂·λk₂) + initial`, by which the second of two attentions is taken from the first.
///
/// # Errors
/// When a weight is used with another shape.
pub fn differential_factor(g: &mut Graph, w: &Scope, size: usize, initial: f64) -> Result<Tensor> {
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
