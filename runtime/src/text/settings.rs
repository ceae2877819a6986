//! `tokenizer_config.json` and `special_tokens_map.json`.

use serde_json::Value;

use crate::Result;
use crate::hub::Checkpoint;

/// The reference writes 1e30 for "no limit".
const NO_LIMIT: f64 = 1e20;

/// The reference's classes that take `tokenizer.json` as it is.
const GENERIC_CLASSES: [&str; 2] = ["PreTrainedTokenizerFast", "TokenizersBackend"];

/// The end of a sequence at which something is added or cut off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Side {
    /// Before the first token.
    Left,
    /// After the last token.
    #[default]
    Right,
}

impl Side {
    pub(super) fn parse(name: &str) -> Option<Self> {
        match name {
            "left" => Some(Self::Left),
            "right" => Some(Self::Right),
            _ => None,
        }
    }
}

/// Tokenizers whose languages are tokens.
const MULTILINGUAL_CLASSES: [&str; 5] =
    ["MBartTokenizer", "MBart50Tokenizer", "NllbTokenizer", "M2M100Tokenizer", "PLBartTokenizer"];

/// What a checkpoint says about its tokenizer beside `tokenizer.json`.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The most tokens the model was made for; `None` when the checkpoint names no limit.
    pub model_max_length: Option<usize>,
    /// Where rows are filled up.
    pub padding_side: Side,
    /// Where rows are cut.
    pub truncation_side: Side,
    /// Whether decoding removes the spaces before punctuation.
    pub clean_up_tokenization_spaces: bool,
    /// The inputs that the model takes from the tokenizer, where the checkpoint names them.
    pub model_input_names: Option<Vec<String>>,
    /// Begins a text.
    pub bos_token: Option<String>,
    /// Ends a text.
    pub eos_token: Option<String>,
    /// Stands for what the vocabulary lacks.
    pub unk_token: Option<String>,
    /// Separates two sequences.
    pub sep_token: Option<String>,
    /// Fills rows up to one length.
    pub pad_token: Option<String>,
    /// Stands for the whole sequence.
    pub cls_token: Option<String>,
    /// Stands for a gap.
    pub mask_token: Option<String>,
    /// Whether a token says which language a text is in.
    pub marks_languages: bool,
    pub(super) pad_type_id: i64,
    pub(super) bert: BertOptions,
    /// `added_tokens_decoder`, in the order of ids.
    pub(super) added: Vec<tokenizers::AddedToken>,
    pub(super) extra: Vec<String>,
}

/// The options by which the reference rebuilds a `BertNormalizer`; they win over `tokenizer.json`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BertOptions {
    /// Whether the tokenizer's class is a generic one, which rebuilds nothing.
    pub(super) as_stored: bool,
    pub(super) do_lower_case: Option<bool>,
    pub(super) strip_accents: Option<bool>,
    pub(super) tokenize_chinese_chars: Option<bool>,
}

/// One named special token: its key, its field, and the names in use where a checkpoint does not say.
type Role = (&'static str, fn(&mut Settings) -> &mut Option<String>, &'static [&'static str]);

const ROLES: [Role; 7] = [
    ("bos_token", |s| &mut s.bos_token, &[]),
    ("eos_token", |s| &mut s.eos_token, &[]),
    ("unk_token", |s| &mut s.unk_token, &["[UNK]", "<unk>"]),
    ("sep_token", |s| &mut s.sep_token, &["[SEP]", "</s>"]),
    ("pad_token", |s| &mut s.pad_token, &["[PAD]", "<pad>"]),
    ("cls_token", |s| &mut s.cls_token, &["[CLS]", "<s>"]),
    ("mask_token", |s| &mut s.mask_token, &["[MASK]", "<mask>"]),
];

impl Settings {
    pub(super) fn read(checkpoint: &Checkpoint) -> Result<Self> {
        let config = checkpoint.json("tokenizer_config.json")?.unwrap_or(Value::Null);
        let map = checkpoint.json("special_tokens_map.json")?.unwrap_or(Value::Null);
        Ok(Self::from_json(&config, &map))
    }

    fn from_json(config: &Value, map: &Value) -> Self {
        let mut settings = Self {
            model_max_length: ["model_max_length", "max_len"].iter().find_map(|key| limit(&config[*key])),
            padding_side: side(&config["padding_side"]),
            truncation_side: side(&config["truncation_side"]),
            clean_up_tokenization_spaces: config["clean_up_tokenization_spaces"].as_bool().unwrap_or(false),
            model_input_names: config["model_input_names"]
                .as_array()
                .map(|names| names.iter().filter_map(token_text).collect()),
            pad_type_id: config["pad_token_type_id"].as_i64().unwrap_or(0),
            bert: BertOptions {
                as_stored: config["tokenizer_class"]
                    .as_str()
                    .is_some_and(|name| GENERIC_CLASSES.contains(&name)),
                do_lower_case: config["do_lower_case"].as_bool(),
                strip_accents: config["strip_accents"].as_bool(),
                tokenize_chinese_chars: config["tokenize_chinese_chars"].as_bool(),
            },
            added: added_tokens(&config["added_tokens_decoder"]),
            marks_languages: config["tokenizer_class"]
                .as_str()
                .is_some_and(|name| MULTILINGUAL_CLASSES.contains(&name.trim_end_matches("Fast"))),
            ..Self::default()
        };
        for (key, field, _) in ROLES {
            *field(&mut settings) = token_text(&config[key]).or_else(|| token_text(&map[key]));
        }
        for key in ["additional_special_tokens", "extra_special_tokens"] {
            let listed = config[key].as_array().or_else(|| map[key].as_array());
            settings.extra.extend(listed.into_iter().flatten().filter_map(token_text));
        }
        settings
    }

    /// Fills in what the files left open by the names that the vocabulary has as special tokens.
    pub(super) fn complete(&mut self, is_special: impl Fn(&str) -> bool) {
        for (_, field, names) in ROLES {
            let token = field(self);
            if token.is_none() {
                *token = names.iter().find(|name| is_special(name)).map(|name| (*name).to_string());
            }
        }
    }

    /// All named special tokens, in the reference's order.
    pub(super) fn special_tokens(&self) -> impl Iterator<Item = &String> {
        [
            &self.bos_token,
            &self.eos_token,
            &self.unk_token,
            &self.sep_token,
            &self.pad_token,
            &self.cls_token,
            &self.mask_token,
        ]
        .into_iter()
        .flatten()
        .chain(&self.extra)
    }
}

/// A token is written as its text or as an object with its `content`.
fn token_text(value: &Value) -> Option<String> {
    value.as_str().or_else(|| value["content"].as_str()).map(str::to_string)
}

fn limit(value: &Value) -> Option<usize> {
    let number = value.as_f64()?;
    (1.0..NO_LIMIT).contains(&number).then_some(number as usize)
}

fn side(value: &Value) -> Side {
    value.as_str().and_then(Side::parse).unwrap_or_default()
}

fn added_tokens(value: &Value) -> Vec<tokenizers::AddedToken> {
    let mut tokens: Vec<(u64, tokenizers::AddedToken)> = Vec::new();
    for (id, token) in value.as_object().into_iter().flatten() {
        let (Ok(id), Some(content)) = (id.parse(), token_text(token)) else { continue };
        let flag = |key: &str| token[key].as_bool();
        let special = flag("special").unwrap_or(false);
        let token = tokenizers::AddedToken::from(content, special)
            .single_word(flag("single_word").unwrap_or(false))
            .lstrip(flag("lstrip").unwrap_or(false))
            .rstrip(flag("rstrip").unwrap_or(false))
            .normalized(flag("normalized").unwrap_or(!special));
        tokens.push((id, token));
    }
    tokens.sort_by_key(|(id, _)| *id);
    tokens.into_iter().map(|(_, token)| token).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn reads_both_spellings_of_a_token() {
        let config = json!({"mask_token": {"content": "<m>", "lstrip": true}, "pad_token": "<p>"});
        let map = json!({"mask_token": "<other>", "cls_token": "<c>"});
        let settings = Settings::from_json(&config, &map);
        assert_eq!(settings.mask_token.as_deref(), Some("<m>"));
        assert_eq!(settings.pad_token.as_deref(), Some("<p>"));
        assert_eq!(settings.cls_token.as_deref(), Some("<c>"));
        assert_eq!(settings.sep_token, None);
    }

    #[test]
    fn a_huge_length_is_no_limit() {
        let read = |value: &str| {
            let config: Value = serde_json::from_str(&format!("{{\"model_max_length\": {value}}}")).unwrap();
            Settings::from_json(&config, &Value::Null).model_max_length
        };
        assert_eq!(read("512"), Some(512));
        assert_eq!(read("1000000000000000019884624838656"), None);
        assert_eq!(read("1e30"), None);
        assert_eq!(read("null"), None);
    }

    #[test]
    fn what_is_left_open_comes_from_the_vocabulary() {
        let mut settings = Settings::from_json(&json!({"pad_token": "[PAD]"}), &Value::Null);
        settings.complete(|name| ["[MASK]", "[UNK]"].contains(&name));
        assert_eq!(settings.mask_token.as_deref(), Some("[MASK]"));
        assert_eq!(settings.unk_token.as_deref(), Some("[UNK]"));
        assert_eq!(settings.pad_token.as_deref(), Some("[PAD]"));
        assert_eq!(settings.cls_token, None);
    }
}
