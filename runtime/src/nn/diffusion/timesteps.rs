//! Sinusoidal timestep embeddings (`Timesteps`, `TimestepEmbedding`).

use crate::Result;
use crate::graph::{Activation, Dim, Graph, Scope, Tensor, Unary};

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
    /// As most transformers have them: cosines first, frequencies without a shift.
    pub fn new(width: usize) -> Self {
        Self { width, flip_sin_to_cos: true, freq_shift: 0.0 }
    }

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
        let (sines, cosines) = (
            g.angles(timesteps, Unary::Sin, &frequencies, 1.0)?,
            g.angles(timesteps, Unary::Cos, &frequencies, 1.0)?,
        );
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

/// The width of timesteps' sinusoidal embeddings in most transformers.
const WIDTH: usize = 256;

/// Sinusoidal embeddings of timesteps `[batch]` in 256 elements, and two layers with SiLU over them (`time_proj` and
/// `timestep_embedder` of `CombinedTimestepTextProjEmbeddings` and its relatives): `[batch, width]`.
///
/// # Errors
/// When the timesteps are not floating point.
pub fn embed_timesteps(g: &mut Graph, w: &Scope, timesteps: &Tensor, width: usize) -> Result<Tensor> {
    let x = Timesteps::new(WIDTH).forward(g, timesteps)?;
    timestep_embedding(g, w, &x, width, Activation::Silu)
}

/// The embedding of a pooled text `[batch, …]` and of sizes `[batch, sizes]` behind it, each of these by sinusoids
/// (`addition_embed_type: text_time` of `UNet2DConditionModel`); of both together as many elements as the layers take, `joined`:
/// `[batch, width]`.
///
/// # Errors
/// When there are fewer elements.
pub fn text_time_embedding(
    g: &mut Graph,
    w: &Scope,
    [pooled, sizes]: [&Tensor; 2],
    sinusoidal: Timesteps,
    [joined, width]: [usize; 2],
) -> Result<Tensor> {
    let sizes = sinusoidal.forward(g, sizes)?;
    let sizes = g.flatten(&sizes, 1..3)?;
    let both = g.concat(&[pooled, &sizes], 1)?;
    // What configurations say is the width of both together.
    let both = g.slice_dims(&both, 1, Dim::Fixed(0), joined.into())?;
    timestep_embedding(g, w, &both, width, Activation::Silu)
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
    fn sizes_stand_behind_the_pooled_text() {
        let build = |g: &mut Graph| {
            let pooled = g.constant(&[1, 1], vec![2.0])?;
            let sizes = g.constant(&[1, 2], vec![0.0, 1.0])?;
            let w = Scope::root().scope("t");
            text_time_embedding(g, &w, [&pooled, &sizes], Timesteps::new(2), [5, 1])
        };
        // The text, then of each size a cosine and a sine: 2, 1, 0, cos(1), sin(1).
        let weights: [(&str, &[f32]); 4] = [
            ("t.linear_1.weight", &[1.0, 10.0, 100.0, 1000.0, 10_000.0]),
            ("t.linear_1.bias", &[0.0]),
            ("t.linear_2.weight", &[1.0]),
            ("t.linear_2.bias", &[0.5]),
        ];
        let whole = 12.0 + 1000.0 * 1_f32.cos() + 10_000.0 * 1_f32.sin();
        expect(&weights, build, &[1, 1], &[whole + 0.5]);
    }

    #[test]
    fn timesteps_are_embedded_in_256_elements() {
        let build = |g: &mut Graph| {
            let timesteps = g.constant(&[1], vec![0.0])?;
            embed_timesteps(g, &Scope::root().scope("t"), &timesteps, 1)
        };
        // Of timestep 0 the cosines are 1 and come first, the sines are 0.
        let mut first = vec![0.25; 128];
        first.resize(256, 9.0);
        let weights: [(&str, &[f32]); 4] = [
            ("t.linear_1.weight", &first),
            ("t.linear_1.bias", &[0.0]),
            ("t.linear_2.weight", &[2.0]),
            ("t.linear_2.bias", &[0.0]),
        ];
        expect(&weights, build, &[1, 1], &[64.0]);
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
