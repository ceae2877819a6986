//! Kaldi log-mel filter banks (`ASTFeatureExtractor`), padded or truncated to `max_length` frames.
//!
//! Reference: `ASTFeatureExtractor` without `torchaudio`.

use std::sync::Arc;

use ndarray::Array3;
use realfft::{RealFftPlanner, RealToComplex};
use serde::Deserialize;

use super::mel::MelFilters;
use super::refused;
use super::settings::{Settings, positive};
use crate::{Result, Values};

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

#[derive(Clone)]
pub(super) struct LogFilterbank {
    pub sampling_rate: u32,
    transform: Arc<dyn RealToComplex<f64>>,
    window: Vec<f64>,
    filters: MelFilters,
    frames: usize,
    /// Mean and deviation of training.
    normalize: Option<(f32, f32)>,
}

#[derive(Deserialize)]
#[serde(default)]
struct Fields {
    sampling_rate: u32,
    num_mel_bins: usize,
    max_length: usize,
    do_normalize: bool,
    mean: f32,
    std: f32,
}

impl Default for Fields {
    fn default() -> Self {
        Self {
            sampling_rate: 16_000,
            num_mel_bins: 128,
            max_length: 1024,
            do_normalize: true,
            mean: -4.267_739_3,
            std: 4.568_997_4,
        }
    }
}

impl LogFilterbank {
    pub(super) const CLASS: &str = "ASTFeatureExtractor";

    pub(super) fn new(settings: &Settings) -> Result<Self> {
        let fields: Fields = settings.typed()?;
        for (name, value) in [
            ("sampling_rate", fields.sampling_rate as usize),
            ("num_mel_bins", fields.num_mel_bins),
            ("max_length", fields.max_length),
        ] {
            positive(settings, name, value)?;
        }
        let highest = f64::from(fields.sampling_rate / 2);
        let angle = |n: usize| 2.0 * std::f64::consts::PI * n as f64 / (FRAME - 1) as f64;
        let bins = TRANSFORM / 2 + 1;
        Ok(Self {
            sampling_rate: fields.sampling_rate,
            transform: RealFftPlanner::new().plan_fft_forward(TRANSFORM),
            window: (0..FRAME).map(|n| 0.5 - 0.5 * angle(n).cos()).collect(),
            filters: MelFilters::in_mels(fields.num_mel_bins, bins, (LOWEST, highest), fields.sampling_rate),
            frames: fields.max_length,
            normalize: fields.do_normalize.then_some((fields.mean, fields.std)),
        })
    }

    pub(super) fn extract(&self, waveforms: &[&[f32]]) -> Result<Values> {
        let mut features = Array3::zeros((waveforms.len(), self.frames, self.filters.len()));
        for (row, waveform) in waveforms.iter().enumerate() {
            if waveform.len() < FRAME {
                let problem = format!("{} samples are too few; at least {FRAME} are needed", waveform.len());
                return Err(refused(problem, "give longer audio"));
            }
            let mut row = features.index_axis_mut(ndarray::Axis(0), row);
            let starts = (0..=waveform.len() - FRAME).step_by(HOP);
            for (mut frame, start) in row.rows_mut().into_iter().zip(starts) {
                let power = self.power(&waveform[start..start + FRAME])?;
                for (x, energy) in frame.iter_mut().zip(self.filters.apply(&power)) {
                    *x = energy.max(FLOOR).ln() as f32;
                }
            }
        }
        if let Some((mean, std)) = self.normalize {
            features.mapv_inplace(|x| (x - mean) / (std * 2.0));
        }
        Ok(Values::from([("input_values".to_owned(), features.into_dyn().into())]))
    }

    /// The power spectrum of one frame, without its mean and with high frequencies raised.
    fn power(&self, samples: &[f32]) -> Result<Vec<f64>> {
        let mean = samples.iter().map(|x| f64::from(*x)).sum::<f64>() / FRAME as f64;
        let mut frame = self.transform.make_input_vec();
        let mut before = None;
        for ((x, sample), window) in frame.iter_mut().zip(samples).zip(&self.window) {
            let sample = f64::from(*sample) - mean;
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

impl std::fmt::Debug for LogFilterbank {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LogFilterbank")
            .field("frames", &self.frames)
            .field("filters", &self.filters.len())
            .finish()
    }
}
