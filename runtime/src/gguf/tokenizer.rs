//! The vocabulary of a GGUF file as `tokenizer.json`, `tokenizer_config.json` and `generation_config.json`.
//!
//! Reference: `llama-vocab.cpp` of llama.cpp, `LlamaConverter` and `GPT2Converter` of transformers.

mod merges;
mod pieces;
mod splits;

use serde_json::{Map, Value as Json, json};

use super::Gguf;
use super::value::Value;
use crate::{Error, Result};

const TOKENS: &str = "tokenizer.ggml.tokens";
/// How vocabularies say that they split which are of pieces, with merges, though they say that they are of bytes.
const PIECES: &str = "granite-embed-multi-311m";
/// Before which pieces of SentencePiece and WordPiece begin a word.
const SPACE: &str = "\u{2581}";

/// What a token is (`llama_token_type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Normal,
    Unknown,
    Control,
    UserDefined,
    Unused,
    Byte,
}

impl Kind {
    fn of(number: f64) -> Self {
        match number as i64 {
            2 => Self::Unknown,
            3 => Self::Control,
            4 => Self::UserDefined,
            5 => Self::Unused,
            6 => Self::Byte,
            _ => Self::Normal,
        }
    }
}

/// Special tokens: the metadata's name of each, and the reference's.
const ROLES: [(&str, &str); 7] = [
    ("bos", "bos_token"),
    ("eos", "eos_token"),
    ("unknown", "unk_token"),
    ("padding", "pad_token"),
    ("seperator", "sep_token"),
    ("cls", "cls_token"),
    ("mask", "mask_token"),
];

/// Tokens after which a model has ended its turn.
const ENDS: [&str; 3] = ["eos", "eot", "eom"];

struct Vocabulary<'a> {
    gguf: &'a Gguf,
    tokens: Vec<&'a str>,
    kinds: Vec<Kind>,
}

impl<'a> Vocabulary<'a> {
    fn of(gguf: &'a Gguf) -> Result<Self> {
        let file = &gguf.files[0];
        let tokens = file.texts(TOKENS).ok_or_else(|| wrong(gguf, format!("has no `{TOKENS}`")))?;
        let kinds = file.numbers("tokenizer.ggml.token_type");
        let kinds: Vec<_> = match kinds {
            Some(kinds) if kinds.len() == tokens.len() => kinds.into_iter().map(Kind::of).collect(),
            None => vec![Kind::Normal; tokens.len()],
            Some(kinds) => {
                let problem = format!("has {} tokens, but the types of {}", tokens.len(), kinds.len());
                return Err(wrong(gguf, problem));
            }
        };
        Ok(Self { gguf, tokens, kinds })
    }

    fn value(&self, key: &str) -> Option<&'a Value> {
        self.gguf.files[0].metadata.get(&format!("tokenizer.ggml.{key}"))
    }

    /// The name of how texts are split before merging.
    fn splits(&self) -> &'a str {
        self.value("pre").and_then(Value::text).unwrap_or("default")
    }

    fn id(&self, role: &str) -> Option<usize> {
        let id = self.value(&format!("{role}_token_id"))?.whole()?;
        usize::try_from(id).ok().filter(|id| *id < self.tokens.len())
    }

    fn role(&self, role: &str) -> Option<&'a str> {
        self.id(role).map(|id| self.tokens[id])
    }

    /// Each token with its id and kind, but for those that only fill the vocabulary up.
    fn used(&self) -> impl Iterator<Item = (usize, &'a str, Kind)> {
        let tokens = self.tokens.iter().zip(&self.kinds).enumerate();
        tokens.filter(|(_, (_, kind))| **kind != Kind::Unused).map(|(id, (token, kind))| (id, *token, *kind))
    }

    /// The merges that the file lists.
    fn merges(&self) -> Result<Vec<&'a str>> {
        let merges = self.gguf.files[0].texts("tokenizer.ggml.merges");
        merges.ok_or_else(|| wrong(self.gguf, "has no `tokenizer.ggml.merges`"))
    }

    /// A score for each token.
    fn scores(&self) -> Result<Vec<f64>> {
        let scores = self.gguf.files[0].numbers("tokenizer.ggml.scores").unwrap_or_default();
        if scores.len() != self.tokens.len() {
            let problem = format!("has {} tokens, but the scores of {}", self.tokens.len(), scores.len());
            return Err(wrong(self.gguf, problem));
        }
        Ok(scores)
    }

    fn ids(&self) -> Map<String, Json> {
        self.used().map(|(id, token, _)| (token.to_owned(), json!(id))).collect()
    }

    /// Tokens that are looked for in a text before it is split.
    fn added(&self) -> Vec<Json> {
        let added = self
            .used()
            .filter(|(_, _, kind)| matches!(kind, Kind::Unknown | Kind::Control | Kind::UserDefined));
        let token = |(id, content, kind): (usize, &str, Kind)| {
            json!({
                "id": id, "content": content, "special": kind != Kind::UserDefined, "normalized": false,
                "single_word": false, "lstrip": false, "rstrip": false,
            })
        };
        added.map(token).collect()
    }

    /// What begins and ends a text, where the file does not say otherwise.
    fn template(&self, begins: bool, ends: bool) -> Json {
        let asked = |key: &str, default| self.value(key).and_then(Value::bool).unwrap_or(default);
        let bos = self.id("bos").filter(|_| asked("add_bos_token", begins));
        let eos = self.id("eos").filter(|_| asked("add_eos_token", ends));
        if bos.is_none() && eos.is_none() {
            return Json::Null;
        }
        let special = |id: Option<usize>, kind: u8| {
            id.map(|id| json!({"SpecialToken": {"id": self.tokens[id], "type_id": kind}}))
        };
        let around = |sequence: &str, kind: u8| {
            let text = Some(json!({"Sequence": {"id": sequence, "type_id": kind}}));
            [special(bos, kind), text, special(eos, kind)].into_iter().flatten().collect::<Vec<_>>()
        };
        let tokens: Map<_, _> = [bos, eos]
            .into_iter()
            .flatten()
            .map(|id| {
                (
                    self.tokens[id].to_owned(),
                    json!({"id": self.tokens[id], "ids": [id], "tokens": [self.tokens[id]]}),
                )
            })
            .collect();
        let pair = [around("A", 0), around("B", 1)].concat();
        json!({
            "type": "TemplateProcessing",
            "single": around("A", 0),
            "pair": pair,
            "special_tokens": tokens,
        })
    }
}

/// `tokenizer.json`; none of a vocabulary of WordPiece, which [`word_pieces`] gives.
pub(super) fn json(gguf: &Gguf) -> Result<Option<Json>> {
    let vocabulary = Vocabulary::of(gguf)?;
    match vocabulary.value("model").and_then(Value::text) {
        Some("gpt2") if vocabulary.splits() == PIECES => {
            pieces::byte_pairs(&vocabulary, pieces::Merges::Listed).map(Some)
        }
        Some("gpt2") => byte_pairs(&vocabulary).map(Some),
        Some("llama") => pieces::byte_pairs(&vocabulary, pieces::Merges::ByScore).map(Some),
        Some("gemma4") => pieces::byte_pairs(&vocabulary, pieces::Merges::Listed).map(Some),
        Some("t5") => pieces::unigram(&vocabulary).map(Some),
        Some("bert") => Ok(None),
        found => {
            let found = found.unwrap_or("none");
            let known = "gpt2, llama, gemma4, t5 and bert are read";
            Err(wrong(gguf, format!("has a tokenizer of the kind `{found}`; {known}")))
        }
    }
}

/// Byte-pair encoding of bytes, as GPT-2's.
fn byte_pairs(vocabulary: &Vocabulary<'_>) -> Result<Json> {
    let gguf = vocabulary.gguf;
    let name = vocabulary.splits();
    let split = splits::of(name)
        .ok_or_else(|| wrong(gguf, format!("splits texts before merging as `{name}`, which is not known")))?;
    let merges = vocabulary.merges()?;
    Ok(json!({
        "version": "1.0",
        "added_tokens": vocabulary.added(),
        "normalizer": if split.nfc { json!({"type": "NFC"}) } else { Json::Null },
        "pre_tokenizer": split.json(),
        "post_processor": vocabulary.template(split.begins, false),
        "decoder": splits::byte_level(true),
        "model": {
            "type": "BPE",
            "dropout": null, "unk_token": null, "continuing_subword_prefix": null, "end_of_word_suffix": null,
            "fuse_unk": false, "byte_fallback": false, "ignore_merges": split.ignore_merges,
            "vocab": vocabulary.ids(),
            "merges": merges,
        },
    }))
}

/// `vocab.txt` of a vocabulary of WordPiece, which files hold with a mark before words in place of one before their rest.
pub(super) fn word_pieces(gguf: &Gguf) -> Result<String> {
    let vocabulary = Vocabulary::of(gguf)?;
    let tokens = vocabulary.tokens.iter().zip(&vocabulary.kinds);
    let lines = tokens.map(|(token, kind)| match token.strip_prefix(SPACE) {
        _ if *kind != Kind::Normal => (*token).to_owned(),
        Some(word) => word.to_owned(),
        None => format!("##{token}"),
    });
    Ok(lines.collect::<Vec<_>>().join("\n"))
}

/// `tokenizer_config.json`: special tokens and the chat template.
pub(super) fn settings(gguf: &Gguf) -> Result<Json> {
    let vocabulary = Vocabulary::of(gguf)?;
    let mut settings = Map::new();
    for (role, field) in ROLES {
        if let Some(token) = vocabulary.role(role) {
            settings.insert(field.to_owned(), json!(token));
        }
    }
    let metadata = &gguf.files[0].metadata;
    if let Some(template) = metadata.get("tokenizer.chat_template").and_then(Value::text) {
        settings.insert("chat_template".to_owned(), json!(template));
    }
    if let Some(length) = gguf.value("context_length").and_then(Value::whole) {
        settings.insert("model_max_length".to_owned(), json!(length));
    }
    if vocabulary.value("model").and_then(Value::text) == Some("bert") {
        let cased = |token: &&str| token.starts_with(SPACE) && token.chars().any(char::is_uppercase);
        settings.insert("do_lower_case".to_owned(), json!(!vocabulary.tokens.iter().any(cased)));
    }
    Ok(Json::Object(settings))
}

/// `generation_config.json`: what begins a text and all that ends one.
pub(super) fn generation(gguf: &Gguf) -> Json {
    let metadata = &gguf.files[0].metadata;
    let id = |role: &str| metadata.get(&format!("tokenizer.ggml.{role}_token_id")).and_then(Value::whole);
    let mut config = Map::new();
    for (role, field) in [("bos", "bos_token_id"), ("padding", "pad_token_id")] {
        config.extend(id(role).map(|id| (field.to_owned(), json!(id))));
    }
    let mut ends: Vec<u64> = ENDS.iter().filter_map(|role| id(role)).collect();
    ends.dedup();
    match ends.as_slice() {
        [] => {}
        [end] => _ = config.insert("eos_token_id".to_owned(), json!(end)),
        ends => _ = config.insert("eos_token_id".to_owned(), json!(ends)),
    }
    Json::Object(config)
}

fn wrong(gguf: &Gguf, problem: impl Into<String>) -> Error {
    let help = "put the tokenizer.json of the checkpoint that was converted beside the file";
    Error::tokenizer(gguf.path(), problem, help)
}
