//! Short-time Fourier transforms of real signals.

use std::sync::Arc;

use realfft::{RealFftPlanner, RealToComplex};

use super::refused;
use crate::Result;

/// Power spectra of overlapping frames under a periodic Hann window, centred: the ends are reflected.
///
/// As `torch.stft(…).abs() ** 2`.
#[derive(Clone)]
pub(super) struct PowerSpectrogram {
    transform: Arc<dyn RealToComplex<f64>>,
    window: Vec<f64>,
    hop: usize,
}

impl PowerSpectrogram {
    pub(super) fn new(length: usize, hop: usize) -> Self {
        Self::windowed(length, length, hop)
    }

    /// The same with a window of `width` samples in the middle of a frame of `length`.
    pub(super) fn windowed(length: usize, width: usize, hop: usize) -> Self {
        let angle = |n: usize| 2.0 * std::f64::consts::PI * n as f64 / width as f64;
        let mut window = vec![0.0; length];
        let places = window.iter_mut().skip(length.saturating_sub(width) / 2).take(width);
        places.enumerate().for_each(|(n, x)| *x = 0.5 - 0.5 * angle(n).cos());
        Self { transform: RealFftPlanner::new().plan_fft_forward(length), window, hop }
    }

    /// Frequencies in a spectrum.
    pub(super) fn bins(&self) -> usize {
        self.window.len() / 2 + 1
    }

    /// The spectrum of each frame in turn; there are `length / hop + 1` of them.
    ///
    /// # Errors
    /// When the signal is too short to be reflected at its ends.
    pub(super) fn each(&self, signal: &[f32], mut take: impl FnMut(usize, &[f64])) -> Result<()> {
        let half = self.window.len() / 2;
        if signal.len() <= half {
            let problem = format!("{} samples are too few; at least {} are needed", signal.len(), half + 1);
            return Err(refused(problem, "give longer audio, or let it be padded"));
        }
        let last = signal.len() as isize - 1;
        let reflected = |at: isize| signal[(last - (last - at.abs()).abs()).unsigned_abs()];
        let mut frame = self.transform.make_input_vec();
        let mut spectrum = self.transform.make_output_vec();
        let mut scratch = self.transform.make_scratch_vec();
        let mut power = vec![0.0; self.bins()];
        for index in 0..=signal.len() / self.hop {
            let start = (index * self.hop) as isize - half as isize;
            for (n, (x, window)) in frame.iter_mut().zip(&self.window).enumerate() {
                *x = f64::from(reflected(start + n as isize)) * window;
            }
            self.transform
                .process_with_scratch(&mut frame, &mut spectrum, &mut scratch)
                .map_err(|e| refused(format!("the transform failed: {e}"), "report this"))?;
            for (power, x) in power.iter_mut().zip(&spectrum) {
                *power = x.norm_sqr();
            }
            take(index, &power);
        }
        Ok(())
    }
}

impl std::fmt::Debug for PowerSpectrogram {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PowerSpectrogram")
            .field("length", &self.window.len())
            .field("hop", &self.hop)
            .finish()
    }
}
