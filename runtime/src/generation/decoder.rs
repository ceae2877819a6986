//! What generation needs of a model: prefill, and decoding a token at a time, or several to choose from.

use ndarray::Array2;

use super::model::ModelDecoder;
use super::prompt::Prompt;
use crate::{Error, Result};

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

    /// Adds several tokens to the only row, all in one run, as assisted decoding does.
    ///
    /// Gives the logits of what follows each, `[tokens, vocab_size]`.
    ///
    /// # Errors
    /// When there are several rows, or the model cannot do this or cannot run.
    fn decode_many(&mut self, ids: &[i64]) -> Result<Array2<f32>> {
        let _ = ids;
        Err(no_assistance())
    }

    /// The model that it runs, for drafters that read more of it than tokens; none of decoders of other kinds.
    fn as_model(&self) -> Option<&ModelDecoder<'_>> {
        None
    }

    /// Takes back the last tokens of those that [`Decoder::decode_many`] added since this was called last; none for 0, after which those that
    /// were added stay.
    ///
    /// # Errors
    /// When the model cannot do this.
    fn crop(&mut self, count: usize) -> Result<()> {
        let _ = count;
        Err(no_assistance())
    }
}

fn no_assistance() -> Error {
    let problem = "needs a decoder that takes several tokens in one run, and takes some of them back";
    Error::input(
        "assistant_model",
        problem,
        "generate without an assistant and without `prompt_lookup_num_tokens`",
    )
}
