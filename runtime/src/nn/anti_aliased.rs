//! Anti-aliased activation functions of waveforms.

use std::f64::consts::PI;

use crate::graph::{Conv, Dim, Graph, PadMode, Scope, Tensor, Unary, show};
use crate::{Result, dims};

/// The taps of both filters.
const TAPS: usize = 12;

/// The snake activation function x + sin²(αx) / β between upsampling and downsampling by 2 (`Xcodec2AntiAliasedActivation1d`,
/// `Xcodec2SnakeBeta`; BigVGAN, arXiv:2206.04658): x `[batch, channels, samples]`, the logarithms of α and β at `act` of `w`.
///
/// # Errors
/// When x has other axes, or no fixed number of channels.
pub fn anti_aliased_snake(g: &mut Graph, w: &Scope, x: &Tensor) -> Result<Tensor> {
    let (Some(channels), 3) = (x.dim(1).and_then(Dim::fixed), x.rank()) else {
        return Err(
            g.error("anti_aliased_snake", format!("{} is not [batch, channels, samples]", show(x.shape())))
        );
    };
    let filter: Vec<f32> = low_pass().iter().map(|&tap| tap as f32).collect();
    let filter = g.constant(&[1, 1, TAPS], filter)?;
    let filter = g.expand(&filter, dims![channels, 1, TAPS])?;
    let strided = Conv::new(channels, &[TAPS]).stride(&[2]).groups(channels);
    let x = g.pad(x, &[(2, 5, 5)], PadMode::Edge)?;
    let x = g.conv_transpose_with(&x, &filter, None, &strided.clone().padding(&[15]))?;
    let x = g.scale(&x, 2.0)?;
    let x = snake_beta(g, &w.scope("act"), &x, channels)?;
    let x = g.pad(&x, &[(2, 5, 6)], PadMode::Edge)?;
    g.conv_with(&x, &filter, None, &strided)
}

/// x + sin²(αx) / β, with the logarithms of α and β for each channel (`Xcodec2SnakeBeta`).
fn snake_beta(g: &mut Graph, w: &Scope, x: &Tensor, channels: usize) -> Result<Tensor> {
    let mut factor = |name: &str| {
        let logarithm = g.weight(&w.name(name), &[channels])?;
        let factor = g.unary(Unary::Exp, &logarithm);
        g.unsqueeze(&factor, 1)
    };
    let (alpha, beta) = (factor("alpha")?, factor("beta")?);
    let turned = g.mul(x, &alpha)?;
    let wave = g.unary(Unary::Sin, &turned);
    let wave = g.mul(&wave, &wave)?;
    let tiny = g.scalar(1e-9);
    let divisor = g.add(&beta, &tiny)?;
    let wave = g.div(&wave, &divisor)?;
    g.add(x, &wave)
}

/// A sinc filter of half the band under a Kaiser window, whose sum is 1 (`kaiser_sinc_filter1d`).
fn low_pass() -> [f64; TAPS] {
    let half = TAPS as f64 / 2.0;
    let attenuation = 2.285 * (half - 1.0) * PI * 4.0 * 0.3 + 7.95;
    let beta = 0.1102 * (attenuation - 8.7);
    let tap = |index: usize| {
        let time = index as f64 - half + 0.5;
        let place = 2.0 * index as f64 / (TAPS - 1) as f64 - 1.0;
        let window = bessel(beta * (1.0 - place * place).max(0.0).sqrt()) / bessel(beta);
        window * (PI * time / 2.0).sin() / (PI * time)
    };
    let taps: [f64; TAPS] = std::array::from_fn(tap);
    let sum: f64 = taps.iter().sum();
    taps.map(|tap| tap / sum)
}

/// The modified Bessel function of the first kind, of order 0.
fn bessel(x: f64) -> f64 {
    let (mut sum, mut term) = (1.0, 1.0);
    for index in 1..40 {
        term *= (x / 2.0 / f64::from(index)).powi(2);
        sum += term;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::super::testing::{evaluate, refusal};
    use super::*;

    #[test]
    fn a_constant_waveform_passes_through_the_filters() {
        let weights: [(&str, &[f32]); 2] =
            [("snake.act.alpha", &[0.0, 0.5]), ("snake.act.beta", &[0.0, 1.0])];
        let build = |g: &mut Graph| {
            let x = g.constant(&[1, 2, 3], vec![0.5, 0.5, 0.5, -1.0, -1.0, -1.0])?;
            anti_aliased_snake(g, &g.scope("snake"), &x)
        };
        let Some((shape, got)) = evaluate(&weights, build) else { return };
        assert_eq!(shape, [1, 2, 3]);
        let first = 0.5 + 0.5_f32.sin().powi(2);
        let second = -1.0 + 0.5_f32.exp().sin().powi(2) / 1.0_f32.exp();
        for (got, want) in got.iter().zip([first, first, first, second, second, second]) {
            // The two phases of the first filter are not exactly of the same sum.
            assert!((got - want).abs() < 5e-3, "{got} {want}");
        }
    }

    #[test]
    fn the_filter_is_symmetric_and_narrow() {
        let taps = low_pass();
        for (left, right) in taps.iter().zip(taps.iter().rev()) {
            assert!((left - right).abs() < 1e-12);
        }
        // As `kaiser_sinc_filter1d(0.25, 0.3, 12)` gives.
        assert!((taps[5] - 0.443_2).abs() < 2e-3, "{taps:?}");
        let problem = refusal(|g| {
            let x = g.constant(&[1], vec![0.0])?;
            anti_aliased_snake(g, &g.root(), &x)
        });
        assert!(problem.contains("[batch, channels, samples]"), "{problem}");
    }
}
