//! Token ids to text.

use tokenizers::{Decoder, ModelWrapper};

use super::Tokenizer;
use crate::{Error, Result};

/// The replacements of the reference's `clean_up_tokenization`, in its order.
const CLEAN_UP: [(&str, &str); 10] = [
    (" .", "."),
    (" ?", "?"),
    (" !", "!"),
    (" ,", ","),
    (" ' ", "'"),
    (" n't", "n't"),
    (" 'm", "'m"),
    (" 's", "'s"),
    (" 've", "'ve"),
    (" 're", "'re"),
];

/// Takes out spaces before punctuation and within contractions, as the reference's `clean_up_tokenization`.
pub(crate) fn clean_up(text: String) -> String {
    CLEAN_UP.iter().fold(text, |text, (from, to)| text.replace(from, to))
}

impl Tokenizer {
    /// The text of token ids, with or without special tokens. Ids without a token are passed over.
    ///
    /// # Errors
    /// When an id is negative or the tokenizer's decoder fails.
    pub fn decode(&self, ids: &[i64], skip_special_tokens: bool) -> Result<String> {
        self.decode_as(ids, skip_special_tokens, None)
    }

    /// As [`Tokenizer::decode`]; the spaces before punctuation go as `cleaned` says, or else as the tokenizer's
    /// configuration says.
    ///
    /// # Errors
    /// As [`Tokenizer::decode`].
    pub fn decode_as(&self, ids: &[i64], skip_special_tokens: bool, cleaned: Option<bool>) -> Result<String> {
        let ids: Vec<u32> = ids
            .iter()
            .map(|id| {
                u32::try_from(*id).map_err(|_| {
                    Error::input("input_ids", format!("{id} is not a token id"), "ids count from 0")
                })
            })
            .collect::<Result<_>>()?;
        let text = self.core.decode(&ids, skip_special_tokens).map_err(|e| self.undecodable(&e))?;
        // The reference leaves BPE alone: its tokens carry their own spaces.
        if cleaned.unwrap_or(self.settings.clean_up_tokenization_spaces)
            && !matches!(self.core.get_model(), ModelWrapper::BPE(_))
        {
            return Ok(clean_up(text));
        }
        Ok(text)
    }

    /// Joins tokens to text, as `convert_tokens_to_string` of the reference.
    ///
    /// # Errors
    /// When the tokenizer's decoder fails.
    pub fn tokens_to_string(&self, tokens: &[String]) -> Result<String> {
        match self.core.get_decoder() {
            Some(decoder) => decoder.decode(tokens.to_vec()).map_err(|e| self.undecodable(&e)),
            None => Ok(tokens.join(" ")),
        }
    }

    fn undecodable(&self, error: &tokenizers::Error) -> Error {
        self.error(format!("the decoder failed: {error}"), "try the same ids with the reference")
    }
}
