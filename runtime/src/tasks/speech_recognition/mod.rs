//! Speech recognition: the words of a recording, with the times at which they are said.
//!
//! Reference: `AutomaticSpeechRecognitionPipeline`.

mod chunks;
mod ctc;

use serde::{Deserialize, Serialize};

use super::scores::largest;
use super::sounds::AudioModel;
use super::{Opening, Pipeline, Task};
use crate::audio::{Audio, ExtractOptions};
use crate::erased::AnyModel;
use crate::model::Architecture;
use crate::{Error, Result};
use chunks::{Chunk, Chunking};
use ctc::{Characters, Span, samples_per_frame};

/// Writes down speech.
///
/// ```no_run
/// # fn example<A: weft::Architecture>() -> weft::Result<()> {
/// use weft::audio::Audio;
///
/// let listener = weft::tasks::SpeechRecognition::<A>::open("org/checkpoint")?.load()?;
/// println!("{}", listener.run(&Audio::open("speech.flac")?)?.text);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct SpeechRecognition<A> {
    audio: AudioModel<A>,
    characters: Characters,
    samples_per_frame: usize,
}

/// How long recordings are cut, and what comes with the text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SpeechOptions {
    /// The length of the pieces that a long recording is cut into, seconds; in one piece where not given.
    pub chunk_length_s: Option<f64>,
    /// How far pieces overlap their neighbours on the left and on the right, seconds; a sixth of a piece where not
    /// given.
    pub stride_length_s: Option<(f64, f64)>,
    /// What times are given for.
    pub timestamps: Option<Timestamps>,
}

/// What times are given for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Timestamps {
    /// Each character.
    Char,
    /// Each word.
    Word,
}

/// What was said.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Transcript {
    /// The text.
    pub text: String,
    /// Its parts, where times were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chunks: Option<Vec<TimedText>>,
}

/// A part of the text and when it is said.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TimedText {
    /// The part.
    pub text: String,
    /// Beginning and end, seconds.
    pub timestamp: (f64, f64),
}

impl<A: AnyModel> Pipeline<A> for SpeechRecognition<A> {
    const TASK: Task = Task::AutomaticSpeechRecognition;

    fn from_model(model: A) -> Result<Self> {
        let characters = Characters::read(model.checkpoint())?;
        let samples_per_frame = samples_per_frame(model.raw_config());
        Ok(Self { audio: AudioModel::new(model)?, characters, samples_per_frame })
    }
}

impl<A: AnyModel> SpeechRecognition<A> {
    /// Finds a checkpoint: a folder or a hub id.
    ///
    /// # Errors
    /// When there is none.
    pub fn open(checkpoint: &str) -> Result<Opening<A, Self>>
    where
        A: Architecture,
    {
        Opening::open(checkpoint)
    }

    /// The model within.
    pub fn model(&self) -> &A {
        &self.audio.model
    }

    /// What is said in a recording.
    ///
    /// # Errors
    /// When the recording is shorter than the model can hear, or the model fails.
    pub fn run(&self, audio: &Audio) -> Result<Transcript> {
        self.run_with(audio, &SpeechOptions::default())
    }

    /// The same with other than the default options.
    ///
    /// # Errors
    /// As [`SpeechRecognition::run`], and when pieces are shorter than what they overlap by.
    pub fn run_with(&self, audio: &Audio, options: &SpeechOptions) -> Result<Transcript> {
        let samples = self.audio.samples(audio);
        let rate = f64::from(self.audio.extractor.sampling_rate());
        let pieces = match options.chunk_length_s {
            Some(length) if length > 0.0 => {
                Chunking::new(length, options.stride_length_s, rate, self.samples_per_frame)?
                    .cut(samples.len())
            }
            _ => vec![Chunk::whole(samples.len())],
        };
        let mut frames = vec![];
        for piece in &pieces {
            let heard = self.frames(&samples[piece.start..piece.end])?;
            frames.extend_from_slice(&heard[piece.kept(heard.len(), self.samples_per_frame)]);
        }
        let spans = self.characters.spans(&frames);
        let text = self.characters.text(&spans);
        let timed = |span: Span| {
            let seconds = |frame: usize| (frame * self.samples_per_frame) as f64 / rate;
            TimedText { text: span.text, timestamp: (seconds(span.start), seconds(span.end)) }
        };
        let parts = match options.timestamps {
            None => return Ok(Transcript { text, chunks: None }),
            Some(Timestamps::Char) => spans,
            Some(Timestamps::Word) => self.characters.words(&spans),
        };
        Ok(Transcript { text, chunks: Some(parts.into_iter().map(timed).collect()) })
    }

    /// The likeliest character of each frame.
    fn frames(&self, samples: &[f32]) -> Result<Vec<usize>> {
        let options = ExtractOptions { attention_mask: Some(true), ..ExtractOptions::default() };
        let logits = self.audio.run(samples, &options, "logits")?;
        let rows = logits.shape().last().copied().unwrap_or_default();
        let values: Vec<f32> = logits.iter().copied().collect();
        if rows == 0 || values.is_empty() {
            let help = "give a longer recording";
            return Err(Error::input("audio", format!("{} samples give no frame", samples.len()), help));
        }
        Ok(values.chunks(rows).map(largest).collect())
    }
}
