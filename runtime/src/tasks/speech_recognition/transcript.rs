//! Tokens of words and times, of one piece or of many that overlap, to text with times.
//!
//! Reference: `transformers.models.whisper.tokenization_whisper._decode_asr`.

use std::collections::BTreeSet;

use super::languages;
use super::{TimedText, Transcript};
use crate::Result;
use crate::text::Tokenizer;

/// Positions of the encoder in one piece, of `precision` seconds each.
const POSITIONS: f64 = 1500.0;

/// The tokens of one piece, and its length and overlaps in seconds.
pub(super) struct Piece {
    pub tokens: Vec<i64>,
    /// The timestamp of each token, where those of words are asked for.
    pub times: Vec<f64>,
    pub stride: Option<(f64, f64, f64)>,
}

/// What is asked for, and what the tokens mean.
pub(super) struct Decoding<'a> {
    pub tokenizer: &'a Tokenizer,
    /// Tokens that stand for no text.
    pub special: &'a BTreeSet<i64>,
    /// The first timestamp token.
    pub timestamp_begin: i64,
    /// The seconds from one timestamp token to the next.
    pub precision: f64,
    pub timestamps: bool,
    /// Whether times are those of words.
    pub words: bool,
    pub language: bool,
}

/// A token and its timestamps, seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct TimedToken {
    token: i64,
    span: (f64, f64),
}

/// A part of the text that is not finished yet.
#[derive(Clone, Default)]
struct Part {
    language: Option<&'static str>,
    start: Option<f64>,
    end: Option<f64>,
}

struct State<'a> {
    decoding: &'a Decoding<'a>,
    done: Vec<TimedText>,
    part: Part,
    language: Option<&'static str>,
    /// The words of the pieces that the part is in.
    before: Vec<Vec<TimedToken>>,
    /// The words of the parts before.
    timed: Vec<TimedText>,
    full: String,
}

impl Decoding<'_> {
    pub(super) fn decode(&self, pieces: &[Piece]) -> Result<Transcript> {
        let mut state = State {
            decoding: self,
            done: vec![],
            part: Part::default(),
            language: None,
            before: vec![],
            timed: vec![],
            full: String::new(),
        };
        let mut offset = 0.0;
        for piece in pieces {
            offset = state.piece(piece, offset)?;
        }
        if !state.before.is_empty() {
            state.finish()?;
        }
        let done = if self.words { state.timed } else { state.done };
        let chunks = (self.timestamps || self.language).then_some(done);
        Ok(Transcript { text: state.full, chunks })
    }
}

impl State<'_> {
    /// Reads a piece that begins after `offset` seconds; gives where the next one begins.
    fn piece(&mut self, piece: &Piece, mut offset: f64) -> Result<f64> {
        let Decoding { timestamp_begin, precision, .. } = *self.decoding;
        let seconds = |token: i64| (token - timestamp_begin) as f64 * precision;
        // Times within what neighbours share are settled when all of it was read.
        let mut earliest = timestamp_begin as f64;
        let mut latest = None;
        if let Some((length, left, right)) = piece.stride {
            offset -= left;
            if left > 0.0 {
                earliest = left / precision + timestamp_begin as f64;
            }
            if right > 0.0 {
                for &token in piece.tokens.iter().rev().filter(|token| **token >= timestamp_begin) {
                    if latest.is_some() && seconds(token) < length - right {
                        break;
                    }
                    latest = Some(token);
                }
            }
        }
        let mut words = vec![];
        let mut skip = false;
        // Pieces of half a minute that were written one after the other begin anew at zero.
        let (mut largest, mut before_largest, mut passed) = (0.0, 0.0, 0.0);
        for (index, &token) in piece.tokens.iter().enumerate() {
            if token < timestamp_begin {
                match self.decoding.special.contains(&token) {
                    true => self.special(token, &mut words)?,
                    false => {
                        let at = |index: usize| piece.times.get(index).or(piece.times.last()).copied();
                        let after = |time: Option<f64>| hundredths(time.unwrap_or_default() + offset);
                        let start = after(index.checked_sub(1).and_then(at));
                        words.push(TimedToken { token, span: (start, after(at(index))) });
                    }
                }
                continue;
            }
            let time = seconds(token);
            if time < largest {
                let pair = |i: usize| {
                    piece.tokens[i - 1] >= timestamp_begin && piece.tokens[i - 2] >= timestamp_begin
                };
                if index >= 2 && !pair(index) {
                    passed += precision * POSITIONS;
                } else {
                    largest = before_largest;
                    passed += before_largest;
                }
            }
            before_largest = largest;
            largest = time;
            let time = hundredths(time + offset + passed);
            if latest.is_some_and(|latest| token >= latest) {
                skip = true;
            } else if skip || (!self.before.is_empty() && (token as f64) < earliest) {
                skip = false;
            } else if self.part.start.is_none() {
                self.part.start = Some(time);
            } else if self.part.start != Some(time) {
                self.part.end = Some(time);
                self.before.push(std::mem::take(&mut words));
                self.finish()?;
            }
        }
        if let Some((length, _, right)) = piece.stride {
            offset += length - right;
        }
        if !words.is_empty() {
            self.before.push(words);
        } else if self.before.iter().all(Vec::is_empty) {
            self.begin();
        }
        Ok(offset)
    }

    /// A token that is no text: a language, or what has no meaning here.
    fn special(&mut self, token: i64, words: &mut Vec<TimedToken>) -> Result<()> {
        let name = self.decoding.tokenizer.token(token).unwrap_or_default();
        let code = name.strip_prefix("<|").and_then(|name| name.strip_suffix("|>"));
        let Some(language) = code.and_then(languages::name) else { return Ok(()) };
        if self.language.is_some_and(|before| before != language) && !self.decoding.timestamps {
            self.before.push(std::mem::take(words));
            self.finish()?;
        }
        self.part.language = Some(language);
        self.language = Some(language);
        Ok(())
    }

    fn begin(&mut self) {
        self.part = Part { language: self.language, ..Part::default() };
        self.before.clear();
    }

    fn finish(&mut self) -> Result<()> {
        let Decoding { tokenizer, words, .. } = *self.decoding;
        let tokens = joined(&self.before, words);
        let ids: Vec<i64> = tokens.iter().map(|token| token.token).collect();
        let text = tokenizer.decode(&ids, false)?;
        self.full.push_str(&text);
        if words {
            for word in super::words::words(tokenizer, &ids, self.language)? {
                let start = word.tokens.first().map(|place| tokens[*place].span.0);
                let end = word.tokens.last().map(|place| tokens[*place].span.1);
                let language = self.language.filter(|_| self.decoding.language).map(str::to_owned);
                self.timed.push(TimedText { text: word.text, timestamp: Some((start, end)), language });
            }
        }
        let Part { language, start, end } = self.part.clone();
        self.done.push(TimedText {
            text,
            timestamp: self.decoding.timestamps.then_some((start, end)),
            language: language.filter(|_| self.decoding.language).map(str::to_owned),
        });
        self.begin();
        Ok(())
    }
}

/// A number of seconds with two digits after the point.
fn hundredths(seconds: f64) -> f64 {
    format!("{seconds:.2}").parse().unwrap_or(seconds)
}

/// Texts that overlap as one: each goes on from the middle of what it has in common with the one before.
fn joined(texts: &[Vec<TimedToken>], timed: bool) -> Vec<TimedToken> {
    // Where times are known, none goes back.
    let same = |a: &TimedToken, b: &TimedToken| a.token == b.token && (!timed || a.span <= b.span);
    let mut texts = texts.iter();
    let mut left: &[TimedToken] = texts.next().map(Vec::as_slice).unwrap_or_default();
    let mut all = vec![];
    for right in texts {
        let (n, m) = (left.len(), right.len());
        let mut best = 0.0;
        let mut common = (n, n, 0, 0);
        for shift in 1..n + m {
            let (l, r) =
                (n.saturating_sub(shift)..n.min(n + m - shift), shift.saturating_sub(n)..m.min(shift));
            let matches = left[l.clone()].iter().zip(&right[r.clone()]).filter(|(a, b)| same(a, b)).count();
            // Of equals the longer one.
            let score = matches as f64 / shift as f64 + shift as f64 / 10_000.0;
            if matches > 1 && score > best {
                best = score;
                common = (l.start, l.end, r.start, r.end);
            }
        }
        all.extend_from_slice(&left[..(common.0 + common.1) / 2]);
        left = &right[(common.2 + common.3) / 2..];
    }
    all.extend_from_slice(left);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_texts_are_joined_once() {
        let timed =
            |text: &&[i64]| text.iter().map(|&token| TimedToken { token, ..TimedToken::default() }).collect();
        let texts = |texts: &[&[i64]]| {
            let joined = joined(&texts.iter().map(timed).collect::<Vec<_>>(), false);
            joined.iter().map(|timed| timed.token).collect::<Vec<_>>()
        };
        assert_eq!(texts(&[&[1, 2, 3, 4], &[3, 4, 5]]), [1, 2, 3, 4, 5]);
        assert_eq!(texts(&[&[1, 2, 3, 9], &[2, 3, 4], &[3, 4, 5]]), [1, 2, 3, 4, 5]);
        assert_eq!(texts(&[&[1, 2], &[3, 4]]), [1, 2, 3, 4]);
        assert!(joined(&[], true).is_empty());
    }

    #[test]
    fn seconds_have_two_digits() {
        assert_eq!(hundredths(29.979_999), 29.98);
        assert_eq!(hundredths(0.0), 0.0);
    }
}
