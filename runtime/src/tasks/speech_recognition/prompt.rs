//! What a text begins with: the tokens that tell an encoder-decoder which language to write.
//!
//! Reference: `CohereAsrProcessor`, `CanaryProcessor` and `SeamlessM4TForSpeechToText.generate`.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::json;

use super::{SpeechOptions, languages};
use crate::hub::Checkpoint;
use crate::text::chat::{ChatOptions, ChatTemplate, Message};
use crate::text::{EncodeOptions, Text, Tokenizer};
use crate::{Error, Result};

/// The languages of `CohereAsrProcessor`, and those that are written without spaces.
const COHERE: [&str; 14] =
    ["ar", "de", "el", "en", "es", "fr", "it", "ja", "ko", "nl", "pl", "pt", "vi", "zh"];
const WITHOUT_SPACES: [&str; 2] = ["ja", "zh"];
/// The languages of `CanaryProcessor`.
const CANARY: [&str; 25] = [
    "bg", "cs", "da", "de", "el", "en", "es", "et", "fi", "fr", "hr", "hu", "it", "lt", "lv", "mt", "nl",
    "pl", "pt", "ro", "ru", "sk", "sl", "sv", "uk",
];

/// The decoder's first tokens.
#[derive(Debug)]
pub(super) enum DecoderPrompt {
    /// The one that all texts begin with.
    Start,
    /// That of the language to write, by its code (`text_decoder_lang_to_code_id`).
    Languages(BTreeMap<String, i64>),
    /// Ten, of which three say the language and whether there is punctuation (`get_decoder_prompt_ids`).
    Tokens,
    /// What the chat template makes of two languages (`apply_transcription_request`).
    Template(Box<ChatTemplate>),
}

impl DecoderPrompt {
    pub(super) fn read(checkpoint: &Checkpoint, tokenizer: &Tokenizer) -> Result<Self> {
        let generation = checkpoint.json("generation_config.json")?.unwrap_or_default();
        let codes = &generation["text_decoder_lang_to_code_id"];
        if !codes.is_null() {
            let codes = BTreeMap::deserialize(codes).map_err(|e| {
                let file = checkpoint.dir().join("generation_config.json");
                let problem = format!("`text_decoder_lang_to_code_id`: {e}");
                Error::config(file, problem, "take the published file")
            })?;
            return Ok(Self::Languages(codes));
        }
        let config = checkpoint.json("config.json")?.unwrap_or_default();
        match config["model_type"].as_str() {
            Some("cohere_asr") => Ok(Self::Tokens),
            Some("canary") => Ok(match ChatTemplate::from_checkpoint(checkpoint, tokenizer)? {
                Some(template) => Self::Template(Box::new(template)),
                None => Self::Start,
            }),
            _ => Ok(Self::Start),
        }
    }

    /// The tokens behind the first, which is put before them where they lack it.
    pub(super) fn tokens(
        &self,
        tokenizer: &Tokenizer,
        options: &SpeechOptions,
        start: i64,
    ) -> Result<Vec<i64>> {
        if options.task.as_deref().is_some_and(|task| task != "transcribe" && task != "translate") {
            let problem = "is neither of what models do";
            return Err(Error::input("task", problem, "give `transcribe` or `translate`"));
        }
        let mut tokens = match self {
            Self::Start => vec![],
            Self::Languages(codes) => {
                let code = options.target_language.as_deref().or(options.language.as_deref());
                code.map(|code| language_token(codes, code)).transpose()?.into_iter().collect()
            }
            Self::Tokens => {
                let language = self.language(options)?.unwrap_or_default();
                cohere_tokens(tokenizer, language, options.punctuation.unwrap_or(true))?
            }
            Self::Template(template) => {
                let source = match &options.language {
                    Some(language) => code_of(&CANARY, "language", language)?,
                    None => "en",
                };
                let target = match &options.target_language {
                    Some(language) => code_of(&CANARY, "target_language", language)?,
                    None => source,
                };
                let asked = json!([{ "type": "audio" }, {
                    "type": "text",
                    "source_language": source,
                    "target_language": target,
                    "punctuation": options.punctuation.unwrap_or(true),
                }]);
                let messages = [Message::new("user", asked)];
                let text = template.render(&messages, &ChatOptions::answering(&messages))?;
                let rows = tokenizer.encode(&[Text::Single(&text)], &EncodeOptions::default())?;
                rows.first().map(|row| row.ids.clone()).unwrap_or_default()
            }
        };
        if tokens.first() != Some(&start) {
            tokens.insert(0, start);
        }
        Ok(tokens)
    }

    /// What stands between the texts of a recording's pieces.
    pub(super) fn separator(&self, options: &SpeechOptions) -> Result<&'static str> {
        let language = self.language(options)?;
        Ok(if language.is_some_and(|code| WITHOUT_SPACES.contains(&code)) { "" } else { " " })
    }

    /// The language that is spoken, where the model must be told.
    fn language(&self, options: &SpeechOptions) -> Result<Option<&'static str>> {
        match (self, &options.language) {
            (Self::Tokens, Some(language)) => code_of(&COHERE, "language", language).map(Some),
            (Self::Tokens, None) => {
                let problem = "was not given, and this model does not detect it";
                Err(Error::input("language", problem, format!("give one of {}", COHERE.join(", "))))
            }
            _ => Ok(None),
        }
    }
}

/// The code of a language by its name or code.
fn code_of(known: &[&'static str], what: &str, language: &str) -> Result<&'static str> {
    let wanted = language.trim().to_lowercase();
    let wanted = languages::code(&wanted).unwrap_or(&wanted);
    known.iter().find(|code| **code == wanted).copied().ok_or_else(|| {
        let problem = format!("`{language}` is none of the model's");
        Error::input(what, problem, format!("give one of {}", known.join(", ")))
    })
}

/// The token of a language by its code, which may stand between underscores.
fn language_token(codes: &BTreeMap<String, i64>, language: &str) -> Result<i64> {
    codes.get(&language.replace("__", "")).copied().ok_or_else(|| {
        let known: Vec<_> = codes.keys().map(String::as_str).collect();
        let problem = format!("`{language}` is none of the model's");
        Error::input("target_language", problem, format!("give one of {}", known.join(", ")))
    })
}

/// What Cohere's decoder is told of a recording (`get_decoder_prompt_ids`).
fn cohere_tokens(tokenizer: &Tokenizer, language: &str, punctuation: bool) -> Result<Vec<i64>> {
    let language = format!("<|{language}|>");
    let tokens = [
        "▁",
        "<|startofcontext|>",
        "<|startoftranscript|>",
        "<|emo:undefined|>",
        &language,
        &language,
        if punctuation { "<|pnc|>" } else { "<|nopnc|>" },
        "<|noitn|>",
        "<|notimestamp|>",
        "<|nodiarize|>",
    ];
    let id = |token: &str| {
        tokenizer.id(token).ok_or_else(|| {
            let problem = format!("has no token `{token}`, which the decoder is to be told");
            Error::config(tokenizer.file(), problem, "take the published file")
        })
    };
    tokens.into_iter().map(id).collect()
}

/// The texts of a recording's pieces as one (`_reassemble_chunk_texts`).
pub(super) fn joined(texts: &[String], separator: &str) -> String {
    let written = texts.iter().filter(|text| !text.trim().is_empty()).enumerate();
    let parts: Vec<_> =
        written.map(|(index, text)| if index == 0 { text.trim_end() } else { text.trim() }).collect();
    parts.join(separator)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn languages_have_names_and_codes() {
        assert_eq!(code_of(&CANARY, "language", "Croatian").unwrap(), "hr");
        assert_eq!(code_of(&COHERE, "language", "vi").unwrap(), "vi");
        let refused = code_of(&COHERE, "language", "Welsh").unwrap_err().to_string();
        assert!(refused.contains("`Welsh`") && refused.contains("ar, de, el"), "{refused}");
        let codes = BTreeMap::from([("eng".to_owned(), 7)]);
        assert_eq!(language_token(&codes, "__eng__").unwrap(), 7);
        assert!(language_token(&codes, "fra").unwrap_err().to_string().contains("give one of eng"));
    }

    #[test]
    fn pieces_are_joined_without_what_surrounds_them() {
        let texts = [" one ", " ", "two ", " three"].map(str::to_owned);
        assert_eq!(joined(&texts, " "), " one two three");
        assert_eq!(joined(&[], " "), "");
    }
}
