//! Resampling by windowed-sinc interpolation.
//!
//! The definition is that of `torchaudio.functional.resample` with its defaults: a Hann-windowed sinc of six
//! zero crossings on either side, its cutoff at 0.99 of the lower Nyquist frequency. After division by their
//! common divisor the rates are `from` and `to`; the output at `n` is the input around `n · from / to`,
//! weighted by one of `to` kernels.

use std::f64::consts::PI;

const ZERO_CROSSINGS: f64 = 6.0;
const ROLLOFF: f64 = 0.99;

pub(super) fn resample(samples: Vec<f32>, from: u32, to: u32) -> Vec<f32> {
    if from == to || from == 0 || to == 0 || samples.is_empty() {
        return samples;
    }
    let divisor = common_divisor(from, to);
    let (from, to) = ((from / divisor) as usize, (to / divisor) as usize);
    let (kernels, reach) = kernels(from, to);
    let length = (to * samples.len()).div_ceil(from);
    let mut resampled = Vec::with_capacity(length);
    for n in 0..length {
        let (block, phase) = (n / to, n % to);
        // The kernel begins `reach` samples before the block does; beyond the ends is silence.
        let start = block * from;
        let kernel = &kernels[phase];
        let skip = reach.saturating_sub(start).min(kernel.len());
        let first = (start + skip).saturating_sub(reach);
        let sum: f64 = kernel[skip..]
            .iter()
            .zip(samples.get(first..).unwrap_or_default())
            .map(|(&weight, &x)| f64::from(weight) * f64::from(x))
            .sum();
        resampled.push(sum as f32);
    }
    resampled
}

/// One kernel for each of the `to` phases, and how many samples before its block each begins.
fn kernels(from: usize, to: usize) -> (Vec<Vec<f32>>, usize) {
    let (from_rate, to_rate) = (from as f64, to as f64);
    let cutoff = from_rate.min(to_rate) * ROLLOFF;
    let reach = (ZERO_CROSSINGS * from_rate / cutoff).ceil() as usize;
    let weight = |phase: usize, index: usize| {
        let at = (index as f64 - reach as f64) / from_rate - phase as f64 / to_rate;
        let t = (at * cutoff).clamp(-ZERO_CROSSINGS, ZERO_CROSSINGS);
        let window = (t * PI / ZERO_CROSSINGS / 2.0).cos().powi(2);
        let t = t * PI;
        let sinc = if t == 0.0 { 1.0 } else { t.sin() / t };
        (sinc * window * cutoff / from_rate) as f32
    };
    let kernel = |phase| (0..2 * reach + from).map(|index| weight(phase, index)).collect();
    ((0..to).map(kernel).collect(), reach)
}

fn common_divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}
