//! Tokens of time within a text: where they may stand, and where they part it.
//!
//! Reference: `WhisperTimeStampLogitsProcessor`, `WhisperGenerationMixin._retrieve_segment`.

use crate::generation::{Processor, Row};

/// Times come in pairs, never go back, and come first.
pub(super) struct Times {
    /// The first token that is a time.
    pub first: usize,
    /// The token that ends texts.
    pub end: usize,
    /// The tokens before the text.
    pub prompt: usize,
    /// How late the first time may be.
    pub latest_start: Option<usize>,
}

impl Processor for Times {
    fn process(&self, row: Row<'_>, scores: &mut [f32]) {
        let first = self.first.min(scores.len());
        let forbid = |scores: &mut [f32]| scores.fill(f32::NEG_INFINITY);
        forbid(&mut scores[first.saturating_sub(1)..first]);
        let text = row.ids.get(self.prompt..).unwrap_or_default();
        let time = |token: &i64| usize::try_from(*token).ok().filter(|token| *token >= self.first);
        let last = text.last().and_then(time);
        let paired = text.len() < 2 || time(&text[text.len() - 2]).is_some();
        if last.is_some() {
            let end = self.end.min(scores.len());
            forbid(if paired { &mut scores[first..] } else { &mut scores[..end] });
        }
        if let Some(latest) = text.iter().rev().find_map(time) {
            let earliest = if last.is_some() && !paired { latest } else { latest + 1 };
            let earliest = earliest.clamp(first, scores.len());
            forbid(&mut scores[first..earliest]);
        }
        if text.is_empty() {
            forbid(&mut scores[..first]);
            if let Some(most) = self.latest_start {
                let after = (first + most + 1).min(scores.len());
                forbid(&mut scores[after..]);
            }
        }
        // A time comes where all times together are likelier than any one word.
        let largest = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let times: f64 = scores[first..].iter().map(|score| f64::from(score - largest).exp()).sum();
        let word = scores[..first].iter().copied().fold(f32::NEG_INFINITY, f32::max);
        if times > f64::from(word - largest).exp() {
            forbid(&mut scores[..first]);
        }
    }
}

/// How far a text of one piece goes: how many of its tokens count, and how many frames on the next piece begins.
///
/// `first` is the first token that is a time, of two frames each; `frames` are those of the piece.
pub(super) fn heard(text: &[i64], first: i64, frames: usize) -> (usize, usize) {
    let time = |index: usize| text[index] >= first;
    let last_pair = (1..text.len()).rev().find(|&index| time(index - 1) && time(index));
    let length = text.len();
    let single_ending = length >= 2 && !time(length - 2) && time(length - 1);
    match last_pair {
        // What comes after the last pair was cut off in the middle.
        Some(index) if !single_ending => {
            let position = usize::try_from(text[index - 1] - first).unwrap_or_default();
            (index + 1, 2 * position)
        }
        _ => (length, frames),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMES: Times = Times { first: 6, end: 4, prompt: 1, latest_start: Some(1) };

    /// The tokens that may follow.
    fn possible(ids: &[i64], mut scores: [f32; 9]) -> Vec<usize> {
        TIMES.process(Row { prompt: 0, ids }, &mut scores);
        (0..9).filter(|token| scores[*token].is_finite()).collect()
    }

    #[test]
    fn times_begin_pair_and_do_not_go_back() {
        let even = [0.0; 9];
        let word = [9.0, 9.0, 9.0, 9.0, 9.0, 9.0, 0.0, 0.0, 0.0];
        assert_eq!(possible(&[5], even), [6, 7]);
        assert_eq!(possible(&[5, 6], even), [0, 1, 2, 3, 4]);
        assert_eq!(possible(&[5, 6, 0], word), [0, 1, 2, 3, 4, 7, 8]);
        assert_eq!(possible(&[5, 6, 0], even), [7, 8]);
        assert_eq!(possible(&[5, 6, 0, 7], even), [7, 8]);
        assert_eq!(possible(&[5, 6, 0, 7, 7], even), [0, 1, 2, 3, 4]);
    }

    #[test]
    fn a_text_counts_up_to_its_last_pair_of_times() {
        assert_eq!(heard(&[100, 1, 2, 104, 104, 3], 100, 50), (5, 8));
        assert_eq!(heard(&[100, 1, 104, 104, 3, 110], 100, 50), (6, 50));
        assert_eq!(heard(&[1, 2, 3], 100, 50), (3, 50));
        assert_eq!(heard(&[], 100, 50), (0, 50));
    }
}
