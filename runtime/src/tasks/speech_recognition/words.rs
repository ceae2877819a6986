//! Tokens as words, with their times.
//!
//! Reference: `transformers.models.whisper.tokenization_whisper._combine_tokens_into_words`.

use crate::Result;
use crate::text::Tokenizer;

const PREPENDED: &str = "\"'“¡¿([{-";
const APPENDED: &str = "\"'.。,，!！?？:：”)]}、";
const PUNCTUATION: &str = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~";
/// Languages that put no spaces between words.
const UNSPACED: [&str; 6] = ["chinese", "japanese", "thai", "lao", "myanmar", "cantonese"];

/// A word and the places of its tokens.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Word {
    pub text: String,
    pub tokens: Vec<usize>,
}

/// The words that tokens write in a language.
pub(super) fn words(tokenizer: &Tokenizer, tokens: &[i64], language: Option<&str>) -> Result<Vec<Word>> {
    let pieces = characters(tokenizer, tokens)?;
    let unspaced = language.is_some_and(|language| UNSPACED.contains(&language));
    let mut words: Vec<Word> = vec![];
    for piece in pieces {
        let begins = piece.text.starts_with(' ') || PUNCTUATION.contains(piece.text.trim());
        match words.last_mut().filter(|_| !unspaced && !begins) {
            Some(word) => join(word, piece),
            None => words.push(piece),
        }
    }
    Ok(punctuated(words))
}

/// Pieces of text at whose ends no character is unfinished.
fn characters(tokenizer: &Tokenizer, tokens: &[i64]) -> Result<Vec<Word>> {
    const UNFINISHED: char = '\u{fffd}';
    let whole: Vec<char> = tokenizer.decode(tokens, false)?.chars().collect();
    let (mut pieces, mut first, mut done) = (vec![], 0, 0);
    for end in 1..=tokens.len() {
        let text = tokenizer.decode(&tokens[first..end], false)?;
        let unfinished = text.chars().position(|character| character == UNFINISHED);
        // A character that is none in the whole either is not waited for.
        let complete = unfinished.is_none_or(|at| whole.get(done + at).is_none_or(|c| *c == UNFINISHED));
        if complete {
            done += text.chars().count();
            pieces.push(Word { text, tokens: (first..end).collect() });
            first = end;
        }
    }
    Ok(pieces)
}

/// Punctuation with the words that it belongs to.
fn punctuated(mut words: Vec<Word>) -> Vec<Word> {
    let mut kept: Option<usize> = words.len().checked_sub(1);
    for i in (0..words.len().saturating_sub(1)).rev() {
        let before = words[i].text.starts_with(' ') && PREPENDED.contains(words[i].text.trim());
        match kept.filter(|_| before) {
            Some(j) => {
                let next = std::mem::replace(&mut words[j], Word { text: String::new(), tokens: vec![] });
                join(&mut words[i], next);
                words.swap(i, j);
            }
            None => kept = Some(i),
        }
    }
    let mut done: Vec<Word> = vec![];
    for word in words.into_iter().filter(|word| !word.text.is_empty()) {
        match done.last_mut() {
            Some(last) if !last.text.ends_with(' ') && APPENDED.contains(&word.text) => join(last, word),
            _ => done.push(word),
        }
    }
    done
}

fn join(word: &mut Word, next: Word) {
    word.text.push_str(&next.text);
    word.tokens.extend(next.tokens);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn punctuation_goes_with_its_word() {
        let words = [" “", "Hello", ",", " (", " you", ")", "!"];
        let words =
            words.iter().enumerate().map(|(i, text)| Word { text: (*text).to_owned(), tokens: vec![i] });
        let joined = punctuated(words.collect());
        let texts: Vec<_> = joined.iter().map(|word| word.text.as_str()).collect();
        assert_eq!(texts, [" “Hello,", " ( you)!"]);
        assert_eq!(joined[1].tokens, [3, 4, 5, 6]);
    }
}
