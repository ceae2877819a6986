//! Raw waveforms, or normalised to zero mean and unit variance (`Wav2Vec2FeatureExtractor`).
//!
//! Reference: `Wav2Vec2FeatureExtractor`.

use ndarray::{Array2, ArrayD};
use serde::Deserialize;

use super::extractor::{ExtractOptions, Padded, Padding, pad};
use super::refused;
use super::settings::{Settings, positive, right_padded};
use crate::{Result, Value, Values};

/// Added to the variance.
const EPSILON: f64 = 1e-7;
/// The processor that pads waveforms to whole frames, and their length, samples.
const WHOLE_FRAMES: (&str, usize) = ("MoonshineStreamingProcessor", 80);

#[derive(Clone, Debug)]
pub(super) struct Waveform {
    pub sampling_rate: u32,
    padding_value: f32,
    attention_mask: bool,
    normalize: bool,
    /// What padded lengths are multiples of, samples.
    multiple: Option<usize>,
}

#[derive(Deserialize)]
#[serde(default)]
struct Fields {
    feature_size: usize,
    sampling_rate: u32,
    padding_value: f32,
    padding_side: Option<String>,
    return_attention_mask: bool,
    do_normalize: bool,
}

impl Default for Fields {
    fn default() -> Self {
        Self {
            feature_size: 1,
            sampling_rate: 16_000,
            padding_value: 0.0,
            padding_side: None,
            return_attention_mask: false,
            do_normalize: true,
        }
    }
}

impl Waveform {
    pub(super) const CLASS: &str = "Wav2Vec2FeatureExtractor";
    /// Of its inputs; its targets, log-mel spectrograms, are for training.
    pub(super) const SPEECHT5: &str = "SpeechT5FeatureExtractor";

    pub(super) fn new(settings: &Settings) -> Result<Self> {
        let fields: Fields = settings.typed()?;
        right_padded(settings, fields.padding_side.as_deref())?;
        positive(settings, "sampling_rate", fields.sampling_rate as usize)?;
        if fields.feature_size != 1 {
            let problem = format!("`feature_size` is {}; a waveform has 1", fields.feature_size);
            return Err(settings.refuse(problem));
        }
        Ok(Self {
            sampling_rate: fields.sampling_rate,
            padding_value: fields.padding_value,
            attention_mask: fields.return_attention_mask,
            normalize: fields.do_normalize,
            multiple: (settings.processor() == Some(WHOLE_FRAMES.0)).then_some(WHOLE_FRAMES.1),
        })
    }

    pub(super) fn extract(&self, waveforms: &[&[f32]], options: &ExtractOptions) -> Result<Values> {
        let multiple = options.pad_to_multiple_of.or(self.multiple);
        let usual = if self.multiple.is_some() { Padding::Longest } else { Padding::No };
        let padding = options.padding.unwrap_or(usual);
        let truncation = options.truncation.unwrap_or(false);
        let Padded { mut samples, lengths, length } =
            pad(waveforms, padding, options.max_length, truncation, multiple, self.padding_value)?;
        let masked = options.attention_mask.unwrap_or(self.attention_mask);
        if self.normalize {
            for (waveform, &own) in samples.iter_mut().zip(&lengths) {
                // Without a mask the padding counts as audio, as in the reference.
                let own = if masked { own } else { length };
                normalize(&mut waveform[..own]);
            }
        }
        let rows = waveforms.len();
        let shaped = |e: ndarray::ShapeError| refused(e.to_string(), "report this");
        let values = Array2::from_shape_vec((rows, length), samples.concat()).map_err(shaped)?;
        let mut inputs = Values::from([("input_values".to_owned(), Value::from(values.into_dyn()))]);
        if masked {
            inputs.insert("attention_mask".to_owned(), mask(&lengths, length).into());
        }
        Ok(inputs)
    }
}

/// 1 for what was there and 0 for padding: `[batch, length]`.
pub(super) fn mask(lengths: &[usize], length: usize) -> ArrayD<i64> {
    Array2::from_shape_fn((lengths.len(), length), |(row, at)| i64::from(at < lengths[row])).into_dyn()
}

/// Zero mean and unit variance.
fn normalize(samples: &mut [f32]) {
    let count = samples.len() as f64;
    let mean = samples.iter().map(|x| f64::from(*x)).sum::<f64>() / count;
    let variance = samples.iter().map(|x| (f64::from(*x) - mean).powi(2)).sum::<f64>() / count;
    let scale = 1.0 / (variance + EPSILON).sqrt();
    samples.iter_mut().for_each(|x| *x = ((f64::from(*x) - mean) * scale) as f32);
}
