//! How texts are split before bytes are merged: the regular expressions behind `tokenizer.ggml.pre`.
//!
//! Reference: the `tokenizer.json` of the models that `convert_hf_to_gguf_update.py` of llama.cpp lists under each name.

use serde_json::{Value as Json, json};

/// A split.
#[derive(Debug)]
pub struct Split {
    names: &'static [&'static str],
    /// Before bytes become characters.
    pub before: &'static [Step],
    /// Whether words are then split as GPT-2's.
    pub words: bool,
    pub after: &'static [Step],
    /// Whether a piece that is a token is not built by merges.
    pub ignore_merges: bool,
    /// Whether texts are normalized to composed characters.
    pub nfc: bool,
    /// Whether texts begin with the token for that where the file does not say.
    pub begins: bool,
}

/// One step of a split.
#[derive(Debug)]
pub enum Step {
    /// Matches of an expression stand alone.
    Regex(&'static str),
    /// Digits stand alone, one by one or in runs.
    Digits(bool),
    /// Runs of punctuation stand alone.
    Punctuation,
}

impl Step {
    pub fn json(&self) -> Json {
        match self {
            Self::Regex(regex) => {
                json!({"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": false})
            }
            Self::Digits(single) => json!({"type": "Digits", "individual_digits": single}),
            Self::Punctuation => json!({"type": "Punctuation", "behavior": "Contiguous"}),
        }
    }
}

use Step::{Digits, Punctuation, Regex};

const GPT2: Split = Split {
    names: &[],
    before: &[],
    words: true,
    after: &[],
    ignore_merges: false,
    nfc: false,
    begins: false,
};
const REGEX: Split = Split { words: false, ..GPT2 };

const SPLITS: &[Split] = &[
    Split { names: &["gpt-2", "phi-2", "exaone4", "a.x-4.0", "jais"], ..GPT2 },
    Split { names: &["olmo", "mpt", "trillion"], nfc: true, ..GPT2 },
    Split {
        names: &["starcoder", "refact", "smollm", "codeshell", "exaone"],
        before: &[Digits(true)],
        ..GPT2
    },
    Split { names: &["command-r"], before: &[Digits(true)], nfc: true, ..GPT2 },
    Split {
        names: &["llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2"],
        before: &[Regex(
            r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        )],
        ignore_merges: true,
        begins: true,
        ..REGEX
    },
    Split {
        names: &["dbrx", "smaug-bpe", "chatglm-bpe"],
        before: &[Regex(
            r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        )],
        ..REGEX
    },
    Split {
        names: &["glm4"],
        before: &[Regex(
            r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        )],
        ignore_merges: true,
        ..REGEX
    },
    Split {
        names: &["qwen2", "deepseek-r1-qwen", "megrez", "stablelm2", "hunyuan"],
        before: &[Regex(
            r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        )],
        nfc: true,
        ..REGEX
    },
    Split {
        names: &["tekken"],
        before: &[Regex(
            r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        )],
        ignore_merges: true,
        begins: true,
        ..REGEX
    },
    Split {
        names: &["gpt-4o", "llama4", "kanana2"],
        before: &[Regex(
            r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        )],
        ..REGEX
    },
    Split {
        names: &["deepseek-v3", "hunyuan-dense"],
        before: &[
            Regex(r"\p{N}{1,3}"),
            Regex("[一-龥\u{3040}-ゟ゠-ヿ]+"),
            Regex(
                r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"##,
            ),
        ],
        ..REGEX
    },
    Split {
        names: &["deepseek-coder"],
        before: &[
            Regex(r"[\r\n]"),
            Regex(r"\s?\p{L}+"),
            Regex(r"\s?\p{P}+"),
            Regex("[一-龥ࠀ-一가-\u{d7ff}]+"),
            Digits(true),
        ],
        ..REGEX
    },
    Split {
        names: &["falcon"],
        before: &[Punctuation],
        after: &[Digits(false), Regex("[0-9][0-9][0-9]")],
        ..GPT2
    },
    Split {
        names: &["bloom", "poro-chat", "gpt3-finnish"],
        before: &[Regex(" ?[^(\\s|[.,!?…。，、।۔،])]+")],
        ..REGEX
    },
];

/// The split of a name.
pub fn of(name: &str) -> Option<&'static Split> {
    SPLITS.iter().find(|split| split.names.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_of_one_split_whose_expressions_are_read() {
        for (index, split) in SPLITS.iter().enumerate() {
            for name in split.names {
                assert!(SPLITS[..index].iter().all(|other| !other.names.contains(name)), "{name}");
            }
            for step in split.before.iter().chain(split.after) {
                let read = serde_json::from_value::<tokenizers::PreTokenizerWrapper>(step.json());
                assert!(read.is_ok(), "{:?}: {read:?}", split.names);
            }
        }
        assert!(of("qwen2").is_some() && of("unheard-of").is_none());
    }
}
