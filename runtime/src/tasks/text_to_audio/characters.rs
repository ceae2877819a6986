//! Texts by character, as checkpoints of VITS have them (`VitsTokenizer`).

use std::collections::HashMap;

use ndarray::Array2;

use crate::hub::Checkpoint;
use crate::{Error, Result, Value, Values};

/// The characters of a checkpoint, from `vocab.json` and `tokenizer_config.json`.
#[derive(Debug)]
pub(super) struct Characters {
    ids: HashMap<String, i64>,
    /// The longest of them, in characters.
    longest: usize,
    unknown: Option<i64>,
    /// Whether token 0 stands between them, before the first and behind the last.
    add_blank: bool,
    /// Whether texts are lowercased, and lose what the vocabulary has not.
    normalize: bool,
    romanized: bool,
    romanian: bool,
}

impl Characters {
    /// None where the checkpoint has a tokenizer of another class.
    pub(super) fn read(checkpoint: &Checkpoint) -> Result<Option<Self>> {
        const SETTINGS: &str = "tokenizer_config.json";
        let settings = checkpoint.json(SETTINGS)?.unwrap_or_default();
        if settings["tokenizer_class"] != "VitsTokenizer" {
            return Ok(None);
        }
        if settings["phonemize"].as_bool().unwrap_or(true) {
            let problem =
                "`phonemize` is true: texts would be spelt in phonemes by eSpeak, which is not part of this";
            let help = "open a checkpoint of characters, such as facebook/mms-tts-eng";
            return Err(Error::tokenizer(checkpoint.dir().join(SETTINGS), problem, help));
        }
        let path = checkpoint.require("vocab.json")?;
        let vocabulary = checkpoint.json("vocab.json")?.unwrap_or_default();
        let entries = vocabulary.as_object().into_iter().flatten();
        let ids: HashMap<String, i64> = entries
            .filter_map(|(token, id)| Some((token.clone(), id.as_i64().filter(|id| *id >= 0)?)))
            .collect();
        if ids.is_empty() {
            return Err(Error::tokenizer(path, "holds no characters", "fetch the file again"));
        }
        let flag = |name: &str, default: bool| settings[name].as_bool().unwrap_or(default);
        let unknown = &settings["unk_token"];
        let unknown = unknown.as_str().or(unknown["content"].as_str()).unwrap_or("<unk>");
        Ok(Some(Self {
            longest: ids.keys().map(|token| token.chars().count()).max().unwrap_or(1),
            unknown: ids.get(unknown).copied(),
            ids,
            add_blank: flag("add_blank", true),
            normalize: flag("normalize", true),
            romanized: flag("is_uroman", false),
            romanian: settings["language"] == "ron",
        }))
    }

    /// `input_ids` and `attention_mask`, `[1, tokens]`.
    pub(super) fn encode(&self, text: &str) -> Result<Values> {
        let tokens = self.tokens(text)?;
        let ids = if self.add_blank {
            let pairs = tokens.iter().flat_map(|id| [0, *id]);
            pairs.chain([0]).collect()
        } else {
            tokens
        };
        let count = ids.len();
        let ids = Array2::from_shape_vec((1, count), ids);
        let ids = ids.map_err(|e| Error::input("text", e.to_string(), "give a text"))?;
        let mask = Array2::<i64>::ones((1, count));
        Ok(Values::from([
            ("input_ids".to_owned(), Value::from(ids.into_dyn())),
            ("attention_mask".to_owned(), Value::from(mask.into_dyn())),
        ]))
    }

    fn tokens(&self, text: &str) -> Result<Vec<i64>> {
        let mut text = if self.normalize { self.lowercased(text) } else { text.to_owned() };
        if self.romanian {
            text = text.replace('ț', "ţ");
        }
        if self.romanized && !text.is_ascii() {
            let problem = "has other letters than Roman ones, which the checkpoint takes romanised";
            return Err(Error::input("text", problem, "romanise it by `uroman` first"));
        }
        let id = |letter: char| self.ids.get(letter.encode_utf8(&mut [0; 4]) as &str).copied();
        if self.normalize {
            text = text.chars().filter(|letter| id(*letter).is_some()).collect::<String>().trim().to_owned();
        }
        let ids: Vec<i64> = text.chars().filter_map(|letter| id(letter).or(self.unknown)).collect();
        if ids.is_empty() {
            return Err(Error::input(
                "text",
                "is empty, or has no character that the checkpoint knows",
                "give a text",
            ));
        }
        Ok(ids)
    }

    /// The text in lower case, but for what the vocabulary has otherwise (`normalize_text`).
    fn lowercased(&self, text: &str) -> String {
        let letters: Vec<char> = text.chars().collect();
        let (mut all, mut at) = (String::new(), 0);
        while at < letters.len() {
            let rest = &letters[at..];
            let known = (1..=self.longest.min(rest.len()))
                .find(|&length| self.ids.contains_key(&rest[..length].iter().collect::<String>()));
            match known {
                Some(length) => all.extend(&rest[..length]),
                None => all.extend(rest[0].to_lowercase()),
            }
            at += known.unwrap_or(1);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn characters(settings: &str) -> Result<Option<Characters>> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(
            folder.path().join("vocab.json"),
            r#"{"_": 0, "a": 1, "b": 2, " ": 3, "K": 4, "<unk>": 5}"#,
        )
        .unwrap();
        std::fs::write(folder.path().join("tokenizer_config.json"), settings).unwrap();
        Characters::read(&Checkpoint::open(folder.path().to_str().unwrap()).unwrap())
    }

    #[test]
    fn texts_are_lowercased_and_lose_what_is_unknown() {
        let plain = r#"{"tokenizer_class": "VitsTokenizer", "phonemize": false, "add_blank": false}"#;
        let read = characters(plain).unwrap().unwrap();
        assert_eq!(read.tokens(" AK b, c!").unwrap(), [1, 4, 3, 2]);
        assert!(read.tokens("?!").unwrap_err().to_string().contains("no character"));
        let blanks = plain.replace("false}", "true, \"is_uroman\": true}");
        let read = characters(&blanks).unwrap().unwrap();
        let ids = read.encode("ab").unwrap();
        assert_eq!(
            ids["input_ids"].i64("input_ids").unwrap().iter().copied().collect::<Vec<_>>(),
            [0, 1, 0, 2, 0]
        );
        assert!(read.encode("ж").unwrap_err().to_string().contains("romanise"));
    }

    #[test]
    fn other_tokenizers_and_phonemes_are_told_apart() {
        assert!(characters(r#"{"tokenizer_class": "BertTokenizer"}"#).unwrap().is_none());
        let text = characters(r#"{"tokenizer_class": "VitsTokenizer"}"#).unwrap_err().to_string();
        assert!(text.contains("phonemize") && text.contains("mms-tts"), "{text}");
    }
}
