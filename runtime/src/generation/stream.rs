//! Text as its tokens arrive, never half a character.

use crate::Result;
use crate::text::Tokenizer;

/// Turns one text's tokens to text as they arrive.
///
/// A piece is held back until it is whole: a character may take several tokens. The pieces together are the text.
#[derive(Clone, Debug)]
pub struct TextStream<'a> {
    tokenizer: &'a Tokenizer,
    skip_special_tokens: bool,
    ids: Vec<i64>,
    /// Where the tokens begin that give the next piece its context.
    context: usize,
    /// Where the tokens begin that were not given yet.
    given: usize,
}

impl<'a> TextStream<'a> {
    /// An empty text; special tokens (`</s>`) are left out of it or not.
    pub fn new(tokenizer: &'a Tokenizer, skip_special_tokens: bool) -> Self {
        Self { tokenizer, skip_special_tokens, ids: Vec::new(), context: 0, given: 0 }
    }

    /// The text that a token completes; empty where it does not complete any.
    ///
    /// # Errors
    /// When the tokenizer cannot decode.
    pub fn push(&mut self, id: i64) -> Result<String> {
        self.ids.push(id);
        let piece = self.piece()?;
        Ok(match piece {
            Some(piece) if !piece.ends_with(char::REPLACEMENT_CHARACTER) => {
                self.context = self.given;
                self.given = self.ids.len();
                piece
            }
            _ => String::new(),
        })
    }

    /// What is left at the end.
    ///
    /// # Errors
    /// When the tokenizer cannot decode.
    pub fn finish(&mut self) -> Result<String> {
        let before = self.tokenizer.decode(&self.ids[self.context..self.given], self.skip_special_tokens)?;
        let whole = self.tokenizer.decode(&self.ids[self.context..], self.skip_special_tokens)?;
        let common = before.char_indices().zip(whole.chars()).take_while(|((_, a), b)| a == b);
        let piece = whole[common.map(|((at, a), _)| at + a.len_utf8()).last().unwrap_or(0)..].to_owned();
        self.context = self.ids.len();
        self.given = self.ids.len();
        Ok(piece)
    }

    /// What the tokens that were not given add to those before; none while they add nothing that stays.
    fn piece(&self) -> Result<Option<String>> {
        let before = self.tokenizer.decode(&self.ids[self.context..self.given], self.skip_special_tokens)?;
        let whole = self.tokenizer.decode(&self.ids[self.context..], self.skip_special_tokens)?;
        Ok(whole.strip_prefix(&before).filter(|piece| !piece.is_empty()).map(str::to_owned))
    }
}
