//! Weights of a prompt's words, as user interfaces write them: `(word:1.2)`, `(word)` for 1.1, `[word]` for 1 over 1.1; brackets may
//! stand within others, and a backslash before one leaves it a part of the text.
//!
//! A token's hidden state is moved away from what it is at that place of the empty text, or towards it: the empty text's, and the
//! weight times the difference. Tokens that open, close and fill up a text stay as they are, and so does the pooled text.

use ndarray::{Array2, ArrayD};

use crate::text::Encoding;

/// A bracket without a number is worth so much.
const BRACKET: f32 = 1.1;

/// A prompt without its brackets, and the weight of each of its characters.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct WeightedPrompt {
    pub text: String,
    pub weights: Vec<f32>,
}

impl WeightedPrompt {
    /// Reads brackets; those that nothing closes end with the text.
    pub(super) fn read(prompt: &str) -> Self {
        let letters: Vec<char> = prompt.chars().collect();
        let mut read = Self { text: String::new(), weights: vec![] };
        let (mut round, mut square) = (vec![], vec![]);
        let mut place = 0;
        while let Some(&letter) = letters.get(place) {
            place += 1;
            match letter {
                '\\' if matches!(letters.get(place), Some('(' | ')' | '[' | ']' | '\\')) => {
                    read.push(letters[place]);
                    place += 1;
                }
                '(' => round.push(read.weights.len()),
                '[' => square.push(read.weights.len()),
                ')' if !round.is_empty() => read.weigh(round.pop(), BRACKET),
                ']' if !square.is_empty() => read.weigh(square.pop(), 1.0 / BRACKET),
                ':' if !round.is_empty() => match number(&letters[place..]) {
                    Some((weight, length)) => {
                        read.weigh(round.pop(), weight);
                        place += length;
                    }
                    None => read.push(letter),
                },
                letter => read.push(letter),
            }
        }
        round.into_iter().for_each(|first| read.weigh(Some(first), BRACKET));
        square.into_iter().for_each(|first| read.weigh(Some(first), 1.0 / BRACKET));
        read
    }

    fn push(&mut self, letter: char) {
        self.text.push(letter);
        self.weights.push(1.0);
    }

    fn weigh(&mut self, first: Option<usize>, weight: f32) {
        let first = first.unwrap_or(self.weights.len());
        self.weights[first..].iter_mut().for_each(|x| *x *= weight);
    }
}

/// A number up to a closing bracket, and how many characters these are.
fn number(letters: &[char]) -> Option<(f32, usize)> {
    let end = letters.iter().position(|letter| *letter == ')')?;
    let text: String = letters[..end].iter().collect();
    let number: f32 = text.trim().parse().ok()?;
    number.is_finite().then_some((number, end + 1))
}

/// The weight of each token of a row: that of the first of its characters that is no space.
pub(super) fn of_tokens(encoding: &Encoding, text: &str, weights: &[f32], length: usize) -> Vec<f32> {
    let letters: Vec<char> = text.chars().collect();
    let weight = |token: usize| {
        let (first, end) = encoding.offsets.get(token).copied().unwrap_or_default();
        let seen =
            (first..end).find(|place| letters.get(*place).is_some_and(|letter| !letter.is_whitespace()));
        match encoding.special.get(token) {
            Some(false) => seen.and_then(|place| weights.get(place)).copied().unwrap_or(1.0),
            _ => 1.0,
        }
    };
    (0..length).map(weight).collect()
}

/// Hidden states `[prompts, tokens, width]` by the tokens' weights, away from those of the empty text `[1, tokens, width]`.
pub(super) fn weighed(mut states: ArrayD<f32>, empty: &ArrayD<f32>, weights: &Array2<f32>) -> ArrayD<f32> {
    for (index, state) in states.indexed_iter_mut() {
        let weight = weights.get([index[0], index[1]]).copied().unwrap_or(1.0);
        if weight != 1.0 {
            let none = empty[[0, index[1], index[2]]];
            *state = none + weight * (*state - none);
        }
    }
    states
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(prompt: &str) -> Vec<(String, f32)> {
        let read = WeightedPrompt::read(prompt);
        let mut parts: Vec<(String, f32)> = vec![];
        for (letter, weight) in read.text.chars().zip(read.weights) {
            match parts.last_mut() {
                Some((text, last)) if (*last - weight).abs() < 1e-6 => text.push(letter),
                _ => parts.push((letter.to_string(), weight)),
            }
        }
        parts
    }

    fn parts(parts: &[(&str, f32)]) -> Vec<(String, f32)> {
        parts.iter().map(|(text, weight)| ((*text).to_owned(), *weight)).collect()
    }

    #[test]
    fn brackets_are_weights() {
        assert_eq!(read("plain, text: 3"), parts(&[("plain, text: 3", 1.0)]));
        assert_eq!(read("a (red:1.5) disc"), parts(&[("a ", 1.0), ("red", 1.5), (" disc", 1.0)]));
        assert_eq!(read("(red)"), parts(&[("red", 1.1)]));
        assert_eq!(read("((red) disc)"), parts(&[("red", 1.1 * 1.1), (" disc", 1.1)]));
        assert_eq!(
            read("[red] (a (b:2):0.5)"),
            parts(&[("red", 1.0 / 1.1), (" ", 1.0), ("a ", 0.5), ("b", 1.0)])
        );
    }

    #[test]
    fn what_is_no_weight_is_text() {
        assert_eq!(read(r"\(red\) \[x\]"), parts(&[("(red) [x]", 1.0)]));
        assert_eq!(read("(at 10:30 sharp)"), parts(&[("at 10:30 sharp", 1.1)]));
        assert_eq!(read("red) ]"), parts(&[("red) ]", 1.0)]));
        assert_eq!(read("a (red"), parts(&[("a ", 1.0), ("red", 1.1)]));
        assert_eq!(read("(:)"), parts(&[(":", 1.1)]));
    }

    #[test]
    fn states_move_away_from_the_empty_text() {
        let states = ndarray::arr3(&[[[1.0], [3.0]]]).into_dyn();
        let empty = ndarray::arr3(&[[[9.0], [2.0]]]).into_dyn();
        let made = weighed(states, &empty, &ndarray::arr2(&[[1.0, 1.5]]));
        assert_eq!(made, ndarray::arr3(&[[[1.0], [3.5]]]).into_dyn());
    }
}
