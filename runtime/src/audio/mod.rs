//! Audio to input features: decoding, resampling, and the feature extractors of checkpoints.
//!
//! A [`FeatureExtractor`] reads `preprocessor_config.json` (or the `feature_extractor` of
//! `processor_config.json`) and gives what the reference's extractor of that checkpoint gives.
//!
//! ```no_run
//! # fn main() -> weft::Result<()> {
//! use weft::audio::{Audio, ExtractOptions, FeatureExtractor};
//!
//! let checkpoint = weft::hub::Checkpoint::open("org/checkpoint")?;
//! let extractor = FeatureExtractor::read(&checkpoint)?;
//! let speech = Audio::open("speech.flac")?.resample(extractor.sampling_rate())?;
//! let inputs = extractor.extract(&[&speech.samples], &ExtractOptions::default())?;
//! # Ok(())
//! # }
//! ```

mod conformer_log_mel;
mod decode;
mod extractor;
mod granite_log_mel;
mod kaldi;
mod log_filterbank;
mod log_mel;
mod mel;
mod mel_fusion;
mod quiet_chunks;
mod resample;
mod settings;
mod speech_filterbank;
mod stft;
#[cfg(test)]
mod tests;
mod wav;
mod waveform;

use std::borrow::Cow;
use std::path::Path;

pub use extractor::{ExtractOptions, FeatureExtractor, Padding};
pub use mel::{MelFilters, MelNorm, MelScale};

use crate::{Error, Result};

/// Mono audio.
#[derive(Clone, Debug, PartialEq)]
pub struct Audio {
    /// The samples, full scale being -1 to 1.
    pub samples: Vec<f32>,
    /// Samples a second, Hz.
    pub sampling_rate: u32,
}

impl Audio {
    /// Reads a WAV, FLAC, MP3 or OGG Vorbis file; several channels become their mean.
    ///
    /// # Errors
    /// When the file cannot be read, is none of these formats, is damaged, holds no samples, or many more than its
    /// bytes could be.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let bytes = crate::files::read(path).map_err(|e| Error::io(path, e))?;
        let ending = path.extension().and_then(|ending| ending.to_str());
        decode::decode(bytes, ending, &path.display().to_string())
    }

    /// Decodes the bytes of a WAV, FLAC, MP3 or OGG Vorbis file, as [`Audio::open`] does.
    ///
    /// # Errors
    /// As [`Audio::open`].
    pub fn decode(bytes: impl Into<Vec<u8>>) -> Result<Self> {
        decode::decode(bytes.into(), None, "these bytes")
    }

    /// The same audio at another sampling rate; unchanged where it has that rate already.
    ///
    /// Windowed-sinc interpolation as in `torchaudio.functional.resample` with its defaults, which the reference's
    /// pipelines use.
    ///
    /// # Errors
    /// When a rate is above 2 MHz, or it would become more than eight times as many samples, and more than 16 million.
    pub fn resample(self, sampling_rate: u32) -> Result<Self> {
        let samples = resample::resample(self.samples.into(), self.sampling_rate, sampling_rate)?;
        Ok(Self { samples: samples.into_owned(), sampling_rate })
    }

    /// Its samples at a sampling rate; not copied where it has that rate already.
    ///
    /// # Errors
    /// As [`Audio::resample`].
    pub(crate) fn samples_at(&self, sampling_rate: u32) -> Result<Cow<'_, [f32]>> {
        resample::resample(self.samples.as_slice().into(), self.sampling_rate, sampling_rate)
    }

    /// Writes a mono WAV file of 32-bit floating-point samples, which [`Audio::open`] reads as they are.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        std::fs::write(path, wav::encode(self)).map_err(|e| Error::io(path, e))
    }

    /// How long it lasts, seconds.
    pub fn seconds(&self) -> f64 {
        self.samples.len() as f64 / f64::from(self.sampling_rate.max(1))
    }
}

/// The error of audio that a model cannot be given.
fn refused(problem: impl Into<String>, help: impl Into<String>) -> Error {
    Error::input("audio", problem, help)
}
