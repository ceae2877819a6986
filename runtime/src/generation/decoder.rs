//! What generation needs of a model: prefill, and decoding a token at a time.

use ndarray::Array2;

use super::prompt::Prompt;
use crate::Result;

/// A model that gives the logits of the next token, and remembers the tokens before.
pub trait Decoder {
    /// Prefill: runs whole prompts.
    ///
    /// Gives the logits of what follows each, `[batch, vocab_size]`.
    ///
    /// # Errors
    /// When the model cannot run.
    fn prefill(&mut self, prompt: &Prompt) -> Result<Array2<f32>>;

    /// A decoding step: adds one token to each row.
    ///
    /// Where `beam_idx` is given, row `i` first becomes a copy of what row `beam_idx[i]` was, with its caches; there may
    /// be more of them than rows. Gives logits `[rows, vocab_size]`, as many rows as `ids`.
    ///
    /// # Errors
    /// When the model cannot run.
    fn decode(&mut self, ids: &[i64], beam_idx: Option<&[usize]>) -> Result<Array2<f32>>;
}
