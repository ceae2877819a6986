//! Kaldi log-mel filter banks normalised by utterance (`Speech2TextFeatureExtractor`, `SeamlessM4TFeatureExtractor`).
//!
//! Reference: both without `torchaudio`.

use ndarray::{Array2, Array3, ArrayViewMut1, Axis, s};
use serde::Deserialize;

use super::kaldi::{KaldiFilterbank, Window};
use super::refused;
use super::settings::{Settings, positive, right_padded};
use super::waveform::mask;
use crate::{Result, Values};

/// Samples are whole numbers of 16 bits.
const SCALE: f64 = 32_768.0;

#[derive(Clone, Debug)]
pub(super) struct SpeechFilterbank {
    pub sampling_rate: u32,
    filterbank: KaldiFilterbank,
    padding_value: f32,
    kind: Kind,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    /// Frames whose mean, or standard deviation too, is that of no utterance.
    Speech2Text { means: bool, variances: bool },
    /// The same by an unbiased variance, so many frames side by side.
    Seamless { stride: usize },
}

#[derive(Deserialize)]
#[serde(default)]
struct Fields {
    sampling_rate: u32,
    num_mel_bins: usize,
    padding_value: f32,
    padding_side: Option<String>,
    dither: f64,
    do_ceptral_normalize: bool,
    normalize_means: bool,
    normalize_vars: bool,
    stride: usize,
}

impl Default for Fields {
    fn default() -> Self {
        Self {
            sampling_rate: 16_000,
            num_mel_bins: 80,
            padding_value: 0.0,
            padding_side: None,
            dither: 0.0,
            do_ceptral_normalize: true,
            normalize_means: true,
            normalize_vars: true,
            stride: 2,
        }
    }
}

impl SpeechFilterbank {
    pub(super) const SPEECH_TO_TEXT: &str = "Speech2TextFeatureExtractor";
    pub(super) const SEAMLESS: &str = "SeamlessM4TFeatureExtractor";

    pub(super) fn new(settings: &Settings, class: &str) -> Result<Self> {
        let fields: Fields = settings.typed()?;
        right_padded(settings, fields.padding_side.as_deref())?;
        for (name, value) in [
            ("sampling_rate", fields.sampling_rate as usize),
            ("num_mel_bins", fields.num_mel_bins),
            ("stride", fields.stride),
        ] {
            positive(settings, name, value)?;
        }
        if fields.dither != 0.0 {
            return Err(settings.refuse("`dither` adds random noise; only 0 is supported"));
        }
        let normalised = fields.do_ceptral_normalize;
        let kind = match class {
            Self::SEAMLESS => Kind::Seamless { stride: fields.stride },
            _ => Kind::Speech2Text {
                means: normalised && fields.normalize_means,
                variances: normalised && fields.normalize_vars,
            },
        };
        let filterbank =
            KaldiFilterbank::new(fields.num_mel_bins, fields.sampling_rate, Window::Povey, SCALE);
        Ok(Self {
            sampling_rate: fields.sampling_rate,
            filterbank,
            padding_value: fields.padding_value,
            kind,
        })
    }

    /// `input_features` `[batch, frames, mels]` and `attention_mask` `[batch, frames]`, padded to the longest.
    pub(super) fn extract(&self, waveforms: &[&[f32]]) -> Result<Values> {
        let rows: Vec<Array2<f32>> =
            waveforms.iter().map(|waveform| self.normalized(waveform)).collect::<Result<_>>()?;
        let longest = rows.iter().map(Array2::nrows).max().unwrap_or(0);
        let stride = match self.kind {
            Kind::Speech2Text { .. } => 1,
            Kind::Seamless { stride } => stride,
        };
        // The reference pads to a multiple of two, whatever the stride, and drops what is left.
        let frames = if stride == 1 { longest } else { longest.next_multiple_of(2) / stride * stride };
        let mels = self.filterbank.mels();
        let mut features = Array3::from_elem((rows.len(), frames, mels), self.padding_value);
        for (mut padded, own) in features.outer_iter_mut().zip(&rows) {
            let count = own.nrows().min(frames);
            padded.slice_mut(s![..count, ..]).assign(&own.slice(s![..count, ..]));
        }
        let shape = (rows.len(), frames / stride, mels * stride);
        let features =
            features.into_shape_with_order(shape).map_err(|e| refused(e.to_string(), "report this"))?;
        // Of frames side by side, the second says whether they are padding.
        let seen = |own: &Array2<f32>| match (stride, own.nrows()) {
            (1, frames) => frames,
            (_, 0 | 1) => 0,
            (stride, frames) => (frames - 2) / stride + 1,
        };
        let lengths: Vec<usize> = rows.iter().map(seen).collect();
        let mask = mask(&lengths, frames / stride);
        Ok(Values::from([
            ("input_features".to_owned(), features.into_dyn().into()),
            ("attention_mask".to_owned(), mask.into()),
        ]))
    }

    /// The frames of one utterance, each mel bin without its mean and at a deviation of one.
    fn normalized(&self, waveform: &[f32]) -> Result<Array2<f32>> {
        let mut frames = self.filterbank.features(waveform)?;
        for mut bin in frames.axis_iter_mut(Axis(1)) {
            let (mean, squares) = moments(&bin);
            let count = bin.len() as f64;
            match self.kind {
                Kind::Speech2Text { means, variances } => {
                    let mean = if means { mean } else { 0.0 };
                    let deviation = if variances { (squares / count).sqrt() } else { 1.0 };
                    bin.mapv_inplace(|x| ((f64::from(x) - mean) / deviation) as f32);
                }
                Kind::Seamless { .. } => {
                    let deviation = (squares / (count - 1.0) + 1e-7).sqrt();
                    bin.mapv_inplace(|x| ((f64::from(x) - mean) / deviation) as f32);
                }
            }
        }
        if frames.iter().any(|x| !x.is_finite()) {
            return Err(refused(
                "has frames that are all alike",
                "give a longer recording that is not silent",
            ));
        }
        Ok(frames)
    }
}

/// The mean, and the sum of squared deviations from it.
fn moments(bin: &ArrayViewMut1<'_, f32>) -> (f64, f64) {
    let mean = bin.iter().map(|x| f64::from(*x)).sum::<f64>() / bin.len() as f64;
    (mean, bin.iter().map(|x| (f64::from(*x) - mean).powi(2)).sum())
}
