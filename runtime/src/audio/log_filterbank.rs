//! Kaldi log-mel filter banks (`ASTFeatureExtractor`), padded or truncated to `max_length` frames.
//!
//! Reference: `ASTFeatureExtractor` without `torchaudio`.

use ndarray::{Array3, Axis, s};
use serde::Deserialize;

use super::kaldi::{KaldiFilterbank, Window};
use super::settings::{Settings, positive};
use crate::{Result, Values};

#[derive(Clone, Debug)]
pub(super) struct LogFilterbank {
    pub sampling_rate: u32,
    filterbank: KaldiFilterbank,
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
        Ok(Self {
            sampling_rate: fields.sampling_rate,
            filterbank: KaldiFilterbank::new(fields.num_mel_bins, fields.sampling_rate, Window::Hann, 1.0),
            frames: fields.max_length,
            normalize: fields.do_normalize.then_some((fields.mean, fields.std)),
        })
    }

    pub(super) fn extract(&self, waveforms: &[&[f32]]) -> Result<Values> {
        let mut features = Array3::zeros((waveforms.len(), self.frames, self.filterbank.mels()));
        for (row, waveform) in waveforms.iter().enumerate() {
            let own = self.filterbank.features(waveform)?;
            let frames = own.nrows().min(self.frames);
            let mut row = features.index_axis_mut(Axis(0), row);
            row.slice_mut(s![..frames, ..]).assign(&own.slice(s![..frames, ..]));
        }
        if let Some((mean, std)) = self.normalize {
            features.mapv_inplace(|x| (x - mean) / (std * 2.0));
        }
        Ok(Values::from([("input_values".to_owned(), features.into_dyn().into())]))
    }
}
