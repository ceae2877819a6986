//! What changes the scores of the next token, in the order and with the numbers of the reference.
//!
//! Reference: `transformers`, `generation/logits_process.py` and `GenerationMixin._get_logits_processor`.

mod lengths;
mod repetition;
mod sequences;
mod tokens;
mod warpers;

use super::config::{GenerationConfig, Lengths};
use super::prompt::Prompt;
use crate::Result;

/// One row of a batch before its next token.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    /// The prompt that it continues.
    pub prompt: usize,
    /// Its tokens so far, padding included.
    pub ids: &'a [i64],
}

/// Changes the scores of a row's next token.
pub trait Processor: Send + Sync {
    /// Changes `scores` `[vocab_size]`.
    fn process(&self, row: Row<'_>, scores: &mut [f32]);
}

const IMPOSSIBLE: f32 = f32::NEG_INFINITY;

/// The processors that a configuration asks for, in the reference's order.
pub(crate) fn processors(
    config: &GenerationConfig,
    prompt: &Prompt,
    lengths: Lengths,
    own: Vec<Box<dyn Processor>>,
) -> Result<Vec<Box<dyn Processor>>> {
    let mut list: Vec<Box<dyn Processor>> = Vec::new();
    let ends = config.eos_token_ids();
    if let Some(biases) = &config.sequence_bias {
        list.push(Box::new(sequences::Bias::new(biases)?));
    }
    if let Some(penalty) = config.encoder_repetition_penalty.filter(|penalty| *penalty != 1.0) {
        list.push(Box::new(repetition::Encoder::new(penalty, prompt)));
    }
    if let Some(penalty) = config.repetition_penalty.filter(|penalty| *penalty != 1.0) {
        list.push(Box::new(repetition::Repetition::new(penalty, prompt)));
    }
    if let Some(size) = config.no_repeat_ngram_size.filter(|size| *size > 0) {
        list.push(Box::new(sequences::NoRepeat { size }));
    }
    if let Some(size) = config.encoder_no_repeat_ngram_size.filter(|size| *size > 0) {
        list.push(Box::new(sequences::EncoderNoRepeat::new(size, prompt)));
    }
    if let Some(words) = &config.bad_words_ids {
        list.push(Box::new(sequences::Bias::forbidding(words, ends)?));
    }
    let least = config.min_length.is_some_and(|least| least > 0) || config.min_new_tokens.is_some();
    if least && !ends.is_empty() {
        list.push(Box::new(lengths::AtLeast { length: lengths.least, ends: ends.to_vec() }));
    }
    if let Some(token) = config.forced_bos_token_id {
        list.push(Box::new(tokens::Forced { length: 1, tokens: vec![token] }));
    }
    if let Some(tokens) = &config.forced_eos_token_id {
        list.push(Box::new(tokens::Forced { length: lengths.most - 1, tokens: tokens.clone() }));
    }
    if config.remove_invalid_values == Some(true) {
        list.push(Box::new(tokens::RemoveInvalid));
    }
    if let Some((start, factor)) = config.exponential_decay_length_penalty {
        let start = start + lengths.prompt;
        list.push(Box::new(lengths::Decay { start, factor, ends: ends.to_vec() }));
    }
    if let Some(tokens) = &config.suppress_tokens {
        list.push(Box::new(tokens::Suppress { tokens: tokens.clone(), length: None }));
    }
    if let Some(tokens) = &config.begin_suppress_tokens {
        let forced = lengths.prompt == 1 && config.forced_bos_token_id.is_some();
        let length = Some(lengths.prompt + usize::from(forced));
        list.push(Box::new(tokens::Suppress { tokens: tokens.clone(), length }));
    }
    list.extend(own);
    if config.do_sample() {
        list.extend(warpers::warpers(config));
    }
    if config.renormalize_logits == Some(true) {
        list.push(Box::new(tokens::Normalise));
    }
    Ok(list)
}
