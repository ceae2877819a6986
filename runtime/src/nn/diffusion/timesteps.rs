//! Sinusoidal timestep embeddings (`Timesteps`, `TimestepEmbedding`).

use crate::Result;
use crate::graph::{Activation, Dtype, Graph, Scope, Tensor, Unary};

/// Sinusoidal timestep embeddings (`Timesteps`, DDPM): frequencies from 1 down to 1/10000.
#[derive(Clone, Copy, Debug)]
pub struct Timesteps {
    /// The width: half sines, half cosines.
    pub width: usize,
    /// Whether cosines come before sines.
    pub flip_sin_to_cos: bool,
    /// What is taken from the number of frequencies to divide by (`downscale_freq_shift`).
    pub freq_shift: f64,
}

impl Timesteps {
    /// The embeddings of timesteps `[…]` f32: `[…, width]`.
    ///
    /// # Errors
    /// When the timesteps are not floating point, or the width is odd.
    pub fn forward(&self, g: &mut Graph, timesteps: &Tensor) -> Result<Tensor> {
        if !self.width.is_multiple_of(2) || self.width == 0 {
            return Err(g.error("Timesteps", format!("the width {} is not even", self.width)));
        }
        let half = self.width / 2;
        let divisor = (half as f64 - self.freq_shift) as f32;
        let scale = -(10_000_f64.ln()) as f32;
        let frequencies: Vec<f32> = (0..half).map(|index| (scale * index as f32 / divisor).exp()).collect();
        let last = timesteps.rank();
        // Angles of whole timesteps are of single precision on every backend, where 981 radians in 16 bits are off by more than a
        // turn; what is left of them is less than 1, and is added by the sines and cosines of sums.
        let whole = g.unary(Unary::Floor, timesteps);
        let rest = g.sub(timesteps, &whole)?;
        let whole = g.cast(&whole, Dtype::I64);
        let (sin, cos) = (
            g.angles(&whole, Unary::Sin, &frequencies, 1.0)?,
            g.angles(&whole, Unary::Cos, &frequencies, 1.0)?,
        );
        let frequencies = g.constant(&[half], frequencies)?;
        let rest = g.unsqueeze(&rest, last)?;
        let rest = g.mul(&rest, &frequencies)?;
        let (rest_sin, rest_cos) = (g.unary(Unary::Sin, &rest), g.unary(Unary::Cos, &rest));
        let (a, b) = (g.mul(&sin, &rest_cos)?, g.mul(&cos, &rest_sin)?);
        let sines = g.add(&a, &b)?;
        let (a, b) = (g.mul(&cos, &rest_cos)?, g.mul(&sin, &rest_sin)?);
        let cosines = g.sub(&a, &b)?;
        let parts = if self.flip_sin_to_cos { [&cosines, &sines] } else { [&sines, &cosines] };
        g.concat(&parts, last)
    }
}

/// Two linear layers over sinusoidal embeddings, `linear_1` and `linear_2` at `w` (`TimestepEmbedding`): `[batch, …]` to
/// `[batch, width]`.
///
/// # Errors
/// When the last axis of x has no fixed length.
pub fn timestep_embedding(
    g: &mut Graph,
    w: &Scope,
    x: &Tensor,
    width: usize,
    act: Activation,
) -> Result<Tensor> {
    let h = g.linear(&w.scope("linear_1"), x, width)?;
    let h = g.activation(act, &h)?;
    g.linear(&w.scope("linear_2"), &h, width)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::testing::{expect, refusal};

    #[test]
    fn cosines_come_first_where_they_are_flipped() {
        let at = |flip_sin_to_cos, freq_shift| {
            move |g: &mut Graph| {
                let timesteps = g.constant(&[2], vec![1.0, 2.5])?;
                Timesteps { width: 4, flip_sin_to_cos, freq_shift }.forward(g, &timesteps)
            }
        };
        let (sin, cos) = (f32::sin, f32::cos);
        let flipped = [cos(1.0), cos(0.01), sin(1.0), sin(0.01), cos(2.5), cos(0.025), sin(2.5), sin(0.025)];
        expect(&[], at(true, 0.0), &[2, 4], &flipped);
        // With a shift of 1 the second of two frequencies is 1/10000.
        let plain = [sin(1.0), sin(1e-4), cos(1.0), cos(1e-4), sin(2.5), sin(2.5e-4), cos(2.5), cos(2.5e-4)];
        expect(&[], at(false, 1.0), &[2, 4], &plain);
    }

    #[test]
    fn an_odd_width_is_refused() {
        let problem = refusal(|g| {
            let timesteps = g.constant(&[1], vec![1.0])?;
            Timesteps { width: 3, flip_sin_to_cos: true, freq_shift: 0.0 }.forward(g, &timesteps)
        });
        insta::assert_snapshot!(problem, @"Timesteps in the root: the width 3 is not even");
    }

    #[test]
    fn an_activation_function_stands_between_two_layers() {
        let build = |g: &mut Graph| {
            let x = g.constant(&[1, 1], vec![3.0])?;
            timestep_embedding(g, &Scope::root().scope("t"), &x, 2, Activation::Relu)
        };
        let weights: [(&str, &[f32]); 4] = [
            ("t.linear_1.weight", &[1.0, -1.0]),
            ("t.linear_1.bias", &[0.0, 1.0]),
            ("t.linear_2.weight", &[2.0, 5.0, 4.0, 5.0]),
            ("t.linear_2.bias", &[0.5, 0.0]),
        ];
        expect(&weights, build, &[1, 2], &[6.5, 12.0]);
    }
}
