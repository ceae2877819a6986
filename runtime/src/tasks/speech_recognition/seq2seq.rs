//! Speech recognition by an encoder-decoder, half a minute at a time (`seq2seq_whisper`).
//!
//! Reference: `WhisperGenerationMixin.generate`, without its retries at higher temperatures.

use std::collections::BTreeSet;

use ndarray::{ArrayD, Axis, Slice, concatenate};

use super::alignment::token_times;
use super::timestamps::{TimestampProcessor, retrieve_segment};
use super::tokens::{InitTokens, Tokens};
use super::{SpeechOptions, Timestamps};
use crate::GraphKind;
use crate::any_model::{AnyModel, DynModel};
use crate::generation::{Decoder, Generation, GenerationConfig, ModelDecoder, Prompt};
use crate::tasks::assistant::Assistant;
use crate::tasks::text_generation::resolve;
use crate::text::Tokenizer;
use crate::{Error, Result, Values};

const FEATURES: &str = "input_features";

/// What is needed beside the model.
#[derive(Debug)]
pub(super) struct Seq2Seq {
    pub tokenizer: Tokenizer,
    /// Tokens that stand for no text.
    pub special: BTreeSet<i64>,
    generation: GenerationConfig,
    pub tokens: Tokens,
    /// The frames that the encoder takes.
    pub frames: usize,
    positions: Option<usize>,
    /// The width of the median filter over cross-attention weights.
    filter: usize,
    /// A smaller model that drafts.
    assistant: Option<Assistant>,
}

/// Generated tokens, without the initial ones and the end-of-sequence token.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Transcription {
    pub tokens: Vec<i64>,
    /// The timestamp of each, seconds, where those of words are asked for.
    pub times: Vec<f64>,
    /// The token of the language, where it was detected or is known.
    pub language: Option<i64>,
}

impl Seq2Seq {
    pub(super) fn new(model: &dyn AnyModel) -> Result<Self> {
        let checkpoint = model.checkpoint();
        let input = model.inputs().iter().find(|input| input.name == FEATURES);
        let frames = input.and_then(|input| input.shape.last()?.fixed()).ok_or_else(|| {
            let problem = format!("{} takes no `{FEATURES}` of a fixed length", model.class());
            Error::input("task", problem, "open a checkpoint of a class that writes down speech")
        })?;
        let tokenizer = Tokenizer::from_checkpoint(checkpoint)?;
        Ok(Self {
            special: tokenizer.special_ids(),
            tokenizer,
            generation: GenerationConfig::from_checkpoint(checkpoint)?,
            tokens: Tokens::read(checkpoint)?,
            frames,
            positions: model.limit("sequence"),
            filter: model.raw_config()["median_filter_width"].as_u64().map_or(7, |width| width as usize),
            assistant: None,
        })
    }

    /// Takes a smaller model that drafts.
    pub(super) fn set_assistant(&mut self, assistant: DynModel, model: &dyn AnyModel) -> Result<()> {
        self.assistant = Some(Assistant::new(assistant, (model, &self.tokenizer))?);
        Ok(())
    }

    /// Whether timestamps are predicted: where they were asked for, or the checkpoint always does so.
    pub(super) fn returns_timestamps(&self, options: &SpeechOptions) -> bool {
        options.timestamps.is_some() || self.tokens.return_timestamps == Some(true)
    }

    /// Transcribes an audio clip of any length, by its features `[1, mels, frames]`.
    pub(super) fn transcribe(
        &self,
        model: &dyn AnyModel,
        (features, audio_frames): (&ArrayD<f32>, usize),
        options: &SpeechOptions,
    ) -> Result<Transcription> {
        let aligned = options.timestamps == Some(Timestamps::Word);
        let total = features.len_of(Axis(2));
        let times = self.returns_timestamps(options) || total > self.frames;
        let timestamp_begin = match self.tokens.timestamp_begin() {
            None if times => {
                let problem = "the checkpoint has no tokens of time, which long audio and timestamps need";
                let help = "ask for no timestamps, and cut long audio by `chunk_length_s`";
                return Err(Error::input("timestamps", problem, help));
            }
            None => i64::MAX,
            Some(first) => first,
        };
        let default =
            GenerationConfig { max_new_tokens: Some(256), num_beams: Some(5), ..Default::default() };
        let mut config = resolve(&options.generation, &self.generation, &default, &self.tokenizer);
        if self.assistant.is_some() || config.prompt_lookup_num_tokens.is_some() {
            config.num_beams = options.generation.num_beams.or(Some(1));
        }
        let prompt = match self.tokens.init_tokens(options, times)? {
            InitTokens::Known(tokens) => tokens,
            InitTokens::DetectLanguage { mut tokens, languages } => {
                let language = self.detect_language(model, self.piece(features, 0)?, &languages)?;
                if let Some(place) = tokens.get_mut(1) {
                    *place = language;
                }
                tokens
            }
        };
        let languages = self.tokens.languages();
        let language = prompt.iter().copied().find(|token| languages.contains(token));
        let prompt = Prompt::new(&[prompt], None)?;
        let mut transcription = Transcription { language, ..Transcription::default() };
        let mut start = 0;
        while start < total {
            self.bound(&mut config, prompt.length());
            let mut decoder = ModelDecoder::encoder_decoder(model, self.piece(features, start)?)?;
            let mut generation =
                Generation::new(&prompt, &config).tokenizer(&self.tokenizer).positions(self.positions);
            if times {
                generation = generation.processor(TimestampProcessor {
                    timestamp_begin: usize::try_from(timestamp_begin).unwrap_or(usize::MAX),
                    end: config
                        .eos_token_ids()
                        .first()
                        .and_then(|end| usize::try_from(*end).ok())
                        .unwrap_or(0),
                    prompt: prompt.length(),
                    max_initial_timestamp_index: self.tokens.max_initial_timestamp_index,
                });
            }
            if let Some(assistant) = &self.assistant {
                generation =
                    generation.candidates(assistant.encoder_decoder(self.piece(features, start)?, &config)?);
            }
            let generated = generation.run(&mut decoder)?;
            let text = generated.new_tokens(0);
            let text = match text.split_last() {
                Some((last, before)) if config.eos_token_ids().contains(last) => before,
                _ => text,
            };
            let frames = (total - start).min(self.frames);
            let (length, step) = retrieve_segment(text, timestamp_begin, frames);
            if aligned {
                let mut inputs = self.piece(features, start)?;
                let tokens = &generated.sequences[0][..generated.ends[0]];
                let ids = ArrayD::from_shape_vec(ndarray::IxDyn(&[1, tokens.len()]), tokens.to_vec());
                let ids = ids.map_err(|e| Error::input("decoder_input_ids", e.to_string(), "report this"))?;
                inputs.insert("decoder_input_ids".to_owned(), ids.into());
                inputs.insert("alignment_heads".to_owned(), self.tokens.alignment_heads(model)?);
                let weights = model.run_graph(GraphKind::CrossAttentions, inputs)?;
                let weights = crate::tasks::outputs::output(&weights, "alignment")?;
                let positions = audio_frames.saturating_sub(start) / 2;
                let times = token_times(weights, prompt.length(), positions, self.filter)?;
                let after = start as f64 * 0.01;
                transcription.times.extend(times.iter().take(length).map(|time| time + after));
            }
            transcription.tokens.extend_from_slice(&text[..length]);
            // A text that ends where it begins would begin there for ever.
            start += if step == 0 { frames } else { step };
        }
        Ok(transcription)
    }

    /// The frames of one piece, padded with zeros.
    fn piece(&self, features: &ArrayD<f32>, start: usize) -> Result<Values> {
        let end = features.len_of(Axis(2)).min(start + self.frames);
        let piece = features.slice_axis(Axis(2), Slice::from(start..end));
        let mut rest = features.shape().to_vec();
        rest[2] = self.frames - (end - start);
        let rest = ArrayD::zeros(rest);
        let piece = concatenate(Axis(2), &[piece, rest.view()])
            .map_err(|e| Error::input(FEATURES, e.to_string(), "give features of one audio clip"))?;
        Ok(Values::from([(FEATURES.to_owned(), piece.as_standard_layout().into_owned().into())]))
    }

    /// The most probable of some languages (`detect_language`).
    fn detect_language(&self, model: &dyn AnyModel, piece: Values, languages: &[i64]) -> Result<i64> {
        let prompt = Prompt::new(&[vec![self.tokens.start()]], None)?;
        let scores = ModelDecoder::encoder_decoder(model, piece)?.prefill(&prompt)?;
        let score = |id: i64| usize::try_from(id).ok().and_then(|id| scores.get((0, id)).copied());
        let scored = languages.iter().filter_map(|&id| Some((id, score(id)?)));
        // The smallest of equals, as elsewhere.
        let best = scored.reduce(|best, next| match next.1.total_cmp(&best.1) {
            std::cmp::Ordering::Greater => next,
            std::cmp::Ordering::Equal if next.0 < best.0 => next,
            _ => best,
        });
        best.map(|(id, _)| id).ok_or_else(|| {
            let problem = "none of the checkpoint's languages has a score";
            Error::input("language", problem, "name the language")
        })
    }

    /// Keeps prompt and text within the model's positions.
    fn bound(&self, config: &mut GenerationConfig, prompt: usize) {
        let Some(positions) = self.positions else { return };
        match (config.max_new_tokens, config.max_length) {
            (Some(new), _) => config.max_new_tokens = Some(new.min(positions.saturating_sub(prompt))),
            (None, Some(length)) => {
                let beginning = prompt.min((positions / 2).saturating_sub(1));
                config.max_length = Some(positions.min(length + beginning));
            }
            (None, None) => {}
        }
    }
}
