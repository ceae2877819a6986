//! The decoding steps that generation needs of a model.

use ndarray::Array2;

use super::prompt::Prompt;
use crate::Result;

/// A model that gives the scores of the next token, a step at a time, and remembers the steps before.
pub trait Steps {
    /// Begins: runs whole prompts.
    ///
    /// Gives the scores of what follows each, `[batch, vocab_size]`.
    ///
    /// # Errors
    /// When the model cannot run.
    fn start(&mut self, prompt: &Prompt) -> Result<Array2<f32>>;

    /// Goes on: adds one token to each row.
    ///
    /// Where `parents` is given, row `i` first becomes a copy of what row `parents[i]` was, with its caches; there may
    /// be more of them than rows. Gives `[rows, vocab_size]`, as many rows as `ids`.
    ///
    /// # Errors
    /// When the model cannot run.
    fn step(&mut self, ids: &[i64], parents: Option<&[usize]>) -> Result<Array2<f32>>;
}
