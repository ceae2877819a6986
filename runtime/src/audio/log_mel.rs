//! Log-mel spectrograms of chunks of a fixed length (`WhisperFeatureExtractor`).
//!
//! Reference: `WhisperFeatureExtractor`.

use ndarray::Array3;
use serde::Deserialize;

use super::extractor::{ExtractOptions, Padded, Padding, pad};
use super::mel::{MelFilters, MelNorm, MelScale};
use super::settings::{Settings, positive, right_padded, samples};
use super::stft::PowerSpectrogram;
use super::waveform::mask;
use crate::{Result, Values};

/// Powers below this count as this.
const FLOOR: f64 = 1e-10;
/// How far below the loudest a bin may be, powers of ten.
const RANGE: f32 = 8.0;
/// The highest frequency, Hz.
const HIGHEST: f64 = 8000.0;

#[derive(Clone, Debug)]
pub(super) struct LogMel {
    pub sampling_rate: u32,
    spectrogram: PowerSpectrogram,
    filters: MelFilters,
    hop: usize,
    longest: usize,
    padding_value: f32,
    attention_mask: bool,
}

#[derive(Deserialize)]
#[serde(default)]
struct Fields {
    feature_size: usize,
    sampling_rate: u32,
    hop_length: usize,
    chunk_length: usize,
    n_fft: usize,
    padding_value: f32,
    padding_side: Option<String>,
    return_attention_mask: bool,
    dither: f64,
}

impl Default for Fields {
    fn default() -> Self {
        Self {
            feature_size: 80,
            sampling_rate: 16_000,
            hop_length: 160,
            chunk_length: 30,
            n_fft: 400,
            padding_value: 0.0,
            padding_side: None,
            return_attention_mask: false,
            dither: 0.0,
        }
    }
}

impl LogMel {
    pub(super) const CLASS: &str = "WhisperFeatureExtractor";

    pub(super) fn new(settings: &Settings) -> Result<Self> {
        let fields: Fields = settings.typed()?;
        right_padded(settings, fields.padding_side.as_deref())?;
        for (name, value) in [
            ("feature_size", fields.feature_size),
            ("sampling_rate", fields.sampling_rate as usize),
            ("hop_length", fields.hop_length),
            ("chunk_length", fields.chunk_length),
            ("n_fft", fields.n_fft / 2),
        ] {
            positive(settings, name, value)?;
        }
        if fields.dither != 0.0 {
            return Err(settings.refuse("`dither` adds random noise; only 0 is supported"));
        }
        let spectrogram = PowerSpectrogram::new(fields.n_fft, fields.hop_length);
        let filters = MelFilters::new(
            fields.feature_size,
            spectrogram.bins(),
            (0.0, HIGHEST),
            fields.sampling_rate,
            MelScale::Slaney,
            MelNorm::Slaney,
        );
        Ok(Self {
            sampling_rate: fields.sampling_rate,
            spectrogram,
            filters,
            hop: fields.hop_length,
            longest: samples(settings, fields.chunk_length, fields.sampling_rate, fields.hop_length)?,
            padding_value: fields.padding_value,
            attention_mask: fields.return_attention_mask,
        })
    }

    pub(super) fn longest(&self) -> usize {
        self.longest
    }

    pub(super) fn extract(&self, waveforms: &[&[f32]], options: &ExtractOptions) -> Result<Values> {
        let padding = options.padding.unwrap_or(Padding::MaxLength);
        let max_length = options.max_length.unwrap_or(self.longest);
        let truncation = options.truncation.unwrap_or(true);
        let multiple = options.pad_to_multiple_of;
        let Padded { samples, lengths, length } =
            pad(waveforms, padding, Some(max_length), truncation, multiple, self.padding_value)?;
        // The last frame is left out: it has only padding in it.
        let frames = length / self.hop;
        let mut features = Array3::zeros((samples.len(), self.filters.len(), frames));
        for (row, waveform) in samples.iter().enumerate() {
            let mut row = features.index_axis_mut(ndarray::Axis(0), row);
            self.spectrogram.each(waveform, |frame, power| {
                if frame < frames {
                    for (mel, energy) in self.filters.apply(power).enumerate() {
                        row[[mel, frame]] = energy.max(FLOOR).log10() as f32;
                    }
                }
            })?;
            let loudest = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            row.mapv_inplace(|x| (x.max(loudest - RANGE) + 4.0) / 4.0);
        }
        let mut inputs = Values::from([("input_features".to_owned(), features.into_dyn().into())]);
        let mask = match options.attention_mask {
            // A frame counts where its first sample does.
            Some(true) => {
                let lengths: Vec<usize> = lengths.iter().map(|n| n.div_ceil(self.hop).min(frames)).collect();
                mask(&lengths, frames)
            }
            // The reference gives frames where a call asks for the mask, samples where the checkpoint does.
            None if self.attention_mask => mask(&lengths, length),
            _ => return Ok(inputs),
        };
        inputs.insert("attention_mask".to_owned(), mask.into());
        Ok(inputs)
    }
}
