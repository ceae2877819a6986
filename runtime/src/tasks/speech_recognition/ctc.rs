//! CTC decoding (connectionist temporal classification): the most probable character of each frame, to text.
//!
//! Reference: `Wav2Vec2CTCTokenizer`.

use std::collections::HashMap;

use serde_json::Value as Json;

use crate::hub::Checkpoint;
use crate::text::clean_up;
use crate::{Error, Result};

/// The characters of a checkpoint, from `vocab.json` and `tokenizer_config.json`.
#[derive(Debug)]
pub(super) struct Characters {
    by_id: HashMap<usize, String>,
    unknown: String,
    /// Stands for no character.
    blank: String,
    delimiter: String,
    /// What stands for the delimiter in text.
    space: String,
    lower: bool,
    clean_up: bool,
}

/// A text and the frames that it is from.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Span {
    pub text: String,
    /// The first frame.
    pub start: usize,
    /// The frame after the last.
    pub end: usize,
}

impl Characters {
    pub(super) fn read(checkpoint: &Checkpoint) -> Result<Self> {
        let path = checkpoint.require("vocab.json")?;
        let vocabulary = checkpoint.json("vocab.json")?.unwrap_or_default();
        let settings = checkpoint.json("tokenizer_config.json")?.unwrap_or_default();
        // Special tokens are texts, or objects with their text as `content`.
        let text = |key: &str, default: &str| {
            let token = &settings[key];
            token.as_str().or(token["content"].as_str()).unwrap_or(default).to_owned()
        };
        // Checkpoints of many languages hold a vocabulary for each.
        let own = match settings["target_lang"].as_str() {
            Some(language) => &vocabulary[language],
            None => &vocabulary,
        };
        let entries = own.as_object().into_iter().flatten();
        let by_id: HashMap<usize, String> = entries
            .filter_map(|(token, id)| Some((usize::try_from(id.as_u64()?).ok()?, token.clone())))
            .collect();
        if by_id.is_empty() {
            let problem = "holds no characters, or none of the `target_lang` of tokenizer_config.json";
            return Err(Error::tokenizer(path, problem, "use the files as the checkpoint publishes them"));
        }
        Ok(Self {
            by_id,
            unknown: text("unk_token", "<unk>"),
            blank: text("pad_token", "<pad>"),
            delimiter: text("word_delimiter_token", "|"),
            space: text("replace_word_delimiter_char", " "),
            lower: settings["do_lower_case"].as_bool().unwrap_or(false),
            clean_up: settings["clean_up_tokenization_spaces"].as_bool().unwrap_or(false),
        })
    }

    /// The characters of frames: neighbours that are alike are one, blanks none.
    pub(super) fn spans(&self, frames: &[usize]) -> Vec<Span> {
        let token = |id: &usize| self.by_id.get(id).unwrap_or(&self.unknown);
        let mut spans = vec![];
        let mut start = 0;
        for run in frames.chunk_by(|a, b| token(a) == token(b)) {
            let (end, found) = (start + run.len(), token(&run[0]));
            if *found != self.blank {
                let text = if *found == self.delimiter { &self.space } else { found };
                spans.push(Span { text: text.clone(), start, end });
            }
            start = end;
        }
        spans
    }

    /// The text of characters.
    pub(super) fn text(&self, spans: &[Span]) -> String {
        let joined: String = spans.iter().map(|span| span.text.as_str()).collect();
        let text = joined.trim().to_owned();
        let text = if self.lower { text.to_lowercase() } else { text };
        if self.clean_up { clean_up(text) } else { text }
    }

    /// The words of characters: what is between spaces.
    pub(super) fn words(&self, spans: &[Span]) -> Vec<Span> {
        let between = spans.split(|span| span.text == self.space);
        let word = |letters: &[Span]| {
            let (first, last) = (letters.first()?, letters.last()?);
            let text = letters.iter().map(|span| span.text.as_str()).collect();
            Some(Span { text, start: first.start, end: last.end })
        };
        between.filter_map(word).collect()
    }
}

/// How many samples a frame stands for: the product of the strides of the convolutions.
pub(super) fn samples_per_frame(config: &Json) -> usize {
    // What all such architectures have where `config.json` does not say.
    let usual = 320;
    let strides = config["conv_stride"].as_array().into_iter().flatten().filter_map(Json::as_u64);
    let strides = strides.reduce(u64::saturating_mul);
    // Of frames of mel bins, as Wav2Vec2-BERT's configuration counts them (`inputs_to_logits_ratio`).
    let stacked = config["feature_projection_input_dim"].as_u64().map(|width| {
        let adapters = config["num_adapter_layers"].as_u64().filter(|_| config["add_adapter"] == true);
        let stride = config["adapter_stride"].as_u64().unwrap_or(2);
        let fewer = stride.saturating_pow(u32::try_from(adapters.unwrap_or(0)).unwrap_or(0));
        width.saturating_mul(2).saturating_mul(fewer)
    });
    strides.or(stacked).and_then(|n| usize::try_from(n).ok()).unwrap_or(usual).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn characters(settings: &str) -> Characters {
        let folder = tempfile::tempdir().unwrap();
        let vocabulary = r#"{"<pad>": 0, "|": 1, "A": 2, "B": 3, "'S": 4}"#;
        std::fs::write(folder.path().join("vocab.json"), vocabulary).unwrap();
        std::fs::write(folder.path().join("tokenizer_config.json"), settings).unwrap();
        Characters::read(&Checkpoint::open(folder.path().to_str().unwrap()).unwrap()).unwrap()
    }

    #[test]
    fn repeats_are_one_unless_a_blank_parts_them() {
        let characters = characters("{}");
        let spans = characters.spans(&[0, 2, 2, 0, 2, 3, 1, 1, 0, 1, 4, 9, 0]);
        assert_eq!(characters.text(&spans), "AAB  'S<unk>");
        let words = characters.words(&spans);
        assert_eq!(words[0], Span { text: "AAB".into(), start: 1, end: 6 });
        assert_eq!(words[1], Span { text: "'S<unk>".into(), start: 10, end: 12 });
        assert_eq!(words.len(), 2);
    }

    #[test]
    fn settings_change_the_text() {
        let settings =
            r#"{"do_lower_case": true, "clean_up_tokenization_spaces": true, "pad_token": {"content": "B"}}"#;
        let characters = characters(settings);
        assert_eq!(characters.text(&characters.spans(&[2, 3, 2, 1, 4])), "aa's");
    }

    #[test]
    fn strides_multiply() {
        assert_eq!(samples_per_frame(&serde_json::json!({"conv_stride": [5, 2, 2]})), 20);
        assert_eq!(samples_per_frame(&Json::Null), 320);
        let stacked = serde_json::json!({"feature_projection_input_dim": 160, "add_adapter": true, "num_adapter_layers": 2});
        assert_eq!(samples_per_frame(&stacked), 1280);
    }
}
