//! Kaldi's log-mel filter banks: frames of 25 ms, 10 ms apart, under a window of Kaldi's (`spectrogram` of `audio_utils`).

use std::sync::Arc;

use ndarray::Array2;
use realfft::{RealFftPlanner, RealToComplex};

use super::mel::MelFilters;
use super::refused;
use crate::Result;

/// Samples in a frame, and from one to the next.
const FRAME: usize = 400;
const HOP: usize = 160;
/// The length of the FFT.
const TRANSFORM: usize = 512;
/// The pre-emphasis coefficient.
const PREEMPHASIS: f64 = 0.97;
/// Powers below this count as this: the precision of f32.
const FLOOR: f64 = 1.192_092_955_078_125e-7;
/// The lowest frequency, Hz.
const LOWEST: f64 = 20.0;

/// The window that frames are seen through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Window {
    /// `hanning`.
    Hann,
    /// That to the power of 0.85.
    Povey,
}

/// Log-mel energies of each frame of a waveform.
#[derive(Clone)]
pub(super) struct KaldiFilterbank {
    transform: Arc<dyn RealToComplex<f64>>,
    window: Vec<f64>,
    filters: MelFilters,
    /// What samples are multiplied with: Kaldi's are whole numbers of 16 bits.
    scale: f64,
}

impl KaldiFilterbank {
    pub(super) fn new(mels: usize, sampling_rate: u32, window: Window, scale: f64) -> Self {
        let highest = f64::from(sampling_rate / 2);
        let angle = |n: usize| 2.0 * std::f64::consts::PI * n as f64 / (FRAME - 1) as f64;
        let hann = |n: usize| 0.5 - 0.5 * angle(n).cos();
        let power = if window == Window::Povey { 0.85 } else { 1.0 };
        Self {
            transform: RealFftPlanner::new().plan_fft_forward(TRANSFORM),
            window: (0..FRAME).map(|n| hann(n).powf(power)).collect(),
            filters: MelFilters::in_mels(mels, TRANSFORM / 2 + 1, (LOWEST, highest), sampling_rate),
            scale,
        }
    }

    /// The number of mel bins.
    pub(super) fn mels(&self) -> usize {
        self.filters.len()
    }

    /// `[frames, mels]` of a waveform, as many frames as lie in it.
    pub(super) fn features(&self, waveform: &[f32]) -> Result<Array2<f32>> {
        if waveform.len() < FRAME {
            let problem = format!("{} samples are too few; at least {FRAME} are needed", waveform.len());
            return Err(refused(problem, "give longer audio"));
        }
        let starts = (0..(waveform.len() - FRAME) / HOP + 1).map(|frame| frame * HOP);
        let mut features = Array2::zeros((starts.len(), self.mels()));
        for (mut frame, start) in features.rows_mut().into_iter().zip(starts) {
            let power = self.power(&waveform[start..start + FRAME])?;
            for (x, energy) in frame.iter_mut().zip(self.filters.apply(&power)) {
                *x = energy.max(FLOOR).ln() as f32;
            }
        }
        Ok(features)
    }

    /// The power spectrum of one frame, without its mean and with high frequencies raised.
    fn power(&self, samples: &[f32]) -> Result<Vec<f64>> {
        let scaled = |sample: &f32| f64::from(*sample) * self.scale;
        let mean = samples.iter().map(scaled).sum::<f64>() / FRAME as f64;
        let mut frame = self.transform.make_input_vec();
        let mut before = None;
        for ((x, sample), window) in frame.iter_mut().zip(samples).zip(&self.window) {
            let sample = scaled(sample) - mean;
            *x = (sample - PREEMPHASIS * before.unwrap_or(sample)) * window;
            before = Some(sample);
        }
        let mut spectrum = self.transform.make_output_vec();
        self.transform
            .process(&mut frame, &mut spectrum)
            .map_err(|e| refused(format!("the transform failed: {e}"), "report this"))?;
        Ok(spectrum.iter().map(realfft::num_complex::Complex::norm_sqr).collect())
    }
}

impl std::fmt::Debug for KaldiFilterbank {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KaldiFilterbank").field("mels", &self.mels()).finish_non_exhaustive()
    }
}
