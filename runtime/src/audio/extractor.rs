//! The feature extractor of a checkpoint (`AutoFeatureExtractor`).

use std::ops::Range;

use super::conformer_log_mel::ConformerLogMel;
use super::granite_log_mel::GraniteLogMel;
use super::log_filterbank::LogFilterbank;
use super::log_mel::LogMel;
use super::mel_fusion::MelFusion;
use super::refused;
use super::settings::Settings;
use super::speech_filterbank::SpeechFilterbank;
use super::waveform::Waveform;
use crate::hub::Checkpoint;
use crate::{Result, Values};

/// Feature extractor: waveforms to `input_values` or `input_features`, by the checkpoint's own settings.
#[derive(Clone, Debug)]
pub struct FeatureExtractor(Kind);

#[derive(Clone, Debug)]
enum Kind {
    Waveform(Waveform),
    LogMel(LogMel),
    MelFusion(MelFusion),
    LogFilterbank(LogFilterbank),
    SpeechFilterbank(SpeechFilterbank),
    ConformerLogMel(ConformerLogMel),
    GraniteLogMel(GraniteLogMel),
}

/// The classes that are read.
const KNOWN: [&str; 11] = [
    Waveform::CLASS,
    Waveform::SPEECHT5,
    LogMel::CLASS,
    MelFusion::CLASS,
    LogFilterbank::CLASS,
    SpeechFilterbank::SPEECH_TO_TEXT,
    SpeechFilterbank::SEAMLESS,
    ConformerLogMel::PARAKEET,
    ConformerLogMel::COHERE,
    ConformerLogMel::LASR,
    GraniteLogMel::CLASS,
];

/// Options of a call, over the extractor's own settings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExtractOptions {
    /// How shorter waveforms of a batch are padded (`padding`).
    pub padding: Option<Padding>,
    /// The longest waveform, samples.
    pub max_length: Option<usize>,
    /// Whether waveforms longer than `max_length` are cut.
    pub truncation: Option<bool>,
    /// Makes padded lengths multiples of this, samples.
    pub pad_to_multiple_of: Option<usize>,
    /// Whether to give `attention_mask` as well.
    pub attention_mask: Option<bool>,
}

/// How shorter waveforms of a batch are padded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Padding {
    /// Not at all: all must have one length.
    No,
    /// To the longest of the batch.
    Longest,
    /// To `max_length`.
    MaxLength,
}

impl FeatureExtractor {
    /// Reads the settings of a checkpoint.
    ///
    /// # Errors
    /// When the checkpoint has none, they are of another kind of extractor, or a value is not sound.
    pub fn read(checkpoint: &Checkpoint) -> Result<Self> {
        let settings = Settings::read(checkpoint)?;
        // Files from before the class was written are told apart by what only one kind has.
        let class = match settings.class() {
            Some(class) => class,
            None if settings.has("num_mel_bins") => LogFilterbank::CLASS,
            None if settings.has("fft_window_size") => MelFusion::CLASS,
            None if settings.has("chunk_length") => LogMel::CLASS,
            None => Waveform::CLASS,
        };
        Ok(Self(match class {
            Waveform::CLASS | Waveform::SPEECHT5 => Kind::Waveform(Waveform::new(&settings)?),
            LogMel::CLASS => Kind::LogMel(LogMel::new(&settings)?),
            MelFusion::CLASS => Kind::MelFusion(MelFusion::new(&settings)?),
            LogFilterbank::CLASS => Kind::LogFilterbank(LogFilterbank::new(&settings)?),
            SpeechFilterbank::SPEECH_TO_TEXT | SpeechFilterbank::SEAMLESS => {
                Kind::SpeechFilterbank(SpeechFilterbank::new(&settings, class)?)
            }
            ConformerLogMel::PARAKEET | ConformerLogMel::COHERE | ConformerLogMel::LASR => {
                Kind::ConformerLogMel(ConformerLogMel::new(&settings, class)?)
            }
            GraniteLogMel::CLASS => Kind::GraniteLogMel(GraniteLogMel::new(&settings)?),
            other => {
                let known = KNOWN.join(", ");
                return Err(
                    settings.refuse(format!("`feature_extractor_type` is {other}; supported: {known}"))
                );
            }
        }))
    }

    /// The sampling rate that waveforms must have, Hz.
    pub fn sampling_rate(&self) -> u32 {
        match &self.0 {
            Kind::Waveform(kind) => kind.sampling_rate,
            Kind::LogMel(kind) => kind.sampling_rate,
            Kind::MelFusion(kind) => kind.sampling_rate,
            Kind::LogFilterbank(kind) => kind.sampling_rate,
            Kind::SpeechFilterbank(kind) => kind.sampling_rate,
            Kind::ConformerLogMel(kind) => kind.sampling_rate,
            Kind::GraniteLogMel(kind) => kind.sampling_rate,
        }
    }

    /// The pieces that a long waveform is cut into, in samples, each of which is a waveform of its own; none where
    /// it is short enough, or any length will do.
    pub fn pieces(&self, waveform: &[f32]) -> Option<Vec<Range<usize>>> {
        match &self.0 {
            Kind::ConformerLogMel(kind) => kind.chunks.as_ref()?.cut(waveform),
            _ => None,
        }
    }

    /// The longest piece that the model takes at once, samples; none where any length will do.
    pub fn longest(&self) -> Option<usize> {
        match &self.0 {
            Kind::Waveform(_)
            | Kind::LogFilterbank(_)
            | Kind::SpeechFilterbank(_)
            | Kind::ConformerLogMel(_)
            | Kind::GraniteLogMel(_) => None,
            Kind::LogMel(kind) => Some(kind.longest()),
            Kind::MelFusion(kind) => Some(kind.longest()),
        }
    }

    /// The model's inputs for waveforms of one channel at [`FeatureExtractor::sampling_rate`].
    ///
    /// By the reference's names: `input_values` `[batch, samples]` or `[batch, frames, mels]`, or `input_features` `[batch, mels, frames]` or
    /// `[batch, views, frames, mels]` with `is_longer` `[batch, 1]`; `attention_mask` `[batch, samples or frames]`
    /// where it is asked for or the checkpoint says so.
    ///
    /// # Errors
    /// When there is no waveform, one is empty or has a sample that is not a number, or they do not fit together.
    pub fn extract(&self, waveforms: &[&[f32]], options: &ExtractOptions) -> Result<Values> {
        if waveforms.is_empty() {
            return Err(refused("there is none", "give at least one waveform"));
        }
        for (index, waveform) in waveforms.iter().enumerate() {
            if waveform.is_empty() {
                return Err(refused(format!("waveform {index} has no samples"), "leave out empty audio"));
            }
            if let Some(at) = waveform.iter().position(|x| !x.is_finite()) {
                let problem = format!("waveform {index}: sample {at} is {}", waveform[at]);
                return Err(refused(problem, "give finite samples between -1 and 1"));
            }
        }
        match &self.0 {
            Kind::Waveform(kind) => kind.extract(waveforms, options),
            Kind::LogMel(kind) => kind.extract(waveforms, options),
            Kind::MelFusion(kind) => kind.extract(waveforms, options),
            Kind::LogFilterbank(kind) => kind.extract(waveforms),
            Kind::SpeechFilterbank(kind) => kind.extract(waveforms),
            Kind::ConformerLogMel(kind) => kind.extract(waveforms),
            Kind::GraniteLogMel(kind) => kind.extract(waveforms),
        }
    }
}

/// Waveforms of one length, with the length of each before padding.
pub(super) struct Padded {
    pub samples: Vec<Vec<f32>>,
    pub lengths: Vec<usize>,
    pub length: usize,
}

/// Truncates and pads waveforms.
///
/// Reference: `SequenceFeatureExtractor.pad`.
pub(super) fn pad(
    waveforms: &[&[f32]],
    padding: Padding,
    max_length: Option<usize>,
    truncation: bool,
    multiple: Option<usize>,
    value: f32,
) -> Result<Padded> {
    let round = |length: usize| multiple.filter(|m| *m > 0).map_or(length, |m| length.div_ceil(m) * m);
    let asked = |what: &str| refused(format!("{what} needs `max_length`"), "give `max_length`, samples");
    let mut samples: Vec<Vec<f32>> = waveforms.iter().map(|waveform| waveform.to_vec()).collect();
    if truncation {
        let most = round(max_length.ok_or_else(|| asked("truncation"))?);
        samples.iter_mut().for_each(|waveform| waveform.truncate(most));
    }
    let lengths: Vec<usize> = samples.iter().map(Vec::len).collect();
    let longest = lengths.iter().copied().max().unwrap_or(0);
    let length = match padding {
        Padding::No => longest,
        Padding::Longest => round(longest),
        Padding::MaxLength => round(max_length.ok_or_else(|| asked("padding to a length"))?),
    };
    if let Some(odd) = lengths.iter().find(|&&n| n > length || (padding == Padding::No && n != length)) {
        let problem = format!("waveforms of {odd} and {length} samples do not make one batch");
        return Err(refused(problem, "let them be padded, or cut to one length"));
    }
    samples.iter_mut().for_each(|waveform| waveform.resize(length, value));
    Ok(Padded { samples, lengths, length })
}
