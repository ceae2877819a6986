//! Waveforms of spectrograms, by the inverse short-time Fourier transform.

use std::f64::consts::TAU;

use crate::graph::{Binary, Conv, Dim, Graph, Tensor, Unary, show};
use crate::{Result, dims};

/// The waveform of magnitudes and phases (`Xcodec2ISTFTHead`; Vocos, arXiv:2306.00814), `n_fft` four hops wide under a Hann window and
/// cut off such that each frame gives a hop: x `[batch, frames, n_fft + 2]`, the logarithms of magnitudes, at most 100, before phases;
/// to `[batch, 1, samples]`.
///
/// # Errors
/// When x has another width, or a hop is not of 1 to 1024 samples.
pub fn istft_head(g: &mut Graph, x: &Tensor, hop_length: usize) -> Result<Tensor> {
    if !(1..=1024).contains(&hop_length) {
        return Err(
            g.error("istft_head", format!("a frame is of {hop_length} samples, but must be of 1 to 1024"))
        );
    }
    let n_fft = 4 * hop_length;
    let bins = n_fft / 2 + 1;
    let [_, frames, Dim::Fixed(width)] = x.shape() else {
        return Err(g.error("istft_head", format!("{} is not [batch, frames, n_fft + 2]", show(x.shape()))));
    };
    let frames = frames.clone();
    if *width != 2 * bins {
        return Err(
            g.error("istft_head", format!("{} is not [batch, frames, {}]", show(x.shape()), 2 * bins))
        );
    }
    let parts = g.split(x, 2, &[bins, bins])?;
    let magnitude = g.unary(Unary::Exp, &parts[0]);
    let most = g.scalar(100.0);
    let magnitude = g.binary(Binary::Min, &magnitude, &most)?;
    let (real, imaginary) = (g.unary(Unary::Cos, &parts[1]), g.unary(Unary::Sin, &parts[1]));
    let (real, imaginary) = (g.mul(&magnitude, &real)?, g.mul(&magnitude, &imaginary)?);
    let spectrum = g.concat(&[&real, &imaginary], 2)?;
    let spectrum = g.transpose(&spectrum, &[0, 2, 1])?;
    let window: Vec<f64> = (0..n_fft).map(|n| 0.5 - 0.5 * (TAU * n as f64 / n_fft as f64).cos()).collect();
    let cut = 3 * hop_length / 2;
    let overlap = Conv::new(1, &[n_fft]).stride(&[hop_length]).padding(&[cut]);
    let basis = g.constant(&[2 * bins, 1, n_fft], inverse(&window))?;
    let audio = g.conv_transpose_with(&spectrum, &basis, None, &overlap)?;
    let squares = window.iter().map(|&value| (value * value) as f32).collect();
    let squares = g.constant(&[1, 1, n_fft], squares)?;
    let ones = g.full(dims![1, 1, frames], 1.0)?;
    let envelope = g.conv_transpose_with(&ones, &squares, None, &overlap)?;
    let tiny = g.scalar(1e-11);
    let envelope = g.binary(Binary::Max, &envelope, &tiny)?;
    g.div(&audio, &envelope)
}

/// What each bin's real and then imaginary part adds to each sample of a frame under the window (`torch.fft.irfft`).
fn inverse(window: &[f64]) -> Vec<f32> {
    let n_fft = window.len();
    let turns: Vec<_> = (0..n_fft).map(|step| (TAU * step as f64 / n_fft as f64).sin_cos()).collect();
    let mut basis = Vec::with_capacity((n_fft + 2) * n_fft);
    for imaginary in [false, true] {
        for bin in 0..=n_fft / 2 {
            let share = if bin == 0 || 2 * bin == n_fft { 1.0 } else { 2.0 } / n_fft as f64;
            basis.extend(window.iter().enumerate().map(|(n, value)| {
                let (sin, cos) = turns[bin * n % n_fft];
                // The imaginary parts of the first and the last bin are passed over.
                let wave = match imaginary {
                    true if bin == 0 || 2 * bin == n_fft => 0.0,
                    true => -sin,
                    false => cos,
                };
                (share * wave * value) as f32
            }));
        }
    }
    basis
}

#[cfg(test)]
mod tests {
    use super::super::testing::{expect, refusal};
    use super::*;

    #[test]
    fn a_constant_spectrum_is_a_constant_waveform() {
        // Hops of 1: windows of 0, ½, 1 and ½. The lowest bin alone, of magnitude 4, is 1 at each sample; others are e⁻⁵⁰.
        let frame = [4.0_f32.ln(), -50.0, -50.0, 0.0, 1.0, 2.0];
        let build = |g: &mut Graph| {
            let x = g.constant(&[1, 3, 6], [frame, frame, frame].concat())?;
            istft_head(g, &x, 1)
        };
        // Samples 1 to 4 of 6: (½ + …) / (¼ + …) of the frames that reach them.
        let want = [0.5 / 0.25, 1.5 / 1.25, 2.0 / 1.5, 1.5 / 1.25];
        expect(&[], build, &[1, 1, 4], &want);
    }

    #[test]
    fn other_widths_are_refused() {
        let problem = refusal(|g| {
            let x = g.constant(&[1, 1, 4], vec![0.0; 4])?;
            istft_head(g, &x, 1)
        });
        insta::assert_snapshot!(problem, @"istft_head in the root: [1, 1, 4] is not [batch, frames, 6]");
        let problem = refusal(|g| {
            let x = g.constant(&[1, 1, 4], vec![0.0; 4])?;
            istft_head(g, &x, 0)
        });
        insta::assert_snapshot!(problem, @"istft_head in the root: a frame is of 0 samples, but must be of 1 to 1024");
    }
}
