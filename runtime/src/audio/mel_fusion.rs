//! Mel spectrograms in decibels, fused from several views of long audio (`ClapFeatureExtractor`).
//!
//! Reference: `ClapFeatureExtractor`. Where it draws a place at random, the middle one is taken here; and where it
//! draws the audio that counts as longer, the first.

use ndarray::{Array2, Array3, Array4, Axis, s};
use serde::Deserialize;

use super::extractor::ExtractOptions;
use super::mel::{MelFilters, MelNorm, MelScale};
use super::refused;
use super::settings::{Settings, positive, samples};
use super::stft::PowerSpectrogram;
use crate::{Result, Value, Values};

/// Powers below this count as this: -100 dB.
const FLOOR: f64 = 1e-10;

#[derive(Clone, Debug)]
pub(super) struct MelFusion {
    pub sampling_rate: u32,
    spectrogram: PowerSpectrogram,
    filters: MelFilters,
    hop: usize,
    longest: usize,
    truncation: Truncation,
    padding: PaddingMode,
}

/// Truncation of long audio (`truncation`: `fusion`, `rand_trunc`).
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Truncation {
    /// Four views: the whole, shrunk, and a piece of each third.
    Fusion,
    /// One piece.
    RandTrunc,
}

/// Padding of short audio (`padding`: `repeatpad`, `repeat`, `pad`).
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum PaddingMode {
    /// Repeated as often as it fits, then silence.
    Repeatpad,
    /// Repeated to the end.
    Repeat,
    /// Silence.
    Pad,
}

#[derive(Deserialize)]
#[serde(default)]
struct Fields {
    feature_size: usize,
    sampling_rate: u32,
    hop_length: usize,
    max_length_s: usize,
    fft_window_size: usize,
    frequency_min: f64,
    frequency_max: f64,
    truncation: Truncation,
    padding: PaddingMode,
}

impl Default for Fields {
    fn default() -> Self {
        Self {
            feature_size: 64,
            sampling_rate: 48_000,
            hop_length: 480,
            max_length_s: 10,
            fft_window_size: 1024,
            frequency_min: 0.0,
            frequency_max: 14_000.0,
            truncation: Truncation::Fusion,
            padding: PaddingMode::Repeatpad,
        }
    }
}

impl MelFusion {
    pub(super) const CLASS: &str = "ClapFeatureExtractor";

    pub(super) fn new(settings: &Settings) -> Result<Self> {
        let fields: Fields = settings.typed()?;
        for (name, value) in [
            ("feature_size", fields.feature_size),
            ("sampling_rate", fields.sampling_rate as usize),
            ("hop_length", fields.hop_length),
            ("max_length_s", fields.max_length_s),
            ("fft_window_size", fields.fft_window_size / 2),
        ] {
            positive(settings, name, value)?;
        }
        if fields.frequency_min >= fields.frequency_max {
            return Err(settings.refuse("`frequency_min` is not below `frequency_max`"));
        }
        let spectrogram = PowerSpectrogram::new(fields.fft_window_size, fields.hop_length);
        let (scale, norm) = match fields.truncation {
            Truncation::Fusion => (MelScale::Htk, MelNorm::Peak),
            Truncation::RandTrunc => (MelScale::Slaney, MelNorm::Slaney),
        };
        let range = (fields.frequency_min, fields.frequency_max);
        let bins = spectrogram.bins();
        Ok(Self {
            sampling_rate: fields.sampling_rate,
            filters: MelFilters::new(fields.feature_size, bins, range, fields.sampling_rate, scale, norm),
            spectrogram,
            hop: fields.hop_length,
            longest: samples(settings, fields.max_length_s, fields.sampling_rate, fields.hop_length)?,
            truncation: fields.truncation,
            padding: fields.padding,
        })
    }

    pub(super) fn longest(&self) -> usize {
        self.longest
    }

    pub(super) fn extract(&self, waveforms: &[&[f32]], options: &ExtractOptions) -> Result<Values> {
        let longest = options.max_length.unwrap_or(self.longest);
        let views: Vec<(Array3<f32>, bool)> =
            waveforms.iter().map(|waveform| self.views(waveform, longest)).collect::<Result<_>>()?;
        let (count, frames, mels) = views[0].0.dim();
        let mut features = Array4::zeros((views.len(), count, frames, mels));
        for (row, (view, _)) in views.iter().enumerate() {
            features.index_axis_mut(Axis(0), row).assign(view);
        }
        let mut longer: Vec<bool> = views.iter().map(|(_, longer)| *longer).collect();
        if self.truncation == Truncation::Fusion && !longer.contains(&true) {
            longer[0] = true;
        }
        let shaped = |e: ndarray::ShapeError| refused(e.to_string(), "report this");
        let longer = Array2::from_shape_vec((longer.len(), 1), longer).map_err(shaped)?;
        Ok(Values::from([
            ("input_features".to_owned(), features.into_dyn().into()),
            ("is_longer".to_owned(), Value::Bool(longer.into_dyn())),
        ]))
    }

    /// The views of one audio clip, `[views, frames, mels]`, and whether it is longer than `longest` samples.
    fn views(&self, waveform: &[f32], longest: usize) -> Result<(Array3<f32>, bool)> {
        let fusion = self.truncation == Truncation::Fusion;
        if waveform.len() <= longest {
            let mel = self.mel(&self.filled(waveform, longest))?;
            return Ok((repeated(&mel, if fusion { 4 } else { 1 })?, false));
        }
        if !fusion {
            let start = (waveform.len() - longest) / 2;
            return Ok((repeated(&self.mel(&waveform[start..start + longest])?, 1)?, true));
        }
        let mel = self.mel(waveform)?;
        let (total, frames) = (mel.nrows(), longest / self.hop + 1);
        if total == frames {
            return Ok((repeated(&mel, 4)?, false));
        }
        let mut views = Array3::zeros((4, frames, mel.ncols()));
        views.index_axis_mut(Axis(0), 0).assign(&shrunk(&mel, frames));
        for (view, start) in middles(total - frames + 1).into_iter().enumerate() {
            views.index_axis_mut(Axis(0), view + 1).assign(&mel.slice(s![start..start + frames, ..]));
        }
        Ok((views, true))
    }

    /// Short audio padded to `longest` samples.
    fn filled(&self, waveform: &[f32], longest: usize) -> Vec<f32> {
        let times = match self.padding {
            PaddingMode::Repeatpad => longest / waveform.len(),
            PaddingMode::Repeat => longest / waveform.len() + 1,
            PaddingMode::Pad => 1,
        };
        let mut filled = waveform.repeat(times);
        filled.resize(longest, 0.0);
        filled
    }

    /// The mel spectrum in decibels, `[frames, mels]`.
    fn mel(&self, waveform: &[f32]) -> Result<Array2<f32>> {
        let mut mel = Array2::zeros((waveform.len() / self.hop + 1, self.filters.len()));
        self.spectrogram.each(waveform, |frame, power| {
            for (x, energy) in mel.row_mut(frame).iter_mut().zip(self.filters.apply(power)) {
                *x = (10.0 * energy.max(FLOOR).log10()) as f32;
            }
        })?;
        Ok(mel)
    }
}

fn repeated(mel: &Array2<f32>, times: usize) -> Result<Array3<f32>> {
    let view = mel.view().insert_axis(Axis(0));
    let all = view.broadcast((times, mel.nrows(), mel.ncols()));
    all.map(|all| all.to_owned()).ok_or_else(|| refused("the views have no common shape", "report this"))
}

/// The middles of the first, second and last third of `0..places`; 0 for a third that is empty.
fn middles(places: usize) -> [usize; 3] {
    let mut start = 0;
    [0, 1, 2].map(|third| {
        let length = places / 3 + usize::from(third < places % 3);
        let middle = if length == 0 { 0 } else { start + length / 2 };
        start += length;
        middle
    })
}

/// Fewer frames, by linear interpolation between their centres.
fn shrunk(mel: &Array2<f32>, frames: usize) -> Array2<f32> {
    let last = mel.nrows() - 1;
    let scale = mel.nrows() as f32 / frames as f32;
    let mut shrunk = Array2::zeros((frames, mel.ncols()));
    for (frame, mut row) in shrunk.rows_mut().into_iter().enumerate() {
        let at = (scale * (frame as f32 + 0.5) - 0.5).max(0.0);
        let before = (at as usize).min(last);
        let part = at - before as f32;
        let after = (before + 1).min(last);
        for (mel_index, x) in row.iter_mut().enumerate() {
            *x = mel[[before, mel_index]] * (1.0 - part) + mel[[after, mel_index]] * part;
        }
    }
    shrunk
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn thirds_have_middles() {
        assert_eq!(middles(9), [1, 4, 7]);
        assert_eq!(middles(2), [0, 1, 0]);
        assert_eq!(middles(1), [0, 0, 0]);
    }

    #[test]
    fn shrinking_to_the_same_length_changes_nothing() {
        let mel = Array2::from_shape_fn((5, 2), |(i, j)| (i * 3 + j) as f32);
        assert_eq!(shrunk(&mel, 5), mel);
    }
}
