//! Speech recognition: the text of a recording, with timestamps.
//!
//! Reference: `AutomaticSpeechRecognitionPipeline`.

mod alignment;
mod chunks;
mod ctc;
mod languages;
mod prompt;
mod seq2seq;
mod timestamps;
mod tokens;
mod transcript;
mod whole;
mod words;

use serde::{Deserialize, Serialize};

use super::audio::AudioModel;
use super::builder::opened;
use super::scores::largest;
use super::{Pipeline, Task};
use crate::any_model::{AnyModel, DynModel};
use crate::audio::{Audio, ExtractOptions, Padding};
use crate::generation::GenerationConfig;
use crate::hub::Checkpoint;
use crate::{Error, Result};
use chunks::{Chunk, Chunking};
use ctc::{Characters, Span, samples_per_frame};
use seq2seq::Seq2Seq;
use transcript::{Decoding, Piece};
use whole::{FrameTokens, Written};

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
    kind: Kind,
}

/// How a model transcribes, as the reference's pipeline has it.
#[derive(Debug)]
enum Kind {
    /// CTC: a character for each frame.
    Ctc { characters: Characters, samples_per_frame: usize },
    /// CTC: a token for each frame.
    FrameTokens(FrameTokens),
    /// Whisper: tokens one after the other, half a minute at a time.
    Seq2Seq(Box<Seq2Seq>),
    /// Another encoder-decoder: tokens one after the other.
    Written(Box<Written>),
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
    /// The language that is spoken, by its name or code, where the model knows several; detected where not given.
    pub language: Option<String>,
    /// The language to write, by its name or code, where the model translates; that which is spoken where not given.
    pub target_language: Option<String>,
    /// Whether there is punctuation, where the model writes both ways; true where not given.
    pub punctuation: Option<bool>,
    /// `transcribe`, or `translate` for a translation into English, where the model knows both.
    pub task: Option<String>,
    /// Whether the parts of the text say their language.
    pub return_language: bool,
    /// How a model that writes tokens chooses them.
    pub generation: GenerationConfig,
}

/// What times are given for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Timestamps {
    /// Each character; of models that write a character for each frame.
    Char,
    /// Each word.
    Word,
    /// Each part that the model itself gives times for; of models that write tokens.
    Segment,
}

/// The text of a recording.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Transcript {
    /// The text.
    pub text: String,
    /// Its parts, where times were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chunks: Option<Vec<TimedText>>,
}

/// A part of the text with its timestamps.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TimedText {
    /// The part.
    pub text: String,
    /// Beginning and end, seconds; a model may leave either open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<(Option<f64>, Option<f64>)>,
    /// The language, where it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
}

impl<A: AnyModel> Pipeline<A> for SpeechRecognition<A> {
    const TASK: Task = Task::AutomaticSpeechRecognition;

    fn from_model(model: A) -> Result<Self> {
        let input = |name: &str| model.inputs().iter().find(|input| input.name == name);
        let fixed = input("input_features").and_then(|input| input.shape.last()?.fixed());
        let mels_last = input("input_features").is_some_and(|input| input.shape[1].fixed().is_none());
        let kind = match (input("decoder_input_ids").is_some(), fixed) {
            (true, Some(_)) if !mels_last => Kind::Seq2Seq(Box::new(Seq2Seq::new(&model)?)),
            (true, _) => Kind::Written(Box::new(Written::read(model.checkpoint())?)),
            (false, _) if !has_characters(model.checkpoint())? => {
                Kind::FrameTokens(FrameTokens::read(model.checkpoint())?)
            }
            (false, _) => Kind::Ctc {
                characters: Characters::read(model.checkpoint())?,
                samples_per_frame: samples_per_frame(model.raw_config()),
            },
        };
        Ok(Self { audio: AudioModel::new(model)?, kind })
    }
}

opened!(SpeechRecognition: audio.model);

impl<A: AnyModel> SpeechRecognition<A> {
    /// Takes a smaller model that drafts (assisted or speculative decoding, `assistant_model`), such as Distil-Whisper for Whisper: the text is
    /// that of the model alone. There are no beams where the caller does not ask for them.
    ///
    /// # Errors
    /// When the model is not one that takes half a minute at a time, the assistant has other tokens, or a file of its checkpoint cannot be
    /// read.
    pub fn with_assistant(mut self, assistant: DynModel) -> Result<Self> {
        self.set_assistant(assistant)?;
        Ok(self)
    }

    pub(super) fn set_assistant(&mut self, assistant: DynModel) -> Result<()> {
        match &mut self.kind {
            Kind::Seq2Seq(seq2seq) => seq2seq.set_assistant(assistant, &self.audio.model),
            _ => {
                let problem = format!("is not asked by {}", self.audio.model.class());
                Err(Error::input("assistant_model", problem, "leave it out"))
            }
        }
    }

    /// The text of a recording.
    ///
    /// # Errors
    /// When the recording is shorter than one frame of the model, or the model fails.
    pub fn run(&self, audio: &Audio) -> Result<Transcript> {
        self.run_with(audio, &SpeechOptions::default())
    }

    /// The same with other than the default options.
    ///
    /// # Errors
    /// As [`SpeechRecognition::run`], and when pieces are shorter than what they overlap by.
    pub fn run_with(&self, audio: &Audio, options: &SpeechOptions) -> Result<Transcript> {
        let samples = self.audio.samples(audio)?;
        let unit = match &self.kind {
            Kind::Ctc { samples_per_frame, .. } => *samples_per_frame,
            Kind::FrameTokens(_) | Kind::Seq2Seq(_) | Kind::Written(_) => 1,
        };
        if matches!(self.kind, Kind::FrameTokens(_) | Kind::Written(_)) {
            return self.whole(&samples, options);
        }
        let pieces = match options.chunk_length_s {
            Some(length) if length > 0.0 => {
                let chunking = Chunking::new(length, options.stride_length_s, self.rate(), unit)?;
                Some(chunking.cut(samples.len()))
            }
            _ => None,
        };
        match &self.kind {
            Kind::Ctc { characters, .. } => {
                let pieces = pieces.unwrap_or_else(|| vec![Chunk::whole(samples.len())]);
                self.ctc(characters, unit, &samples, &pieces, options)
            }
            Kind::Seq2Seq(seq2seq) => self.seq2seq(seq2seq, &samples, pieces.as_deref(), options),
            Kind::FrameTokens(_) | Kind::Written(_) => self.whole(&samples, options),
        }
    }

    /// A recording in one piece, without times.
    fn whole(&self, samples: &[f32], options: &SpeechOptions) -> Result<Transcript> {
        if options.timestamps.is_some() {
            return Err(unsupported("gives no times", "none"));
        }
        if options.chunk_length_s.is_some_and(|length| length > 0.0) {
            let problem = "this model takes a recording in one piece";
            return Err(Error::input("chunk_length_s", problem, "leave it out"));
        }
        let extract = ExtractOptions { attention_mask: Some(true), ..ExtractOptions::default() };
        let text = match &self.kind {
            Kind::Written(written) => {
                let write = |samples| {
                    let inputs = self.audio.inputs(samples, &extract)?;
                    written.transcribe(&self.audio.model, inputs, options)
                };
                match self.audio.extractor.pieces(samples) {
                    None => write(samples)?,
                    Some(pieces) => {
                        let texts: Result<Vec<_>> =
                            pieces.into_iter().map(|piece| write(&samples[piece])).collect();
                        prompt::joined(&texts?, written.prompt.separator(options)?)
                    }
                }
            }
            Kind::FrameTokens(tokens) => tokens.text(&self.frames(samples)?)?,
            Kind::Ctc { .. } | Kind::Seq2Seq(_) => String::new(),
        };
        Ok(Transcript { text, chunks: None })
    }

    fn rate(&self) -> f64 {
        f64::from(self.audio.extractor.sampling_rate())
    }

    /// CTC: a character for each frame.
    fn ctc(
        &self,
        characters: &Characters,
        samples_per_frame: usize,
        samples: &[f32],
        pieces: &[Chunk],
        options: &SpeechOptions,
    ) -> Result<Transcript> {
        let mut frames = vec![];
        for piece in pieces {
            let ids = self.frames(&samples[piece.start..piece.end])?;
            frames.extend_from_slice(&ids[piece.kept(ids.len(), samples_per_frame)]);
        }
        let spans = characters.spans(&frames);
        let text = characters.text(&spans);
        let timed = |span: Span| {
            let seconds = |frame: usize| Some((frame * samples_per_frame) as f64 / self.rate());
            let timestamp = Some((seconds(span.start), seconds(span.end)));
            TimedText { text: span.text, timestamp, language: None }
        };
        let parts = match options.timestamps {
            None => return Ok(Transcript { text, chunks: None }),
            Some(Timestamps::Char) => spans,
            Some(Timestamps::Word) => characters.words(&spans),
            Some(Timestamps::Segment) => {
                return Err(unsupported("gives times of characters and words", "\"char\" or \"word\""));
            }
        };
        Ok(Transcript { text, chunks: Some(parts.into_iter().map(timed).collect()) })
    }

    /// An encoder-decoder: tokens one after the other.
    fn seq2seq(
        &self,
        seq2seq: &Seq2Seq,
        samples: &[f32],
        pieces: Option<&[Chunk]>,
        options: &SpeechOptions,
    ) -> Result<Transcript> {
        if options.timestamps == Some(Timestamps::Char) {
            return Err(unsupported("gives times of segments and words", "true or \"word\""));
        }
        let rate = self.rate();
        let mut decoded = vec![];
        let whole = [Chunk::whole(samples.len())];
        for piece in pieces.unwrap_or(&whole) {
            let own = &samples[piece.start..piece.end];
            let long =
                pieces.is_none() && self.audio.extractor.longest().is_some_and(|most| own.len() > most);
            let extract = ExtractOptions {
                padding: long.then_some(Padding::Longest),
                truncation: long.then_some(false),
                attention_mask: Some(true),
                ..ExtractOptions::default()
            };
            let features = self.audio.extractor.extract(&[own], &extract)?;
            let seen = features.get("attention_mask").map(|mask| mask.i64("attention_mask")).transpose()?;
            let features = super::outputs::output(&features, "input_features")?;
            let frames = seen.map_or(features.len_of(ndarray::Axis(2)), |seen| seen.sum() as usize);
            let transcription = seq2seq.transcribe(&self.audio.model, (features, frames), options)?;
            let mut tokens = transcription.tokens;
            if let Some(language) = transcription.language.filter(|_| options.return_language) {
                tokens.insert(0, language);
            }
            let seconds = |samples: usize| samples as f64 / rate;
            let stride = (seconds(own.len()), seconds(piece.left), seconds(piece.right));
            decoded.push(Piece { tokens, times: transcription.times, stride: pieces.map(|_| stride) });
        }
        let positions = (seq2seq.frames / 2).max(1) as f64;
        let longest = self.audio.extractor.longest().unwrap_or_default() as f64 / rate;
        Decoding {
            tokenizer: &seq2seq.tokenizer,
            special: &seq2seq.special,
            timestamp_begin: seq2seq.tokens.timestamp_begin().unwrap_or(i64::MAX),
            precision: longest / positions,
            timestamps: seq2seq.returns_timestamps(options),
            words: options.timestamps == Some(Timestamps::Word),
            language: options.return_language,
        }
        .decode(&decoded)
    }

    /// The most probable character of each frame.
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

/// Whether a checkpoint has a vocabulary of characters (`Wav2Vec2CTCTokenizer`), and not a tokenizer as those of texts.
fn has_characters(checkpoint: &Checkpoint) -> Result<bool> {
    let settings = checkpoint.json("tokenizer_config.json")?.unwrap_or_default();
    Ok(settings["tokenizer_class"] == "Wav2Vec2CTCTokenizer" || checkpoint.path("vocab.json")?.is_some())
}

fn unsupported(problem: &str, help: &str) -> Error {
    Error::input("return_timestamps", format!("this model {problem}"), format!("ask for {help}"))
}
