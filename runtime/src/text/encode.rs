//! Texts to rows of tokens: special tokens, truncation, windows.

use tokenizers::{
    EncodeInput, InputSequence, PostProcessor, TruncationDirection, TruncationParams, TruncationStrategy,
    truncate_encodings,
};

use super::{Encoding, Side, Tokenizer};
use crate::{Error, Result};

/// What is encoded as one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Text<'a> {
    /// One text.
    Single(&'a str),
    /// Two texts, such as a question and a context.
    Pair(&'a str, &'a str),
    /// One text that is split into words already; offsets then count within each word.
    Words(&'a [&'a str]),
    /// A pair of a text and one that is split into words already, such as a question and the words of a page.
    PairedWords(&'a str, &'a [&'a str]),
}

impl<'a> From<&'a str> for Text<'a> {
    fn from(text: &'a str) -> Self {
        Self::Single(text)
    }
}

impl<'a> From<&'a String> for Text<'a> {
    fn from(text: &'a String) -> Self {
        Self::Single(text)
    }
}

impl<'a> From<(&'a str, &'a str)> for Text<'a> {
    fn from((first, second): (&'a str, &'a str)) -> Self {
        Self::Pair(first, second)
    }
}

/// Where rows are cut that are longer than allowed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Truncation {
    /// Nowhere.
    #[default]
    No,
    /// In the longer sequence of a pair until both are equal, then in both.
    LongestFirst,
    /// In the first sequence.
    OnlyFirst,
    /// In the second sequence.
    OnlySecond,
}

/// How texts become rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EncodeOptions {
    /// Whether the template's tokens (`[CLS]`, `[SEP]`) are added.
    pub add_special_tokens: bool,
    /// Where rows are cut.
    pub truncation: Truncation,
    /// The most tokens in a row, special ones included; by default the tokenizer's `model_max_length`, and
    /// no limit when there is none.
    pub max_length: Option<usize>,
    /// How many tokens of a window the next one repeats.
    pub stride: usize,
    /// Whether what is cut off follows as further rows.
    pub overflow: bool,
}

impl Default for EncodeOptions {
    fn default() -> Self {
        Self {
            add_special_tokens: true,
            truncation: Truncation::No,
            max_length: None,
            stride: 0,
            overflow: false,
        }
    }
}

impl EncodeOptions {
    /// Cuts rows to `max_length`, or to the tokenizer's own limit.
    pub fn truncated(max_length: Option<usize>) -> Self {
        Self { truncation: Truncation::LongestFirst, max_length, ..Self::default() }
    }
}

impl Tokenizer {
    /// Encodes texts, each to one row; with `overflow`, to as many as its windows.
    ///
    /// # Errors
    /// When truncation cannot make a row short enough, or its options contradict each other.
    pub fn encode(&self, texts: &[Text<'_>], options: &EncodeOptions) -> Result<Vec<Encoding>> {
        // The crate's own truncation stops tokenizing at the limit and so loses the windows after it:
        // sequences are tokenized whole here, and cut before the template is applied.
        let sequences: Vec<InputSequence<'_>> = texts.iter().flat_map(|text| sequences(*text)).collect();
        let mut encoded = self.encoded(sequences)?.into_iter();
        let mut rows = Vec::with_capacity(texts.len());
        for (sample, text) in texts.iter().enumerate() {
            let first = encoded.next().unwrap_or_default();
            let pair = matches!(text, Text::Pair(..) | Text::PairedWords(..));
            let second = pair.then(|| second(encoded.next().unwrap_or_default()));
            let mut row = self.finish(first, second, options)?;
            let overflow = row.take_overflowing();
            rows.push(Encoding::new(&row, sample));
            if options.overflow {
                rows.extend(overflow.iter().map(|window| Encoding::new(window, sample)));
            }
        }
        Ok(rows)
    }

    /// Each sequence whole, on all cores; a page has one.
    fn encoded(&self, sequences: Vec<InputSequence<'_>>) -> Result<Vec<tokenizers::Encoding>> {
        let inputs = sequences.into_iter().map(EncodeInput::Single);
        let encoded = match cfg!(target_family = "wasm") {
            true => inputs.map(|input| self.core.encode_char_offsets(input, false)).collect(),
            false => self.core.encode_batch_char_offsets(inputs.collect(), false),
        };
        encoded.map_err(|e: tokenizers::Error| self.failed(&e))
    }

    /// The number of tokens that the template adds to one text or to a pair.
    pub fn added_tokens(&self, pair: bool) -> usize {
        self.post_processor.as_ref().map_or(0, |p| p.added_tokens(pair))
    }

    fn finish(
        &self,
        first: tokenizers::Encoding,
        second: Option<tokenizers::Encoding>,
        options: &EncodeOptions,
    ) -> Result<tokenizers::Encoding> {
        let (first, second) = self.truncate(first, second, options)?;
        if let Some(processor) = &self.post_processor {
            return processor.process(first, second, options.add_special_tokens).map_err(|e| self.failed(&e));
        }
        let Some(mut second) = second else { return Ok(first) };
        let mut merged = tokenizers::Encoding::default();
        let mut first = first;
        first.set_sequence_id(0);
        second.set_sequence_id(1);
        merged.merge_with(first, false);
        merged.merge_with(second, false);
        Ok(merged)
    }

    fn truncate(
        &self,
        first: tokenizers::Encoding,
        second: Option<tokenizers::Encoding>,
        options: &EncodeOptions,
    ) -> Result<(tokenizers::Encoding, Option<tokenizers::Encoding>)> {
        let strategy = match options.truncation {
            Truncation::No => return Ok((first, second)),
            Truncation::LongestFirst => TruncationStrategy::LongestFirst,
            Truncation::OnlyFirst => TruncationStrategy::OnlyFirst,
            Truncation::OnlySecond => TruncationStrategy::OnlySecond,
        };
        let Some(limit) = options.max_length.or(self.settings.model_max_length) else {
            return Ok((first, second));
        };
        let added = if options.add_special_tokens { self.added_tokens(second.is_some()) } else { 0 };
        if limit <= added {
            return Err(Error::input(
                "max_length",
                format!("{limit} tokens leave no room: the tokenizer's template alone adds {added}"),
                format!("give at least {}", added + 1),
            ));
        }
        let room = limit - added;
        let (a, b) = (first.len(), second.as_ref().map_or(0, tokenizers::Encoding::len));
        if a + b <= room {
            return Ok((first, second));
        }
        let kept = kept(options.truncation, a, second.as_ref().map(|_| b), room)?;
        if options.stride >= kept {
            return Err(Error::input(
                "stride",
                format!("windows of {kept} tokens cannot overlap by {}", options.stride),
                "give a smaller stride or a larger max_length",
            ));
        }
        let direction = match self.settings.truncation_side {
            Side::Left => TruncationDirection::Left,
            Side::Right => TruncationDirection::Right,
        };
        let parameters = TruncationParams { direction, max_length: room, strategy, stride: options.stride };
        truncate_encodings(first, second, &parameters).map_err(|e| self.failed(&e))
    }

    fn failed(&self, error: &tokenizers::Error) -> Error {
        self.error(format!("the tokenizer failed: {error}"), "try it with the reference on the same text")
    }
}

/// The shortest length that a sequence is cut to, or why it cannot be cut.
fn kept(truncation: Truncation, first: usize, second: Option<usize>, room: usize) -> Result<usize> {
    let (cut, other, name) = match (truncation, second) {
        (Truncation::No | Truncation::LongestFirst, None) => return Ok(room),
        (Truncation::No | Truncation::LongestFirst, Some(_)) => return Ok((room / 2).max(1)),
        (Truncation::OnlySecond, None) => {
            return Err(Error::input(
                "truncation",
                "`only_second` with one text",
                "use `longest_first`, or give a pair",
            ));
        }
        (Truncation::OnlyFirst, second) => (first, second.unwrap_or(0), "second"),
        (Truncation::OnlySecond, Some(second)) => (second, first, "first"),
    };
    if other >= room || cut == 0 {
        return Err(Error::input(
            "max_length",
            format!("the {name} text alone has {other} tokens, and only {room} fit beside the template's"),
            "shorten that text, or truncate it too (`longest_first`)",
        ));
    }
    Ok(room - other)
}

/// Marks the second sequence of a pair, before windows are cut from it.
fn second(mut encoding: tokenizers::Encoding) -> tokenizers::Encoding {
    encoding.set_type_ids(vec![1; encoding.len()]);
    encoding
}

fn sequences(text: Text<'_>) -> Vec<InputSequence<'_>> {
    match text {
        Text::Single(text) => vec![text.into()],
        Text::Pair(first, second) => vec![first.into(), second.into()],
        Text::Words(words) => vec![words.into()],
        Text::PairedWords(text, words) => vec![text.into(), words.into()],
    }
}
