//! Texts in passages: whole paragraphs as far as they fit, else sentences, else words.

use serde::{Deserialize, Serialize};

/// A piece of a text that is embedded and found as one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Passage {
    /// Where it comes from: the file's path from the folder that was indexed, with `/`.
    pub source: String,
    /// Where it begins in that text, in bytes.
    pub start: usize,
    /// Its text.
    pub text: String,
}

/// How texts are cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Splitting {
    /// The most words of a passage. 180 words are about 256 tokens, what all-MiniLM-L6-v2 looks at.
    pub words: usize,
    /// How many words of the passage before are repeated, so that no sentence loses what it refers to.
    pub overlap: usize,
}

impl Default for Splitting {
    fn default() -> Self {
        Self { words: 180, overlap: 30 }
    }
}

impl Splitting {
    /// The passages of a text.
    pub fn passages(&self, source: &str, text: &str) -> Vec<Passage> {
        let words = words(text);
        let most = self.words.max(1);
        let (mut passages, mut from) = (Vec::new(), 0);
        while from < words.len() {
            let to = end(text, &words, from, (from + most).min(words.len()));
            let (start, stop) = (words[from].0, words[to - 1].1);
            passages.push(Passage { source: source.to_owned(), start, text: text[start..stop].to_owned() });
            if to == words.len() {
                break;
            }
            // At least one word further, however much is repeated.
            from = to.saturating_sub(self.overlap).max(from + 1);
        }
        passages
    }
}

/// The words' places, in bytes.
fn words(text: &str) -> Vec<(usize, usize)> {
    let start = |word: &str| word.as_ptr() as usize - text.as_ptr() as usize;
    text.split_whitespace().map(|word| (start(word), start(word) + word.len())).collect()
}

/// Where a passage of the words `from..most` ends: behind the last paragraph in its second half, else behind the last sentence
/// there, else where it must.
fn end(text: &str, words: &[(usize, usize)], from: usize, most: usize) -> usize {
    if most == words.len() {
        return most;
    }
    let half = from + (most - from).div_ceil(2);
    let behind = |ends: fn(&str, &str) -> bool| {
        (half..=most).rev().find(|&to| {
            let (start, stop) = words[to - 1];
            ends(&text[start..stop], &text[stop..words[to].0])
        })
    };
    let paragraph = behind(|_, gap| gap.bytes().filter(|&byte| byte == b'\n').count() > 1);
    let sentence = || {
        behind(|word, _| {
            word.trim_end_matches(['"', '\'', ')', '”', '’']).ends_with(['.', '!', '?', '。', '！', '？'])
        })
    };
    paragraph.or_else(sentence).unwrap_or(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(splitting: Splitting, text: &str) -> Vec<String> {
        splitting.passages("a.txt", text).into_iter().map(|passage| passage.text).collect()
    }

    #[test]
    fn passages_end_with_paragraphs_then_sentences_then_anywhere() {
        let five = Splitting { words: 5, overlap: 0 };
        assert_eq!(texts(five, "one two three\n\nfour five six"), ["one two three", "four five six"]);
        assert_eq!(texts(five, "one two. three four. five six"), ["one two. three four.", "five six"]);
        assert_eq!(texts(five, "a b c d e f g"), ["a b c d e", "f g"]);
        assert_eq!(texts(five, " \n "), [""; 0]);
    }

    #[test]
    fn words_are_repeated_and_places_are_kept() {
        let text = "a b c d e f";
        let passages = Splitting { words: 3, overlap: 1 }.passages("x", text);
        let seen: Vec<_> = passages.iter().map(|passage| passage.text.as_str()).collect();
        assert_eq!(seen, ["a b c", "c d e", "e f"]);
        assert!(passages.iter().all(|passage| text[passage.start..].starts_with(&passage.text)));
        // More repeated than there is: still every step goes on.
        assert_eq!(texts(Splitting { words: 2, overlap: 9 }, "a b c"), ["a b", "b c"]);
        assert_eq!(texts(Splitting { words: 0, overlap: 0 }, "ä ö"), ["ä", "ö"]);
    }
}
