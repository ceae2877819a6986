//! Prompts: rows of token ids, padded on the left.

use ndarray::Array2;

use crate::{Error, Result};

/// The beginnings of a batch's texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prompt {
    /// Token ids `[batch, length]`, padded on the left.
    pub input_ids: Array2<i64>,
    /// 1 for tokens, 0 for what fills rows, `[batch, length]`.
    pub attention_mask: Array2<i64>,
    /// The encoder's tokens `[batch, encoder_length]` of an encoder-decoder.
    pub encoder_input_ids: Option<Array2<i64>>,
}

impl Prompt {
    /// Brings rows to one length by filling them on the left.
    ///
    /// # Errors
    /// When there are no rows, one is empty, or lengths differ and there is nothing to fill with.
    pub fn new(rows: &[Vec<i64>], pad_token_id: Option<i64>) -> Result<Self> {
        let length = rows.iter().map(Vec::len).max().unwrap_or(0);
        if rows.iter().any(Vec::is_empty) || length == 0 {
            let help = "give at least one token; the token that begins texts is one";
            return Err(Error::input("input_ids", "a prompt has no tokens", help));
        }
        let pad = match pad_token_id {
            Some(pad) => pad,
            None if rows.iter().all(|row| row.len() == length) => 0,
            None => {
                let help = "name a `pad_token_id`, or run the prompts one by one";
                return Err(Error::input(
                    "input_ids",
                    "prompts differ in length, and nothing fills them",
                    help,
                ));
            }
        };
        let mut prompt = Self {
            input_ids: Array2::from_elem((rows.len(), length), pad),
            attention_mask: Array2::zeros((rows.len(), length)),
            encoder_input_ids: None,
        };
        for (r, row) in rows.iter().enumerate() {
            for (i, id) in row.iter().enumerate() {
                let at = (r, length - row.len() + i);
                prompt.input_ids[at] = *id;
                prompt.attention_mask[at] = 1;
            }
        }
        Ok(prompt)
    }

    /// An encoder-decoder's: every answer begins with the same token.
    pub fn decoder(start: i64, encoder_input_ids: Array2<i64>) -> Self {
        let shape = (encoder_input_ids.nrows(), 1);
        Self {
            input_ids: Array2::from_elem(shape, start),
            attention_mask: Array2::ones(shape),
            encoder_input_ids: Some(encoder_input_ids),
        }
    }

    /// The number of prompts.
    pub fn len(&self) -> usize {
        self.input_ids.nrows()
    }

    /// Whether there are no prompts.
    pub fn is_empty(&self) -> bool {
        self.input_ids.is_empty()
    }

    /// The tokens in a row.
    pub fn length(&self) -> usize {
        self.input_ids.ncols()
    }

    /// The place of each token among its row's own, 0 for what fills it: `[batch, length]`.
    pub fn position_ids(&self) -> Array2<i64> {
        let mut positions = self.attention_mask.clone();
        for mut row in positions.rows_mut() {
            let mut next = 0;
            for place in &mut row {
                let own = *place != 0;
                *place = if own { next } else { 0 };
                next += i64::from(own);
            }
        }
        positions
    }

    /// What fills each row before its first token.
    pub(crate) fn starts(&self) -> Vec<usize> {
        let rows = self.attention_mask.rows();
        rows.into_iter().map(|row| row.iter().position(|mask| *mask != 0).unwrap_or(0)).collect()
    }

    /// The rows as lists.
    pub(crate) fn rows(&self) -> Vec<Vec<i64>> {
        self.input_ids.rows().into_iter().map(|row| row.to_vec()).collect()
    }

    /// The encoder's rows; the prompts where there is no encoder.
    pub(crate) fn encoder_rows(&self) -> Vec<Vec<i64>> {
        match &self.encoder_input_ids {
            Some(ids) => ids.rows().into_iter().map(|row| row.to_vec()).collect(),
            None => self.rows(),
        }
    }
}

#[cfg(test)]
mod tests {
    use ndarray::array;

    use super::*;

    #[test]
    fn rows_are_filled_on_the_left() {
        let prompt = Prompt::new(&[vec![5, 6, 7], vec![8]], Some(9)).unwrap();
        assert_eq!(prompt.input_ids, array![[5, 6, 7], [9, 9, 8]]);
        assert_eq!(prompt.attention_mask, array![[1, 1, 1], [0, 0, 1]]);
        assert_eq!(prompt.position_ids(), array![[0, 1, 2], [0, 0, 0]]);
        assert_eq!(prompt.starts(), [0, 2]);
        assert!(Prompt::new(&[vec![5], vec![]], Some(9)).is_err());
        assert!(Prompt::new(&[vec![5], vec![6, 7]], None).is_err());
        assert!(Prompt::new(&[vec![5], vec![6]], None).is_ok());
    }
}
