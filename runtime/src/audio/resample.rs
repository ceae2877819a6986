//! Resampling by windowed-sinc interpolation.
//!
//! The definition is that of `torchaudio.functional.resample` with its defaults: a Hann-windowed sinc of six
//! zero crossings on either side, its cutoff at 0.99 of the lower Nyquist frequency. After division by their
//! common divisor the rates are `from` and `to`; the output at `n` is the input around `n · from / to`,
//! weighted by one of `to` kernels. Kernels are kept only where the window is not zero, and only where each
//! is used more than once: time and memory grow with the audio, whatever the rates.

use std::borrow::Cow;
use std::f64::consts::PI;

use super::refused;
use crate::Result;

const ZERO_CROSSINGS: f64 = 6.0;
const ROLLOFF: f64 = 0.99;

/// The highest rate, Hz: above all that recordings have.
const HIGHEST: u32 = 1 << 21;

/// The most samples that come of a short clip, and of one sample of a long one.
const MOST: u64 = 1 << 24;
const MOST_GROWTH: u64 = 8;

/// # Errors
/// When many more samples would come of it than there are, or a rate is none of a recording.
pub(super) fn resample(samples: Cow<'_, [f32]>, from: u32, to: u32) -> Result<Cow<'_, [f32]>> {
    if from == to || from == 0 || to == 0 || samples.is_empty() {
        return Ok(samples);
    }
    if let Some(rate) = [from, to].into_iter().find(|rate| *rate > HIGHEST) {
        let problem = format!("{rate} Hz is no sampling rate of a recording");
        return Err(refused(problem, format!("resample it first; at most {HIGHEST} Hz are taken")));
    }
    let count = samples.len() as u64;
    let length = (u64::from(to) * count).div_ceil(u64::from(from));
    let most = MOST + MOST_GROWTH * count;
    if length > most {
        let problem = format!("at {to} Hz it would have {length} samples, {count} of {from} Hz as it is");
        return Err(refused(problem, format!("resample it first; at most {most} are made of it")));
    }
    let divisor = common_divisor(from, to);
    let (from, to) = ((from / divisor) as usize, (to / divisor) as usize);
    let sinc = Sinc::new(from, to);
    let length = length as usize;
    let kept: Vec<Vec<f32>> = match length > to {
        true => (0..to).map(|phase| sinc.weights(phase, 0..sinc.width(phase)).collect()).collect(),
        false => vec![],
    };
    let mut resampled = Vec::with_capacity(length);
    for n in 0..length {
        let (block, phase) = (n / to, n % to);
        // The kernel begins `reach` samples before its place; beyond the ends is silence.
        let start = block * from + sinc.start(phase);
        let skip = sinc.reach.saturating_sub(start);
        let heard = samples.get((start + skip).saturating_sub(sinc.reach)..).unwrap_or_default();
        let product = |(weight, x): (f32, &f32)| f64::from(weight) * f64::from(*x);
        let sum: f64 = match kept.get(phase) {
            Some(kernel) => {
                kernel.get(skip..).unwrap_or_default().iter().copied().zip(heard).map(product).sum()
            }
            None => sinc.weights(phase, skip..sinc.width(phase)).zip(heard).map(product).sum(),
        };
        resampled.push(sum as f32);
    }
    Ok(resampled.into())
}

/// The kernels of a ratio of rates.
struct Sinc {
    from: usize,
    to: usize,
    cutoff: f64,
    /// How many samples before the place of its output a kernel begins.
    reach: usize,
}

impl Sinc {
    fn new(from: usize, to: usize) -> Self {
        let cutoff = from.min(to) as f64 * ROLLOFF;
        let reach = (ZERO_CROSSINGS * from as f64 / cutoff).ceil() as usize;
        Self { from, to, cutoff, reach }
    }

    /// The sample at or before an output's place in its block.
    fn start(&self, phase: usize) -> usize {
        phase * self.from / self.to
    }

    /// How many samples have a weight: those `reach` before the place and after it, but none past the next block's.
    fn width(&self, phase: usize) -> usize {
        (2 * self.reach + 2).min(2 * self.reach + self.from - self.start(phase))
    }

    /// Weights of some of the samples from the kernel's first on.
    fn weights(&self, phase: usize, samples: std::ops::Range<usize>) -> impl Iterator<Item = f32> {
        let (from_rate, to_rate) = (self.from as f64, self.to as f64);
        let first = self.start(phase);
        samples.map(move |index| {
            let index = (first + index) as f64 - self.reach as f64;
            let at = index / from_rate - phase as f64 / to_rate;
            let t = (at * self.cutoff).clamp(-ZERO_CROSSINGS, ZERO_CROSSINGS);
            let window = (t * PI / ZERO_CROSSINGS / 2.0).cos().powi(2);
            let t = t * PI;
            let sinc = if t == 0.0 { 1.0 } else { t.sin() / t };
            (sinc * window * self.cutoff / from_rate) as f32
        })
    }
}

fn common_divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}
