//! The smaller model that drafts for a pipeline's own (`assistant_model` of `generate`).

use std::fmt;

use crate::any_model::DynModel;
use crate::generation::{AssistantModel, GenerationConfig, ModelDecoder};
use crate::text::Tokenizer;
use crate::{Error, Result, Values};

/// A smaller model of the same vocabulary (`assistant_model`).
pub(super) struct Assistant {
    model: DynModel,
    generation: GenerationConfig,
}

impl fmt::Debug for Assistant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Assistant").field("class", &self.model.class()).finish_non_exhaustive()
    }
}

impl Assistant {
    /// Of a model whose tokens are those of `target`.
    ///
    /// # Errors
    /// When they are not, or a file of its checkpoint cannot be read.
    pub(super) fn new(model: DynModel, target: &Tokenizer) -> Result<Self> {
        let checkpoint = model.checkpoint();
        let tokenizer = Tokenizer::from_checkpoint(checkpoint)?;
        if !tokenizer.same_vocabulary(target) {
            let problem =
                format!("{} has other tokens than {}", tokenizer.file().display(), target.file().display());
            let help = "choose a smaller model of the same family";
            return Err(Error::input("assistant_model", problem, help));
        }
        let generation = GenerationConfig::from_checkpoint(checkpoint)?;
        Ok(Self { model, generation })
    }

    /// What it is to do: as the caller says, or else as its checkpoint does.
    fn config(&self, config: &GenerationConfig) -> GenerationConfig {
        let own = GenerationConfig {
            num_assistant_tokens: self.generation.num_assistant_tokens,
            num_assistant_tokens_schedule: self.generation.num_assistant_tokens_schedule.clone(),
            assistant_confidence_threshold: self.generation.assistant_confidence_threshold,
            ..GenerationConfig::default()
        };
        config.clone().or(own)
    }

    /// Drafts for a decoder-only model.
    ///
    /// # Errors
    /// When it cannot be made ready.
    pub(super) fn decoder_only(&self, config: &GenerationConfig) -> Result<AssistantModel<'_>> {
        Ok(self.drafting(ModelDecoder::new(&self.model)?, config))
    }

    /// Drafts for an encoder-decoder that is given these inputs: its own encoder reads them too.
    ///
    /// # Errors
    /// When it cannot be made ready or its encoder cannot run.
    pub(super) fn encoder_decoder(
        &self,
        inputs: Values,
        config: &GenerationConfig,
    ) -> Result<AssistantModel<'_>> {
        Ok(self.drafting(ModelDecoder::encoder_decoder(&self.model, inputs)?, config))
    }

    fn drafting<'a>(&'a self, decoder: ModelDecoder<'a>, config: &GenerationConfig) -> AssistantModel<'a> {
        AssistantModel::new(decoder, &self.config(config)).positions(self.model.limit("sequence"))
    }
}
