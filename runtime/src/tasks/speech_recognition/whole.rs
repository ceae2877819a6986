//! Recordings that become text in one piece, by a tokenizer: encoder-decoders but Whisper (`seq2seq`), and CTC over tokens
//! (`ParakeetTokenizer`, `LasrTokenizer`).
//!
//! Reference: `AutomaticSpeechRecognitionPipeline`.

use super::SpeechOptions;
use super::prompt::DecoderPrompt;
use crate::any_model::AnyModel;
use crate::generation::{Generation, GenerationConfig, ModelDecoder, Prompt};
use crate::hub::Checkpoint;
use crate::tasks::text_generation::resolve;
use crate::text::Tokenizer;
use crate::{Error, Result, Values};

/// The tokens of an encoder-decoder.
#[derive(Debug)]
pub(super) struct Written {
    tokenizer: Tokenizer,
    generation: GenerationConfig,
    pub(super) prompt: DecoderPrompt,
    /// Whether texts are written in upper case (`do_upper_case`).
    upper: bool,
}

impl Written {
    pub(super) fn read(checkpoint: &Checkpoint) -> Result<Self> {
        let generation = GenerationConfig::from_checkpoint(checkpoint)?;
        let settings = checkpoint.json("tokenizer_config.json")?.unwrap_or_default();
        let upper = settings["do_upper_case"].as_bool().unwrap_or(false);
        let tokenizer = Tokenizer::from_checkpoint(checkpoint)?;
        let prompt = DecoderPrompt::read(checkpoint, &tokenizer)?;
        Ok(Self { tokenizer, generation, prompt, upper })
    }

    /// The text of the encoder's inputs.
    pub(super) fn transcribe(
        &self,
        model: &dyn AnyModel,
        inputs: Values,
        options: &SpeechOptions,
    ) -> Result<String> {
        let default =
            GenerationConfig { max_new_tokens: Some(256), num_beams: Some(5), ..Default::default() };
        let config = resolve(&options.generation, &self.generation, &default, &self.tokenizer);
        let Some(start) = config.decoder_start_token_id.or(config.bos_token_id) else {
            return Err(Error::config(
                model.checkpoint().dir().join("generation_config.json"),
                "names neither `decoder_start_token_id` nor `bos_token_id`: no token begins a text",
                "take the token from the published configuration",
            ));
        };
        let prompt = Prompt::new(&[self.prompt.tokens(&self.tokenizer, options, start)?], None)?;
        let mut decoder = ModelDecoder::encoder_decoder(model, inputs)?;
        let generation =
            Generation::new(&prompt, &config).tokenizer(&self.tokenizer).positions(model.limit("sequence"));
        let generated = generation.run(&mut decoder)?;
        let text = self.tokenizer.decode(&generated.sequences[0][..generated.ends[0]], true)?;
        Ok(if self.upper { text.to_uppercase() } else { text })
    }
}

/// The tokens of a model with a token for each frame.
#[derive(Debug)]
pub(super) struct FrameTokens {
    tokenizer: Tokenizer,
    /// Stands for no token: the padding.
    blank: Option<i64>,
}

impl FrameTokens {
    pub(super) fn read(checkpoint: &Checkpoint) -> Result<Self> {
        let tokenizer = Tokenizer::from_checkpoint(checkpoint)?;
        Ok(Self { blank: tokenizer.pad_token().map(|(_, id)| id), tokenizer })
    }

    /// The text of frames: neighbours that are alike are one, blanks none.
    pub(super) fn text(&self, frames: &[usize]) -> Result<String> {
        let firsts = frames.chunk_by(|a, b| a == b).filter_map(|run| i64::try_from(run[0]).ok());
        let ids: Vec<i64> = firsts.filter(|id| Some(*id) != self.blank).collect();
        self.tokenizer.decode(&ids, false)
    }
}
