//! Timestamp tokens: where they may stand, and how far the segments go that they part.
//!
//! Reference: `WhisperTimeStampLogitsProcessor`, `WhisperGenerationMixin._retrieve_segment`.

use crate::generation::{Processor, Row};

/// Timestamps come in pairs, never go back, and come first (`WhisperTimeStampLogitsProcessor`).
pub(super) struct TimestampProcessor {
    /// The first timestamp token.
    pub timestamp_begin: usize,
    /// The end-of-sequence token.
    pub end: usize,
    /// The tokens before the text.
    pub prompt: usize,
    /// How late the first timestamp may be.
    pub max_initial_timestamp_index: Option<usize>,
}

impl Processor for TimestampProcessor {
    fn process(&self, row: Row<'_>, scores: &mut [f32]) {
        let first = self.timestamp_begin.min(scores.len());
        let forbid = |scores: &mut [f32]| scores.fill(f32::NEG_INFINITY);
        forbid(&mut scores[first.saturating_sub(1)..first]);
        let text = row.ids.get(self.prompt..).unwrap_or_default();
        let time = |token: &i64| usize::try_from(*token).ok().filter(|token| *token >= self.timestamp_begin);
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
            if let Some(most) = self.max_initial_timestamp_index {
                let after = (first + most + 1).min(scores.len());
                forbid(&mut scores[after..]);
            }
        }
        // A timestamp comes where all of them together are more probable than any one token of text.
        let largest = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let times: f64 = scores[first..].iter().map(|score| f64::from(score - largest).exp()).sum();
        let word = scores[..first].iter().copied().fold(f32::NEG_INFINITY, f32::max);
        if times > f64::from(word - largest).exp() {
            forbid(&mut scores[..first]);
        }
    }
}

/// How far the segments of one piece go (`_retrieve_segment`): how many of its tokens count, and how many frames on the
/// next piece begins.
///
/// `first` is the first timestamp token, of two frames each; `frames` are those of the piece.
pub(super) fn retrieve_segment(text: &[i64], first: i64, frames: usize) -> (usize, usize) {
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

    const TIMES: TimestampProcessor =
        TimestampProcessor { timestamp_begin: 6, end: 4, prompt: 1, max_initial_timestamp_index: Some(1) };

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
        assert_eq!(retrieve_segment(&[100, 1, 2, 104, 104, 3], 100, 50), (5, 8));
        assert_eq!(retrieve_segment(&[100, 1, 104, 104, 3, 110], 100, 50), (6, 50));
        assert_eq!(retrieve_segment(&[1, 2, 3], 100, 50), (3, 50));
        assert_eq!(retrieve_segment(&[], 100, 50), (0, 50));
    }
}
