//! Text generation (`GenerationMixin.generate`): greedy search, sampling, beam search and assisted (speculative) decoding.
//!
//! [`Generation`] runs over any model that implements [`Decoder`]; what it is to do is a [`GenerationConfig`], read from
//! a checkpoint's `generation_config.json` and completed by the caller. Greedy and beam search give the reference's
//! tokens one by one; draws are reproduced by a seed, but are not those of `torch`.

mod assisted;
mod beams;
mod candidates;
mod config;
mod decoder;
mod distribution;
mod model;
mod processors;
mod prompt;
mod random;
mod rows;
mod stopping;
mod stream;

#[cfg(test)]
mod tests;

use std::ops::ControlFlow;

pub use candidates::{AssistantModel, CandidateGenerator, DFlashAssistant, MultiTokenAssistant, NextToken};
pub(crate) use candidates::{reading, reads_target};
pub use config::{EarlyStopping, GenerationConfig};
pub use decoder::Decoder;
pub use model::ModelDecoder;
pub(crate) use model::refuse_one_by_one;
pub use processors::{Processor, Row};
pub use prompt::Prompt;
pub use stopping::Stop;
pub use stream::TextStream;

use crate::text::Tokenizer;
use crate::{Error, Result};
use candidates::PromptLookup;
use config::Lengths;
use random::Draws;
use stopping::Stopping;

/// Called at every step with the new token of each row, none for rows that ended; not by beam search, whose rows may
/// still change. `Break` ends generating.
pub type Watch<'a> = dyn FnMut(&[Option<i64>]) -> ControlFlow<()> + 'a;

/// What is to be generated.
///
/// ```
/// use ndarray::Array2;
/// use weft::generation::{Generation, GenerationConfig, Prompt, Decoder};
///
/// /// A model that counts.
/// struct Counting;
///
/// impl Decoder for Counting {
///     fn prefill(&mut self, prompt: &Prompt) -> weft::Result<Array2<f32>> {
///         self.decode(&prompt.input_ids.column(prompt.length() - 1).to_vec(), None)
///     }
///
///     fn decode(&mut self, ids: &[i64], _: Option<&[usize]>) -> weft::Result<Array2<f32>> {
///         Ok(Array2::from_shape_fn((ids.len(), 10), |(row, token)| f32::from(token as i64 == ids[row] + 1)))
///     }
/// }
///
/// # fn main() -> weft::Result<()> {
/// let prompt = Prompt::new(&[vec![3], vec![6]], Some(0))?;
/// let config = GenerationConfig { max_new_tokens: Some(4), eos_token_id: Some(vec![8]), ..Default::default() };
/// let generated = Generation::new(&prompt, &config).run(&mut Counting)?;
/// assert_eq!(generated.new_tokens(0), [4, 5, 6, 7]);
/// assert_eq!(generated.new_tokens(1), [7, 8]);
/// # Ok(())
/// # }
/// ```
pub struct Generation<'a> {
    prompt: &'a Prompt,
    config: &'a GenerationConfig,
    tokenizer: Option<&'a Tokenizer>,
    positions: Option<usize>,
    seed: Option<u64>,
    first_row: usize,
    processors: Vec<Box<dyn Processor>>,
    candidates: Option<Box<dyn CandidateGenerator + 'a>>,
}

impl<'a> Generation<'a> {
    /// Continues prompts as a configuration says.
    pub fn new(prompt: &'a Prompt, config: &'a GenerationConfig) -> Self {
        Self {
            prompt,
            config,
            tokenizer: None,
            positions: None,
            seed: None,
            first_row: 0,
            processors: vec![],
            candidates: None,
        }
    }

    /// The tokenizer, which `stop_strings` need.
    #[must_use]
    pub fn tokenizer(mut self, tokenizer: &'a Tokenizer) -> Self {
        self.tokenizer = Some(tokenizer);
        self
    }

    /// The model's positions, which bound the length where the configuration names none.
    #[must_use]
    pub fn positions(mut self, positions: Option<usize>) -> Self {
        self.positions = positions;
        self
    }

    /// Makes draws repeat; otherwise every call draws anew.
    #[must_use]
    pub fn seed(mut self, seed: Option<u64>) -> Self {
        self.seed = seed;
        self
    }

    /// How many prompts of a larger batch come before these: their draws are other ones.
    #[must_use]
    pub fn first_row(mut self, first_row: usize) -> Self {
        self.first_row = first_row;
        self
    }

    /// Adds a processor after the configuration's own and before what only drawing uses.
    #[must_use]
    pub fn processor(mut self, processor: impl Processor + 'static) -> Self {
        self.processors.push(Box::new(processor));
        self
    }

    /// Lets candidates be proposed, such as by an [`AssistantModel`] (assisted or speculative decoding): fewer runs of the model give the
    /// same tokens. It takes one prompt, greedy or sampling, and a decoder that has [`Decoder::decode_many`].
    ///
    /// Without it, `prompt_lookup_num_tokens` takes them from the text itself.
    #[must_use]
    pub fn candidates(mut self, generator: Box<dyn CandidateGenerator + 'a>) -> Self {
        self.candidates = Some(generator);
        self
    }

    /// Generates.
    ///
    /// # Errors
    /// When the configuration contradicts itself or asks for what is not supported, the prompt is too long for it,
    /// or the model cannot run.
    pub fn run(self, decoder: &mut dyn Decoder) -> Result<Generated> {
        self.run_watched(decoder, &mut |_| ControlFlow::Continue(()))
    }

    /// Generates, tells of every token, and ends where it is told to.
    ///
    /// # Errors
    /// As [`Generation::run`].
    pub fn run_watched(self, decoder: &mut dyn Decoder, watch: &mut Watch<'_>) -> Result<Generated> {
        let Self { prompt, config, tokenizer, positions, seed, first_row, processors, candidates } = self;
        config.check()?;
        let looked_up = || Ok(PromptLookup::of(config)?.map(|lookup| Box::new(lookup) as Box<_>));
        let candidates = candidates.map_or_else(looked_up, |candidates| Ok(Some(candidates)))?;
        let lengths = config.lengths(prompt.length(), positions)?;
        let decoding = Decoding {
            prompt,
            config,
            lengths,
            processors: processors::processors(config, prompt, lengths, processors)?,
            stopping: Stopping::new(config, lengths.most, tokenizer)?,
            draws: Draws::new(seed, first_row * config.num_return_sequences()),
        };
        match candidates {
            Some(_) if config.num_beams() > 1 => {
                let help =
                    "set it to 1, or generate without an assistant and without `prompt_lookup_num_tokens`";
                Err(Error::input("num_beams", "must be 1 in assisted decoding", help))
            }
            Some(mut generator) => assisted::decode(decoding, decoder, generator.as_mut(), watch),
            None if config.num_beams() > 1 => beams::search(decoding, decoder, watch),
            None => rows::decode(decoding, decoder, watch),
        }
    }
}

/// What both ways of decoding work with.
struct Decoding<'a> {
    prompt: &'a Prompt,
    config: &'a GenerationConfig,
    lengths: Lengths,
    processors: Vec<Box<dyn Processor>>,
    stopping: Stopping,
    draws: Draws,
}

impl Decoding<'_> {
    fn process(&self, prompt: usize, ids: &[i64], scores: &mut [f32]) {
        for processor in &self.processors {
            processor.process(Row { prompt, ids }, scores);
        }
    }
}

/// What was generated: for each prompt its sequences, one after the other.
#[derive(Clone, Debug, PartialEq)]
pub struct Generated {
    /// Prompts and new tokens, padded on both sides to one length, as the reference gives them.
    pub sequences: Vec<Vec<i64>>,
    /// The tokens of the prompt in each, with what fills them.
    pub prompt_length: usize,
    /// Where each answer ends within its sequence.
    pub ends: Vec<usize>,
    /// Why.
    pub stops: Vec<Stop>,
    /// Of beam search: the logarithm of each answer's probability over the power of its length.
    pub scores: Option<Vec<f32>>,
    /// Of assisted decoding: how its candidates fared.
    pub acceptance: Option<Acceptance>,
}

/// How the candidates of assisted decoding fared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Acceptance {
    /// The runs of the target that checked candidates.
    pub runs: usize,
    /// All candidates.
    pub drafted: usize,
    /// Those of them that the target chose too.
    pub accepted: usize,
}

impl Acceptance {
    fn add(&mut self, drafted: usize, accepted: usize) {
        self.runs += usize::from(drafted > 0);
        self.drafted += drafted;
        self.accepted += accepted;
    }
}

impl Generated {
    /// The tokens of an answer, with the one that ended it and without what fills it.
    pub fn new_tokens(&self, index: usize) -> &[i64] {
        &self.sequences[index][self.prompt_length..self.ends[index]]
    }
}
