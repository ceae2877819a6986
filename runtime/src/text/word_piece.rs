//! Checkpoints that have only `vocab.txt`, one token a line, as a `tokenizer.json`.
//!
//! Reference: `BertTokenizer`, whose defaults these are.

use serde_json::{Map, Value};

use super::Settings;
use super::filled::{filled, special_token};

/// The tokenizer of such a vocabulary.
pub(super) fn tokenizer_json(vocab: &str, settings: &Settings) -> Value {
    let ids: Map<String, Value> =
        vocab.lines().enumerate().map(|(id, token)| (token.to_string(), id.into())).collect();
    let name = |set: &Option<String>, default: &str| set.clone().unwrap_or_else(|| default.to_string());
    let unk = name(&settings.unk_token, "[UNK]");
    let cls = name(&settings.cls_token, "[CLS]");
    let sep = name(&settings.sep_token, "[SEP]");
    let specials = [
        name(&settings.pad_token, "[PAD]"),
        unk.clone(),
        cls.clone(),
        sep.clone(),
        name(&settings.mask_token, "[MASK]"),
    ];
    let added: Vec<Value> =
        specials.iter().filter_map(|token| Some(special_token(ids.get(token)?.clone(), token))).collect();
    let entry = |token: &str| {
        let id = ids.get(token).cloned().unwrap_or_else(|| 0.into());
        let json = r#"{"id": "$token", "ids": ["$id"], "tokens": ["$token"]}"#;
        (token.to_owned(), filled(json, &[("$token", token.into()), ("$id", id)]))
    };
    let used: Map<String, Value> = [entry(&cls), entry(&sep)].into_iter().collect();
    filled(
        TOKENIZER,
        &[
            ("$added", added.into()),
            ("$chinese", settings.bert.tokenize_chinese_chars.unwrap_or(true).into()),
            ("$accents", settings.bert.strip_accents.into()),
            ("$lowercase", settings.bert.do_lower_case.unwrap_or(true).into()),
            ("$cls", cls.into()),
            ("$sep", sep.into()),
            ("$special", used.into()),
            ("$unk", unk.into()),
            ("$vocab", ids.into()),
        ],
    )
}

const TOKENIZER: &str = r###"{
    "version": "1.0",
    "added_tokens": "$added",
    "normalizer": {
        "type": "BertNormalizer",
        "clean_text": true,
        "handle_chinese_chars": "$chinese",
        "strip_accents": "$accents",
        "lowercase": "$lowercase"
    },
    "pre_tokenizer": {"type": "BertPreTokenizer"},
    "post_processor": {
        "type": "TemplateProcessing",
        "single": [
            {"SpecialToken": {"id": "$cls", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
            {"SpecialToken": {"id": "$sep", "type_id": 0}}
        ],
        "pair": [
            {"SpecialToken": {"id": "$cls", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
            {"SpecialToken": {"id": "$sep", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}},
            {"SpecialToken": {"id": "$sep", "type_id": 1}}
        ],
        "special_tokens": "$special"
    },
    "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": true},
    "model": {
        "type": "WordPiece",
        "unk_token": "$unk",
        "continuing_subword_prefix": "##",
        "max_input_chars_per_word": 100,
        "vocab": "$vocab"
    }
}"###;
