//! The smaller model that drafts for a pipeline's own (`assistant_model` of `generate`).

use std::fmt;

use crate::any_model::{AnyModel, DynModel};
use crate::generation::{
    AssistantModel, CandidateGenerator, GenerationConfig, ModelDecoder, reading, reads_target,
    refuse_one_by_one,
};
use crate::text::Tokenizer;
use crate::{Error, Result, Values};

/// A draft under way.
pub(super) type Drafting<'a> = Box<dyn CandidateGenerator + 'a>;

/// A smaller model of the same vocabulary, or a drafter of this model alone (`assistant_model`).
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
    /// Of a model whose tokens are those of `target`'s tokenizer, or of a drafter that reads the model it drafts for and has no tokens of
    /// its own.
    ///
    /// # Errors
    /// When they are not, when the target runs tokens one at a time, or a file of the checkpoint cannot be read.
    pub(super) fn new(model: DynModel, (target, tokens): (&dyn AnyModel, &Tokenizer)) -> Result<Self> {
        refuse_one_by_one(target)?;
        let checkpoint = model.checkpoint();
        let generation = GenerationConfig::from_checkpoint(checkpoint)?;
        if !reads_target(&model) {
            let tokenizer = Tokenizer::from_checkpoint(checkpoint)?;
            if !tokenizer.same_vocabulary(tokens) {
                let (own, other) = (tokenizer.file().display(), tokens.file().display());
                let problem = format!("{own} has other tokens than {other}");
                let help = "choose a smaller model of the same family";
                return Err(Error::input("assistant_model", problem, help));
            }
        }
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
    /// When it cannot be made ready, or the model does not give what it reads.
    pub(super) fn decoder_only(
        &self,
        target: &dyn AnyModel,
        config: &GenerationConfig,
    ) -> Result<Drafting<'_>> {
        self.reading(&Values::new(), target, config)
    }

    /// The same of one whose first tokens come with more, such as `pixel_values`, of which the assistant reads what it takes.
    ///
    /// # Errors
    /// As [`Assistant::decoder_only`].
    pub(super) fn reading(
        &self,
        first: &Values,
        target: &dyn AnyModel,
        config: &GenerationConfig,
    ) -> Result<Drafting<'_>> {
        if reads_target(&self.model) {
            return reading(&self.model, target, &self.config(config));
        }
        let mut first = first.clone();
        first.retain(|name, _| self.model.inputs().iter().any(|input| input.name == *name));
        Ok(self.drafting(ModelDecoder::new(&self.model)?.beginning_with(first), config))
    }

    /// Drafts for an encoder-decoder that is given these inputs: its own encoder reads them too.
    ///
    /// # Errors
    /// When it cannot be made ready or its encoder cannot run.
    pub(super) fn encoder_decoder(&self, inputs: Values, config: &GenerationConfig) -> Result<Drafting<'_>> {
        Ok(self.drafting(ModelDecoder::encoder_decoder(&self.model, inputs)?, config))
    }

    fn drafting<'a>(&'a self, decoder: ModelDecoder<'a>, config: &GenerationConfig) -> Drafting<'a> {
        Box::new(AssistantModel::new(decoder, &self.config(config)).positions(self.model.limit("sequence")))
    }
}
