//! How texts are split before bytes are merged: the regular expressions behind `tokenizer.ggml.pre`.
//!
//! Reference: the `tokenizer.json` of the models that `convert_hf_to_gguf_update.py` of llama.cpp lists under each name.

mod expressions;
mod table;

use serde_json::{Value as Json, json};

use table::SPLITS;

/// A split.
#[derive(Debug)]
pub struct Split {
    names: &'static [&'static str],
    /// Before bytes become characters.
    before: &'static [Step],
    /// Whether words are then split as GPT-2's.
    words: bool,
    after: &'static [Step],
    /// Whether a piece that is a token is not built by merges.
    pub ignore_merges: bool,
    /// Whether texts are normalized to composed characters.
    pub nfc: bool,
    /// Whether texts begin with the token for that where the file does not say.
    pub begins: bool,
}

impl Split {
    /// The step of a tokenizer between its normalizer and its model.
    pub fn json(&self) -> Json {
        let before = self.before.iter().map(Step::json);
        let after = self.after.iter().map(Step::json);
        let steps: Vec<_> = before.chain([byte_level(self.words)]).chain(after).collect();
        json!({"type": "Sequence", "pretokenizers": steps})
    }
}

/// One step of a split.
#[derive(Debug)]
enum Step {
    /// Matches of an expression stand alone.
    Regex(&'static str),
    /// Matches of an expression begin what follows them.
    Starts(&'static str),
    /// Digits stand alone, one by one or in runs.
    Digits(bool),
    /// Runs of punctuation stand alone.
    Punctuation,
}

impl Step {
    fn json(&self) -> Json {
        let split = |regex: &str, behavior: &str| json!({"type": "Split", "pattern": {"Regex": regex}, "behavior": behavior, "invert": false});
        match self {
            Self::Regex(regex) => split(regex, "Isolated"),
            Self::Starts(regex) => split(regex, "MergedWithNext"),
            Self::Digits(single) => json!({"type": "Digits", "individual_digits": single}),
            Self::Punctuation => json!({"type": "Punctuation", "behavior": "Contiguous"}),
        }
    }
}

/// Bytes become characters, and back; of texts that are split as GPT-2's or not.
pub fn byte_level(words: bool) -> Json {
    json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": words})
}

/// The split of a name.
pub fn of(name: &str) -> Option<&'static Split> {
    SPLITS.iter().find(|split| split.names.contains(&name))
}

#[cfg(test)]
mod tests;
