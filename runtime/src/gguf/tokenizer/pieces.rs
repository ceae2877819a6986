//! Vocabularies of SentencePiece: byte-pair encoding, and unigrams.

use serde_json::{Value as Json, json};

use super::{Kind, SPACE, Value, Vocabulary, merges, wrong};
use crate::{Result, base64};

/// The score of tokens that only fill a vocabulary of unigrams up, as the converter has it.
const UNUSED: f64 = -10_000.0;

/// How a vocabulary's merges are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Merges {
    /// By the scores of what they give.
    ByScore,
    /// The file lists them (Gemma 4).
    Listed,
}

/// Byte-pair encoding of pieces, with bytes for what the vocabulary lacks.
pub(super) fn byte_pairs(vocabulary: &Vocabulary<'_>, known: Merges) -> Result<Json> {
    let (prefix, merges) = match known {
        Merges::ByScore => {
            let scores = vocabulary.scores()?;
            let used = vocabulary.used();
            let pieces = used.filter(|(_, _, kind)| *kind == Kind::Normal || *kind == Kind::UserDefined);
            let pieces: Vec<_> = pieces.map(|(id, piece, _)| (piece, scores[id])).collect();
            (true, json!(merges::by_score(&pieces)))
        }
        Merges::Listed => (false, json!(vocabulary.merges()?)),
    };
    let prefix = vocabulary.value("add_space_prefix").and_then(Value::bool).unwrap_or(prefix);
    let spaces = json!({"type": "Replace", "pattern": {"String": " "}, "content": SPACE});
    let mut normalizers = vec![];
    let mut decoders = vec![
        json!({"type": "Replace", "pattern": {"String": SPACE}, "content": " "}),
        json!({"type": "ByteFallback"}),
        json!({"type": "Fuse"}),
    ];
    if prefix {
        normalizers.push(json!({"type": "Prepend", "prepend": SPACE}));
        decoders.push(json!({"type": "Strip", "content": " ", "start": 1, "stop": 0}));
    }
    normalizers.push(spaces);
    let unknown = vocabulary.used().find(|(_, _, kind)| *kind == Kind::Unknown).map(|(_, token, _)| token);
    Ok(json!({
        "version": "1.0",
        "added_tokens": vocabulary.added(),
        "normalizer": {"type": "Sequence", "normalizers": normalizers},
        "pre_tokenizer": null,
        "post_processor": vocabulary.template(true, false),
        "decoder": {"type": "Sequence", "decoders": decoders},
        "model": {
            "type": "BPE",
            "dropout": null, "unk_token": unknown, "continuing_subword_prefix": null, "end_of_word_suffix": null,
            "fuse_unk": true, "byte_fallback": true, "ignore_merges": false,
            "vocab": vocabulary.ids(),
            "merges": merges,
        },
    }))
}

/// The most probable pieces of each word, by the logarithms of their probabilities (T5).
pub(super) fn unigram(vocabulary: &Vocabulary<'_>) -> Result<Json> {
    let gguf = vocabulary.gguf;
    let scores = vocabulary.scores()?;
    let unknown = vocabulary.kinds.iter().position(|kind| *kind == Kind::Unknown);
    let unknown =
        unknown.ok_or_else(|| wrong(gguf, "has a vocabulary of unigrams without an unknown token"))?;
    // Each token's number is its place; what fills the vocabulary up is never the best.
    let score = |id: usize| if vocabulary.kinds[id] == Kind::Unused { UNUSED } else { scores[id] };
    let pieces: Vec<_> =
        vocabulary.tokens.iter().enumerate().map(|(id, token)| json!([token, score(id)])).collect();
    let bytes = gguf.files[0].numbers("tokenizer.ggml.precompiled_charsmap");
    let map: Vec<u8> = bytes.unwrap_or_default().into_iter().map(|byte| byte as i64 as u8).collect();
    let normalizer = match map.as_slice() {
        [] => Json::Null,
        map => json!({"type": "Precompiled", "precompiled_charsmap": base64::encode(map)}),
    };
    let prefix = vocabulary.value("add_space_prefix").and_then(Value::bool).unwrap_or(true);
    let prepend = if prefix { "always" } else { "never" };
    let metaspace =
        json!({"type": "Metaspace", "replacement": SPACE, "prepend_scheme": prepend, "split": true});
    Ok(json!({
        "version": "1.0",
        "added_tokens": vocabulary.added(),
        "normalizer": normalizer,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, metaspace]},
        "post_processor": vocabulary.template(false, true),
        "decoder": metaspace,
        "model": {"type": "Unigram", "unk_id": unknown, "vocab": pieces, "byte_fallback": false},
    }))
}
