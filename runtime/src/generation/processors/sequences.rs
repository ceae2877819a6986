//! Sequences of tokens that must not occur, or that become likelier or less likely.

use std::collections::HashMap;

use super::{IMPOSSIBLE, Processor, Row};
use crate::generation::prompt::Prompt;
use crate::{Error, Result};

/// Adds to the score of a sequence's last token where the text ends with what is before it.
/// Reference: `SequenceBiasLogitsProcessor`, `NoBadWordsLogitsProcessor`.
pub(super) struct Bias {
    /// What comes before, the last token, what is added.
    sequences: Vec<(Vec<i64>, usize, f32)>,
}

impl Bias {
    pub(super) fn new(biases: &[(Vec<i64>, f64)]) -> Result<Self> {
        let sequences = biases.iter().map(|(ids, bias)| Self::split("sequence_bias", ids, *bias as f32));
        let mut sequences: Vec<_> = sequences.collect::<Result<_>>()?;
        // The last of equal sequences counts, as in the reference's dictionary.
        let mut kept: Vec<(Vec<i64>, usize, f32)> = Vec::new();
        for sequence in sequences.drain(..) {
            match kept.iter_mut().find(|known| (&known.0, known.1) == (&sequence.0, sequence.1)) {
                Some(known) => known.2 = sequence.2,
                None => kept.push(sequence),
            }
        }
        Ok(Self { sequences: kept })
    }

    /// Forbids sequences, but for the tokens that end a text.
    pub(super) fn forbidding(words: &[Vec<i64>], ends: &[i64]) -> Result<Self> {
        let allowed = |word: &Vec<i64>| word.len() == 1 && ends.contains(&word[0]);
        let words = words.iter().filter(|word| !allowed(word));
        let sequences = words.map(|word| Self::split("bad_words_ids", word, IMPOSSIBLE));
        Ok(Self { sequences: sequences.collect::<Result<_>>()? })
    }

    fn split(name: &str, ids: &[i64], bias: f32) -> Result<(Vec<i64>, usize, f32)> {
        let wrong = || {
            Error::input(name, format!("{ids:?} is not a sequence of tokens"), "give token ids, one at least")
        };
        let (last, before) = ids.split_last().ok_or_else(wrong)?;
        Ok((before.to_vec(), usize::try_from(*last).map_err(|_| wrong())?, bias))
    }
}

impl Processor for Bias {
    fn process(&self, row: Row<'_>, scores: &mut [f32]) {
        for (before, last, bias) in &self.sequences {
            if row.ids.ends_with(before)
                && let Some(score) = scores.get_mut(*last)
            {
                *score += bias;
            }
        }
    }
}

/// No sequence of this length occurs twice. Reference: `NoRepeatNGramLogitsProcessor`.
pub(super) struct NoRepeat {
    pub(super) size: usize,
}

impl Processor for NoRepeat {
    fn process(&self, row: Row<'_>, scores: &mut [f32]) {
        let Some(start) = (row.ids.len() + 1).checked_sub(self.size) else { return };
        let begun = &row.ids[start..];
        for window in row.ids.windows(self.size) {
            if let Some((last, before)) = window.split_last()
                && before == begun
                && let Some(score) = scores.get_mut(*last as usize)
            {
                *score = IMPOSSIBLE;
            }
        }
    }
}

/// No sequence of this length of the encoder's text occurs; of the prompt where there is no encoder.
/// Reference: `EncoderNoRepeatNGramLogitsProcessor`.
pub(super) struct EncoderNoRepeat {
    size: usize,
    /// For each prompt, what follows each beginning.
    follows: Vec<HashMap<Vec<i64>, Vec<usize>>>,
}

impl EncoderNoRepeat {
    pub(super) fn new(size: usize, prompt: &Prompt) -> Self {
        let follows = prompt.encoder_rows().into_iter().map(|ids| {
            let mut follows: HashMap<Vec<i64>, Vec<usize>> = HashMap::new();
            for window in ids.windows(size) {
                if let Some((last, before)) = window.split_last() {
                    follows.entry(before.to_vec()).or_default().push(*last as usize);
                }
            }
            follows
        });
        Self { size, follows: follows.collect() }
    }
}

impl Processor for EncoderNoRepeat {
    fn process(&self, row: Row<'_>, scores: &mut [f32]) {
        let Some(start) = (row.ids.len() + 1).checked_sub(self.size) else { return };
        for last in self.follows[row.prompt].get(&row.ids[start..]).into_iter().flatten() {
            if let Some(score) = scores.get_mut(*last) {
                *score = IMPOSSIBLE;
            }
        }
    }
}
