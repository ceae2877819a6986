//! Log-mel spectrograms with their differences, two frames side by side (`GraniteSpeech5FeatureExtractor`).
//!
//! Reference: `GraniteSpeech5FeatureExtractor`, over `torchaudio`'s `MelSpectrogram` and `compute_deltas`.

use ndarray::{Array2, Array3, s};
use serde::Deserialize;

use super::mel::{MelFilters, MelNorm, MelScale};
use super::settings::{Settings, positive, right_padded};
use super::stft::PowerSpectrogram;
use super::waveform::mask;
use crate::{Result, Values};

/// Energies below this count as this.
const FLOOR: f64 = 1e-10;
/// Frames side by side.
const STACKED: usize = 2;

#[derive(Clone, Debug)]
pub(super) struct GraniteLogMel {
    pub sampling_rate: u32,
    spectrogram: PowerSpectrogram,
    filters: MelFilters,
    hop: usize,
    /// How many frames before and after one its difference is of.
    reach: usize,
    /// How far below the loudest a bin may be, powers of ten.
    range: f64,
}

#[derive(Deserialize)]
#[serde(default)]
struct Fields {
    num_mel_bins: usize,
    sampling_rate: u32,
    n_fft: usize,
    win_length: usize,
    hop_length: usize,
    delta_win_length: usize,
    logmel_floor_db: f64,
    padding_value: f32,
    padding_side: Option<String>,
}

impl Default for Fields {
    fn default() -> Self {
        Self {
            num_mel_bins: 80,
            sampling_rate: 16_000,
            n_fft: 512,
            win_length: 400,
            hop_length: 160,
            delta_win_length: 3,
            logmel_floor_db: 8.0,
            padding_value: 0.0,
            padding_side: None,
        }
    }
}

impl GraniteLogMel {
    pub(super) const CLASS: &str = "GraniteSpeech5FeatureExtractor";

    pub(super) fn new(settings: &Settings) -> Result<Self> {
        let fields: Fields = settings.typed()?;
        right_padded(settings, fields.padding_side.as_deref())?;
        for (name, value) in [
            ("num_mel_bins", fields.num_mel_bins),
            ("sampling_rate", fields.sampling_rate as usize),
            ("hop_length", fields.hop_length),
            ("n_fft", fields.n_fft / 2),
            ("win_length", fields.win_length / 2),
            ("delta_win_length", fields.delta_win_length.saturating_sub(1) / 2),
        ] {
            positive(settings, name, value)?;
        }
        if fields.win_length > fields.n_fft || fields.padding_value != 0.0 {
            return Err(settings.refuse("`win_length` is above `n_fft`, or `padding_value` is not 0"));
        }
        let spectrogram = PowerSpectrogram::windowed(fields.n_fft, fields.win_length, fields.hop_length);
        let nyquist = f64::from(fields.sampling_rate) / 2.0;
        let (rate, bins) = (fields.sampling_rate, spectrogram.bins());
        Ok(Self {
            sampling_rate: rate,
            filters: MelFilters::new(
                fields.num_mel_bins,
                bins,
                (0.0, nyquist),
                rate,
                MelScale::Htk,
                MelNorm::Peak,
            ),
            spectrogram,
            hop: fields.hop_length,
            reach: (fields.delta_win_length - 1) / 2,
            range: fields.logmel_floor_db,
        })
    }

    /// `input_features` `[batch, frames, 4 · mels]` and `attention_mask` `[batch, frames]`, padded to the longest.
    pub(super) fn extract(&self, waveforms: &[&[f32]]) -> Result<Values> {
        let longest = waveforms.iter().map(|waveform| waveform.len()).max().unwrap_or(0);
        let stacked = (longest / self.hop).div_ceil(STACKED);
        let width = 2 * self.filters.len();
        let mut features = Array3::zeros((waveforms.len(), stacked, STACKED * width));
        let mut lengths = vec![];
        for (mut row, waveform) in features.outer_iter_mut().zip(waveforms) {
            let frames = self.frames(waveform, longest, STACKED * stacked)?;
            let deltas = self.deltas(&frames);
            for ((index, bin), value) in frames.indexed_iter() {
                let place = index % STACKED * width + bin;
                row[[index / STACKED, place]] = *value as f32;
                row[[index / STACKED, place + self.filters.len()]] = deltas[[index, bin]] as f32;
            }
            lengths.push((waveform.len() / self.hop).div_ceil(STACKED));
        }
        Ok(Values::from([
            ("input_features".to_owned(), features.into_dyn().into()),
            ("attention_mask".to_owned(), mask(&lengths, stacked).into()),
        ]))
    }

    /// The log-mel spectrogram of one waveform and the silence behind it, `[frames, mels]`.
    fn frames(&self, waveform: &[f32], longest: usize, count: usize) -> Result<Array2<f64>> {
        let mut padded = waveform.to_vec();
        padded.resize(longest.max(count.saturating_sub(1) * self.hop + 1), 0.0);
        let mut frames = Array2::zeros((count, self.filters.len()));
        self.spectrogram.each(&padded, |index, power| {
            if index < count {
                let energies = self.filters.apply(power).map(|energy| energy.max(FLOOR).log10());
                frames.slice_mut(s![index, ..]).iter_mut().zip(energies).for_each(|(x, energy)| *x = energy);
            }
        })?;
        let most = frames.iter().copied().fold(f64::MIN, f64::max) - self.range;
        frames.mapv_inplace(|x: f64| x.max(most) / 4.0 + 1.0);
        Ok(frames)
    }

    /// The differences of frames in time, those at the ends repeated (`compute_deltas`).
    fn deltas(&self, frames: &Array2<f64>) -> Array2<f64> {
        let (reach, last) = (self.reach, frames.nrows().saturating_sub(1));
        let squares = (reach * (reach + 1) * (2 * reach + 1)) as f64 / 3.0;
        Array2::from_shape_fn(frames.raw_dim(), |(index, bin)| {
            let at = |index: usize| frames[[index.min(last), bin]];
            let far = |n: usize| n as f64 * (at(index + n) - at(index.saturating_sub(n)));
            (1..=reach).map(far).sum::<f64>() / squares
        })
    }
}
