//! xIELU, an activation function with learned parameters (Huang et al., 2024, arXiv:2411.13010).

use serde::Deserialize;
use serde::de::value::{Error, StrDeserializer};

use super::Activation;
use crate::Result;
use crate::graph::{Binary, Graph, Scope, Tensor, Unary};

/// Activation function by the reference's name: `xielu` with its parameters at `w`, or one of [`Activation`].
///
/// # Errors
/// When there is none of that name, or x is not floating point.
pub fn learned_activation(g: &mut Graph, w: &Scope, name: &str, x: &Tensor) -> Result<Tensor> {
    if name == "xielu" {
        return xielu(g, w, x);
    }
    let act = Activation::deserialize(StrDeserializer::<Error>::new(name));
    let act = act.map_err(|e| g.error("activation", format!("hidden_act: {e}")))?;
    g.activation(act, x)
}

/// xIELU (`XIELUActivation`): `αₚ x² + β x` for positive x and `(e^min(x, ε) - 1 - x) αₙ + β x` for others (arXiv:2411.13010).
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::testing::{expect, refusal};

    #[test]
    fn xielu_has_a_curve_on_each_side() {
        let weights: [(&str, &[f32]); 4] = [
            ("act_fn.alpha_p", &[0.0]),
            ("act_fn.alpha_n", &[1.0]),
            ("act_fn.beta", &[0.5]),
            ("act_fn.eps", &[-1e-6]),
        ];
        let build = |g: &mut Graph| {
            let x = g.constant(&[3], vec![2.0, -1.0, 0.0])?;
            learned_activation(g, &g.scope("act_fn"), "xielu", &x)
        };
        // ln 2 · 4 + 0.5 · 2, and 1/e · (ln(1 + e) + 0.5) - 0.5.
        expect(&weights, build, &[3], &[3.772_588_7, 0.167_061_7, 0.0]);
    }

    #[test]
    fn other_activations_have_no_weights() {
        let build = |g: &mut Graph| {
            let x = g.constant(&[2], vec![2.0, -1.0])?;
            learned_activation(g, &g.scope("act_fn"), "relu", &x)
        };
        expect(&[], build, &[2], &[2.0, 0.0]);
    }

    #[test]
    fn an_unknown_activation_is_refused() {
        let problem = refusal(|g| {
            let x = g.constant(&[1], vec![0.0])?;
            learned_activation(g, &g.scope("act_fn"), "xielo", &x)
        });
        assert!(problem.contains("hidden_act") && problem.contains("xielo"), "{problem}");
    }
}
