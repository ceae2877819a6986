//! Log-mel spectrograms of windows shorter than their transform (`ParakeetFeatureExtractor`, `CohereAsrFeatureExtractor`,
//! `LasrFeatureExtractor`).

use std::sync::Arc;

use ndarray::{Array2, Array3, Axis, s};
use realfft::{RealFftPlanner, RealToComplex};
use serde::Deserialize;

use super::mel::{MelFilters, MelNorm, MelScale};
use super::quiet_chunks::QuietChunks;
use super::refused;
use super::settings::{Settings, positive, right_padded};
use super::waveform::mask;
use crate::random::Generator;
use crate::{Result, Values};

/// Added to Parakeet's energies, and to its deviations.
const LOG_ZERO_GUARD: f64 = 1.0 / 16_777_216.0;
const EPSILON: f64 = 1e-5;
/// LASR's energies below this count as this, and where its filters begin and end, Hz.
const FLOOR: f64 = 1e-5;
const LASR_RANGE: (f64, f64) = (125.0, 7500.0);

#[derive(Clone)]
pub(super) struct ConformerLogMel {
    pub sampling_rate: u32,
    transform: Arc<dyn RealToComplex<f64>>,
    window: Vec<f64>,
    filters: MelFilters,
    hop: usize,
    n_fft: usize,
    kind: Kind,
    /// How long waveforms are cut; of Cohere's alone.
    pub chunks: Option<QuietChunks>,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    /// Centred frames of a signal with its high frequencies raised, normalised by utterance.
    Parakeet { preemphasis: f64, dither: f32 },
    /// The frames that lie in a signal.
    Lasr,
}

#[derive(Deserialize)]
#[serde(default)]
struct Fields {
    feature_size: Option<usize>,
    sampling_rate: u32,
    hop_length: usize,
    n_fft: usize,
    win_length: usize,
    preemphasis: Option<f64>,
    dither: f32,
    padding_value: f32,
    padding_side: Option<String>,
}

impl Default for Fields {
    fn default() -> Self {
        Self {
            feature_size: None,
            sampling_rate: 16_000,
            hop_length: 160,
            n_fft: 512,
            win_length: 400,
            preemphasis: Some(0.97),
            dither: 1e-5,
            padding_value: 0.0,
            padding_side: None,
        }
    }
}

impl ConformerLogMel {
    pub(super) const PARAKEET: &str = "ParakeetFeatureExtractor";
    pub(super) const COHERE: &str = "CohereAsrFeatureExtractor";
    pub(super) const LASR: &str = "LasrFeatureExtractor";

    pub(super) fn new(settings: &Settings, class: &str) -> Result<Self> {
        let fields: Fields = settings.typed()?;
        right_padded(settings, fields.padding_side.as_deref())?;
        let (parakeet, dithered) = (class != Self::LASR, class == Self::COHERE);
        let mels = fields.feature_size.unwrap_or(if class == Self::PARAKEET { 80 } else { 128 });
        for (name, value) in [
            ("feature_size", mels),
            ("sampling_rate", fields.sampling_rate as usize),
            ("hop_length", fields.hop_length),
            ("n_fft", fields.n_fft / 2),
            ("win_length", fields.win_length / 2),
        ] {
            positive(settings, name, value)?;
        }
        if fields.win_length > fields.n_fft || fields.padding_value != 0.0 {
            return Err(settings.refuse("`win_length` is above `n_fft`, or `padding_value` is not 0"));
        }
        let (bins, rate) = (fields.n_fft / 2 + 1, fields.sampling_rate);
        let nyquist = f64::from(rate) / 2.0;
        let angle = |n: usize| 2.0 * std::f64::consts::PI * n as f64 / (fields.win_length - 1) as f64;
        Ok(Self {
            sampling_rate: rate,
            transform: RealFftPlanner::new().plan_fft_forward(fields.n_fft),
            window: (0..fields.win_length).map(|n| 0.5 - 0.5 * angle(n).cos()).collect(),
            filters: match parakeet {
                true => MelFilters::new(mels, bins, (0.0, nyquist), rate, MelScale::Slaney, MelNorm::Slaney),
                false => MelFilters::in_mels(mels, bins, LASR_RANGE, rate),
            },
            hop: fields.hop_length,
            n_fft: fields.n_fft,
            kind: match parakeet {
                true => Kind::Parakeet {
                    preemphasis: fields.preemphasis.unwrap_or(0.0),
                    dither: if dithered { fields.dither.max(0.0) } else { 0.0 },
                },
                false => Kind::Lasr,
            },
            chunks: dithered.then(|| QuietChunks::new(settings)).transpose()?,
        })
    }

    /// `input_features` `[batch, frames, mels]` and `attention_mask` `[batch, frames]`, padded to the longest.
    pub(super) fn extract(&self, waveforms: &[&[f32]]) -> Result<Values> {
        let longest = waveforms.iter().map(|waveform| waveform.len()).max().unwrap_or(0);
        let frames = match self.kind {
            Kind::Parakeet { .. } => longest / self.hop + 1,
            Kind::Lasr => self.frames_within(longest),
        };
        let mut features = Array3::zeros((waveforms.len(), frames, self.filters.len()));
        let mut lengths = vec![];
        for (mut row, waveform) in features.outer_iter_mut().zip(waveforms) {
            let own = match self.kind {
                Kind::Parakeet { preemphasis, dither } if dither > 0.0 => {
                    self.parakeet(&dithered(waveform, dither), preemphasis)?
                }
                Kind::Parakeet { preemphasis, .. } => self.parakeet(waveform, preemphasis)?,
                Kind::Lasr => self.lasr(waveform, longest, frames)?,
            };
            row.slice_mut(s![..own.nrows(), ..]).assign(&own);
            lengths.push(match self.kind {
                Kind::Parakeet { .. } => waveform.len() / self.hop,
                Kind::Lasr => self.frames_within(waveform.len()),
            });
        }
        Ok(Values::from([
            ("input_features".to_owned(), features.into_dyn().into()),
            ("attention_mask".to_owned(), mask(&lengths, frames).into()),
        ]))
    }

    fn frames_within(&self, samples: usize) -> usize {
        if samples < self.window.len() { 0 } else { (samples - self.window.len()) / self.hop + 1 }
    }

    /// The frames of one utterance that are no padding, each bin without its mean and at a deviation of one.
    fn parakeet(&self, waveform: &[f32], preemphasis: f64) -> Result<Array2<f32>> {
        let count = waveform.len() / self.hop;
        if count < 2 {
            let problem =
                format!("{} samples are too few; at least {} are needed", waveform.len(), 2 * self.hop);
            return Err(refused(problem, "give longer audio"));
        }
        let sample = |at: usize| f64::from(waveform[at]);
        let raised = |at: usize| if at == 0 { sample(0) } else { sample(at) - preemphasis * sample(at - 1) };
        // A frame's window stands in the middle of its transform, and that around the frame's first sample.
        let before = self.n_fft / 2 - (self.n_fft - self.window.len()) / 2;
        let mut frames = Array2::zeros((count, self.filters.len()));
        for (index, mut frame) in frames.outer_iter_mut().enumerate() {
            let at = |n: usize| (index * self.hop + n).checked_sub(before).filter(|at| *at < waveform.len());
            let power = self.power(|n| at(n).map_or(0.0, raised))?;
            for (x, energy) in frame.iter_mut().zip(self.filters.apply(&power)) {
                *x = (energy + LOG_ZERO_GUARD).ln() as f32;
            }
        }
        for mut bin in frames.axis_iter_mut(Axis(1)) {
            let mean = bin.iter().map(|x| f64::from(*x)).sum::<f64>() / count as f64;
            let squares: f64 = bin.iter().map(|x| (f64::from(*x) - mean).powi(2)).sum();
            let deviation = (squares / (count - 1) as f64).sqrt() + EPSILON;
            bin.mapv_inplace(|x| ((f64::from(x) - mean) / deviation) as f32);
        }
        Ok(frames)
    }

    /// The frames of one utterance and of the silence behind it.
    fn lasr(&self, waveform: &[f32], longest: usize, count: usize) -> Result<Array2<f32>> {
        if count == 0 {
            let problem = format!("{longest} samples are too few; at least {} are needed", self.window.len());
            return Err(refused(problem, "give longer audio"));
        }
        let mut frames = Array2::zeros((count, self.filters.len()));
        for (index, mut frame) in frames.outer_iter_mut().enumerate() {
            let power = self.power(|n| waveform.get(index * self.hop + n).map_or(0.0, |x| f64::from(*x)))?;
            for (x, energy) in frame.iter_mut().zip(self.filters.apply(&power)) {
                *x = energy.max(FLOOR).ln() as f32;
            }
        }
        Ok(frames)
    }

    /// The power spectrum of the samples that a window shows.
    fn power(&self, sample: impl Fn(usize) -> f64) -> Result<Vec<f64>> {
        let mut frame = self.transform.make_input_vec();
        for (n, (x, window)) in frame.iter_mut().zip(&self.window).enumerate() {
            *x = sample(n) * window;
        }
        let mut spectrum = self.transform.make_output_vec();
        self.transform
            .process(&mut frame, &mut spectrum)
            .map_err(|e| refused(format!("the transform failed: {e}"), "report this"))?;
        Ok(spectrum.iter().map(realfft::num_complex::Complex::norm_sqr).collect())
    }
}

/// Samples with the noise that the reference adds, whose seed is their number (`_apply_dither`).
fn dithered(waveform: &[f32], dither: f32) -> Vec<f32> {
    let noise = Generator::new(waveform.len() as u64).randn(waveform.len());
    waveform.iter().zip(noise).map(|(x, noise)| x + dither * noise).collect()
}

impl std::fmt::Debug for ConformerLogMel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConformerLogMel")
            .field("kind", &self.kind)
            .field("mels", &self.filters.len())
            .finish()
    }
}
