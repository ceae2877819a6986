//! Rows of different lengths to tensors.

use std::borrow::Borrow;

use ndarray::Array2;

use super::{Encoding, Side, Tokenizer};
use crate::{Error, Result, Values};

/// How rows are brought to one length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Padding {
    /// At least this many tokens; otherwise as many as the longest row.
    pub length: Option<usize>,
    /// Rounds the length up.
    pub multiple_of: Option<usize>,
    /// Where to fill; by default where the tokenizer's configuration says.
    pub side: Option<Side>,
}

/// Padded rows, as a model takes them. All arrays are `[batch, sequence]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// Token ids.
    pub input_ids: Array2<i64>,
    /// 1 for tokens, 0 for padding.
    pub attention_mask: Array2<i64>,
    /// 0 for the first sequence, 1 for the second.
    pub token_type_ids: Array2<i64>,
    /// 1 for tokens of the template and padding.
    pub special_tokens_mask: Array2<i64>,
    /// First character, and the one after the last; `(0, 0)` for padding.
    pub offsets: Array2<(usize, usize)>,
    /// The word that the token is part of.
    pub word_ids: Array2<Option<u32>>,
    /// Tokens of padding before each row's first one.
    pub starts: Vec<usize>,
}

impl Tokenizer {
    /// Brings rows to one length.
    ///
    /// # Errors
    /// When rows differ in length and the tokenizer has no padding token.
    pub fn pad(&self, rows: &[impl Borrow<Encoding>], padding: &Padding) -> Result<Batch> {
        let rows: Vec<&Encoding> = rows.iter().map(Borrow::borrow).collect();
        let longest = rows.iter().map(|row| row.len()).max().unwrap_or(0);
        let multiple = padding.multiple_of.unwrap_or(1).max(1);
        let length = longest.max(padding.length.unwrap_or(0)).next_multiple_of(multiple);
        let ragged = rows.iter().any(|row| row.len() != length);
        let pad = match self.pad_token() {
            Some((_, id)) => id,
            None if ragged => {
                return Err(self.error(
                    format!("rows of up to {length} tokens cannot be padded: there is no pad_token"),
                    "name one in tokenizer_config.json (often the eos_token), or run the texts one by one",
                ));
            }
            None => 0,
        };
        let side = padding.side.unwrap_or(self.settings.padding_side);
        let shape = (rows.len(), length);
        let mut batch = Batch {
            input_ids: Array2::from_elem(shape, pad),
            attention_mask: Array2::zeros(shape),
            token_type_ids: Array2::from_elem(shape, self.settings.pad_type_id),
            special_tokens_mask: Array2::ones(shape),
            offsets: Array2::from_elem(shape, (0, 0)),
            word_ids: Array2::from_elem(shape, None),
            starts: Vec::with_capacity(rows.len()),
        };
        for (r, row) in rows.iter().enumerate() {
            let start = if side == Side::Left { length - row.len() } else { 0 };
            batch.starts.push(start);
            for i in 0..row.len() {
                let at = (r, start + i);
                batch.input_ids[at] = row.ids[i];
                batch.attention_mask[at] = 1;
                batch.token_type_ids[at] = row.type_ids[i];
                batch.special_tokens_mask[at] = i64::from(row.special[i]);
                batch.offsets[at] = row.offsets[i];
                batch.word_ids[at] = row.words[i];
            }
        }
        Ok(batch)
    }

    /// Fails when a token is beyond the model's embedding table.
    ///
    /// # Errors
    /// Names the token and the sizes of both vocabularies.
    pub fn check_vocabulary(&self, row: &Encoding, vocab_size: usize) -> Result<()> {
        let Some(id) =
            row.ids.iter().copied().find(|id| usize::try_from(*id).is_ok_and(|id| id >= vocab_size))
        else {
            return Ok(());
        };
        let token = self.token(id).unwrap_or_default();
        Err(Error::input(
            "input_ids",
            format!(
                "token `{token}` has id {id}, but the model's vocabulary has {vocab_size} tokens and the \
                 tokenizer's {}",
                self.vocab_size()
            ),
            format!("{} does not belong to this model: take both from one checkpoint", self.file().display()),
        ))
    }
}

impl Batch {
    /// The tensors by the names that models give them.
    pub fn into_values(self) -> Values {
        let named = [
            ("input_ids", self.input_ids),
            ("attention_mask", self.attention_mask),
            ("token_type_ids", self.token_type_ids),
        ];
        named.into_iter().map(|(name, a)| (name.to_string(), a.into_dyn().into())).collect()
    }
}
