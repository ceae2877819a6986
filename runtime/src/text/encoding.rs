//! One encoded row, before it is padded.

/// The tokens of one text or pair, or of one window of a long one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Encoding {
    /// Token ids.
    pub ids: Vec<i64>,
    /// 0 for the first sequence, 1 for the second, as the tokenizer's template says.
    pub type_ids: Vec<i64>,
    /// Whether the template added the token.
    pub special: Vec<bool>,
    /// Where the token stands in its text: first character, and the one after the last.
    pub offsets: Vec<(usize, usize)>,
    /// The word that the token is part of, counted within its sequence.
    pub words: Vec<Option<u32>>,
    /// The sequence that the token is part of: 0, 1, or none for what the template added.
    pub sequences: Vec<Option<usize>>,
    /// Which of the texts it was made from.
    pub sample: usize,
}

impl Encoding {
    pub(super) fn new(encoding: &tokenizers::Encoding, sample: usize) -> Self {
        Self {
            ids: encoding.get_ids().iter().map(|id| i64::from(*id)).collect(),
            type_ids: encoding.get_type_ids().iter().map(|id| i64::from(*id)).collect(),
            special: encoding.get_special_tokens_mask().iter().map(|m| *m != 0).collect(),
            offsets: encoding.get_offsets().to_vec(),
            words: encoding.get_word_ids().to_vec(),
            sequences: encoding.get_sequence_ids(),
            sample,
        }
    }

    /// The number of tokens.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Whether there are no tokens at all.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// Whether there is nothing but what the template added: the text was empty, or white space.
    pub fn is_blank(&self) -> bool {
        self.special.iter().all(|special| *special)
    }

    /// From the first character of a word to the one after its last, in the text of its sequence.
    pub fn word_span(&self, word: u32, sequence: usize) -> Option<(usize, usize)> {
        let mut tokens =
            (0..self.len()).filter(|i| self.words[*i] == Some(word) && self.sequences[*i] == Some(sequence));
        let first = tokens.next()?;
        let last = tokens.next_back().unwrap_or(first);
        Some((self.offsets[first].0, self.offsets[last].1))
    }
}
