//! From the logits of beginnings and ends to answers.

use super::{Answer, QuestionOptions};
use crate::tasks::characters::Characters;
use crate::tasks::scores::top;
use crate::text::Encoding;

/// What stands for tokens that cannot be part of an answer; the reference's number.
const EXCLUDED: f32 = -10000.0;

/// One window of a context, and how likely the answer begins and ends at each of its tokens.
pub(in crate::tasks) struct Span<'a> {
    row: &'a Encoding,
    context: usize,
    allowed: Vec<bool>,
    start: Vec<f32>,
    end: Vec<f32>,
    /// The probability that there is no answer.
    null: f32,
}

impl<'a> Span<'a> {
    /// `allowed` are the tokens that take part in the probabilities: the context's and the first.
    pub(in crate::tasks) fn new(
        row: &'a Encoding,
        context: usize,
        allowed: Vec<bool>,
        start: impl Iterator<Item = f32>,
        end: impl Iterator<Item = f32>,
    ) -> Self {
        let mut start = probabilities(start, &allowed);
        let mut end = probabilities(end, &allowed);
        let null = match (start.first_mut(), end.first_mut()) {
            (Some(start), Some(end)) => std::mem::take(start) * std::mem::take(end),
            _ => 0.0,
        };
        Self { row, context, allowed, start, end, null }
    }

    /// The probability that there is no answer in the window.
    pub(in crate::tasks) fn null(&self) -> f32 {
        self.null
    }

    /// The most probable pairs of first and last token with their probabilities, best first.
    pub(in crate::tasks) fn candidates(&self, count: usize, longest: usize) -> Vec<(usize, usize, f32)> {
        let mut pairs = Vec::new();
        let mut scores = Vec::new();
        for first in (0..self.start.len()).filter(|i| self.allowed[*i] && self.start[*i] > 0.0) {
            for last in first..self.end.len().min(first.saturating_add(longest)) {
                if self.allowed[last] && self.end[last] > 0.0 {
                    pairs.push((first, last));
                    scores.push(self.start[first] * self.end[last]);
                }
            }
        }
        top(&scores, count).into_iter().map(|i| (pairs[i].0, pairs[i].1, scores[i])).collect()
    }

    /// From the first character to the one after the last.
    fn characters(&self, first: usize, last: usize, align_to_words: bool) -> (usize, usize) {
        let word = |token: usize| self.row.word_span(self.row.words[token]?, self.context);
        match (word(first), word(last)) {
            (Some(first), Some(last)) if align_to_words => (first.0, last.1),
            _ => (self.row.offsets[first].0, self.row.offsets[last].1),
        }
    }
}

fn probabilities(logits: impl Iterator<Item = f32>, allowed: &[bool]) -> Vec<f32> {
    let logits: Vec<f32> =
        logits.zip(allowed).map(|(x, allowed)| if *allowed { x } else { EXCLUDED }).collect();
    crate::tasks::scores::softmax(&logits)
}

/// The answers of all windows of one context, best first.
///
/// Answers that read the same, but for upper and lower case, are one, and their scores add up.
pub(super) fn answers<'a>(
    windows: impl Iterator<Item = Span<'a>>,
    context: &Characters<'_>,
    options: &QuestionOptions,
) -> Vec<Answer> {
    // Some candidates become one answer once they are aligned to words.
    let count = if options.align_to_words {
        options.top_k.saturating_mul(2).saturating_add(10)
    } else {
        options.top_k
    };
    let mut answers: Vec<Answer> = Vec::new();
    let mut null = 1_000_000.0f32;
    for window in windows {
        null = null.min(window.null);
        for (first, last, score) in window.candidates(count, options.max_answer_len) {
            let (start, end) = window.characters(first, last, options.align_to_words);
            let text = context.slice(start, end);
            let same = |answer: &&mut Answer| answer.answer.to_lowercase() == text.to_lowercase();
            match answers.iter_mut().find(same) {
                Some(answer) => answer.score += score,
                None => answers.push(Answer { score, start, end, answer: text.to_string() }),
            }
        }
    }
    if options.handle_impossible_answer {
        answers.push(Answer { score: null, start: 0, end: 0, answer: String::new() });
    }
    answers.sort_by(|a, b| b.score.total_cmp(&a.score));
    answers.truncate(options.top_k);
    answers
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTEXT: &str = "Ada lived in London.";

    /// `[CLS] who [SEP] ada lived in lon ##don . [SEP]`
    fn row() -> Encoding {
        let offsets =
            vec![(0, 0), (0, 3), (0, 0), (0, 3), (4, 9), (10, 12), (13, 16), (16, 19), (19, 20), (0, 0)];
        let words = vec![None, Some(0), None, Some(0), Some(1), Some(2), Some(3), Some(3), Some(4), None];
        let sequences = [None, Some(0), None, Some(1), Some(1), Some(1), Some(1), Some(1), Some(1), None];
        Encoding {
            ids: (0..10).collect(),
            type_ids: vec![0; 10],
            special: vec![false; 10],
            offsets,
            words,
            sequences: sequences.to_vec(),
            sample: 0,
        }
    }

    fn window(row: &Encoding, start: [f32; 10], end: [f32; 10]) -> Span<'_> {
        let allowed = (0..10).map(|i| i == 0 || row.sequences[i] == Some(1)).collect();
        Span::new(row, 1, allowed, start.into_iter(), end.into_iter())
    }

    fn logits(pairs: &[(usize, f32)]) -> [f32; 10] {
        let mut all = [-5.0; 10];
        pairs.iter().for_each(|(i, x)| all[*i] = *x);
        all
    }

    fn find(start: &[(usize, f32)], end: &[(usize, f32)], options: &QuestionOptions) -> Vec<Answer> {
        let row = row();
        let windows = [window(&row, logits(start), logits(end))].into_iter();
        answers(windows, &Characters::new(CONTEXT), options)
    }

    #[test]
    fn answers_are_whole_words_unless_asked_otherwise() {
        let best = &find(&[(6, 5.0)], &[(6, 5.0)], &QuestionOptions::default())[0];
        assert_eq!((best.answer.as_str(), best.start, best.end), ("London", 13, 19));
        let options = QuestionOptions { align_to_words: false, ..QuestionOptions::default() };
        let best = &find(&[(6, 5.0)], &[(6, 5.0)], &options)[0];
        assert_eq!((best.answer.as_str(), best.start, best.end), ("Lon", 13, 16));
    }

    #[test]
    fn scores_of_one_word_add_up() {
        let one = find(&[(6, 5.0)], &[(6, 5.0)], &QuestionOptions::default())[0].score;
        let two = find(&[(6, 5.0)], &[(6, 5.0), (7, 5.0)], &QuestionOptions::default())[0].score;
        assert!((one - two).abs() < 0.05 && two > 0.9, "{one} {two}");
    }

    #[test]
    fn the_question_is_never_the_answer_and_ends_do_not_come_first() {
        let options = QuestionOptions { top_k: 50, ..QuestionOptions::default() };
        for answer in find(&[(1, 9.0), (5, 4.0)], &[(1, 9.0), (4, 4.0)], &options) {
            assert!(answer.start < answer.end && CONTEXT.contains(&answer.answer), "{answer:?}");
        }
    }

    #[test]
    fn no_answer_is_an_answer_when_asked_for() {
        let options = QuestionOptions { handle_impossible_answer: true, ..QuestionOptions::default() };
        let best = &find(&[(0, 9.0)], &[(0, 9.0)], &options)[0];
        assert_eq!((best.answer.as_str(), best.start, best.end), ("", 0, 0));
        assert!(best.score > 0.9);
        let best = &find(&[(0, 9.0), (3, 1.0)], &[(0, 9.0), (3, 1.0)], &QuestionOptions::default())[0];
        assert_eq!(best.answer, "Ada");
    }

    #[test]
    fn long_answers_are_left_out() {
        let options = QuestionOptions { max_answer_len: 2, ..QuestionOptions::default() };
        let best = &find(&[(3, 5.0)], &[(8, 5.0), (4, 1.0)], &options)[0];
        assert_eq!(best.answer, "Ada lived");
    }
}
