//! CLIP's tokenizer of byte pairs, of folders that have its vocabulary and merges alone (`CLIPTokenizer`), as Stable Diffusion's have.

use serde_json::Value;

use super::Settings;
use super::filled::{filled, special_token};

const BEGIN: &str = "<|startoftext|>";
const END: &str = "<|endoftext|>";

/// Whether the vocabulary is CLIP's.
pub(super) fn is_clip(vocabulary: &Value, class: &Value) -> bool {
    matches!(class["tokenizer_class"].as_str(), Some("CLIPTokenizer" | "CLIPTokenizerFast"))
        || (!vocabulary[BEGIN].is_null() && !vocabulary[END].is_null())
}

/// `vocab.json` and `merges.txt` as a `tokenizer.json`; none where they do not fit together.
pub(super) fn tokenizer_json(vocabulary: &Value, merges: &str, settings: &mut Settings) -> Option<Value> {
    for (token, name) in [
        (&mut settings.bos_token, BEGIN),
        (&mut settings.eos_token, END),
        (&mut settings.unk_token, END),
        (&mut settings.pad_token, END),
    ] {
        token.get_or_insert_with(|| name.to_owned());
    }
    let name = |token: &Option<String>| token.clone().unwrap_or_default();
    let (begin, end) = (name(&settings.bos_token), name(&settings.eos_token));
    let id = |token: &str| vocabulary[token].as_u64();
    let (begin_id, end_id) = (id(&begin)?, id(&end)?);
    let merges = merges.lines().filter(|line| !line.starts_with("#version") && !line.trim().is_empty());
    let merges: Vec<Value> = merges
        .map(|line| Some(Value::from_iter(<[_; 2]>::from(line.split_once(' ')?))))
        .collect::<Option<_>>()?;
    Some(filled(
        TOKENIZER,
        &[
            (
                "$added",
                vec![special_token(begin_id.into(), &begin), special_token(end_id.into(), &end)].into(),
            ),
            ("$begin", begin.into()),
            ("$begin id", begin_id.into()),
            ("$end", end.into()),
            ("$end id", end_id.into()),
            ("$unknown", name(&settings.unk_token).into()),
            ("$vocab", vocabulary.clone()),
            ("$merges", merges.into()),
        ],
    ))
}

const TOKENIZER: &str = r#"{
    "version": "1.0",
    "added_tokens": "$added",
    "normalizer": {
        "type": "Sequence",
        "normalizers": [
            {"type": "NFC"},
            {"type": "Replace", "pattern": {"Regex": "\\s+"}, "content": " "},
            {"type": "Lowercase"}
        ]
    },
    "pre_tokenizer": {
        "type": "Sequence",
        "pretokenizers": [
            {
                "type": "Split",
                "pattern": {
                    "Regex": "<\\|startoftext\\|>|<\\|endoftext\\|>|'s|'t|'re|'ve|'m|'ll|'d|[\\p{L}]+|[\\p{N}]|[^\\s\\p{L}\\p{N}]+"
                },
                "behavior": "Removed",
                "invert": true
            },
            {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true}
        ]
    },
    "post_processor": {
        "type": "RobertaProcessing",
        "sep": ["$end", "$end id"],
        "cls": ["$begin", "$begin id"],
        "trim_offsets": false,
        "add_prefix_space": false
    },
    "decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true},
    "model": {
        "type": "BPE",
        "unk_token": "$unknown",
        "continuing_subword_prefix": "",
        "end_of_word_suffix": "</w>",
        "fuse_unk": false,
        "vocab": "$vocab",
        "merges": "$merges"
    }
}"#;

#[cfg(test)]
mod tests {
    use super::super::{EncodeOptions, Text, Tokenizer};
    use crate::hub::Checkpoint;

    #[test]
    fn a_vocabulary_and_merges_are_a_tokenizer() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        write(
            "vocab.json",
            r#"{"a": 0, "t": 1, "a</w>": 2, "t</w>": 3, "at</w>": 4, "<|startoftext|>": 5, "<|endoftext|>": 6}"#,
        );
        write("merges.txt", "#version: 0.2\na t</w>\n");
        write("tokenizer_config.json", r#"{"model_max_length": 77, "tokenizer_class": "CLIPTokenizer"}"#);
        let checkpoint = Checkpoint::open(folder.path().to_str().unwrap()).unwrap();
        let tokenizer = Tokenizer::from_checkpoint(&checkpoint).unwrap();
        let ids = |text: &str| {
            tokenizer.encode(&[Text::from(text)], &EncodeOptions::default()).unwrap()[0].ids.clone()
        };
        assert_eq!(ids("At  a tat!"), [5, 4, 2, 1, 4, 6, 6]);
        assert_eq!(tokenizer.pad_token().map(|(_, id)| id), Some(6));
        write("merges.txt", "#version: 0.2\nat\n");
        let problem = Tokenizer::from_checkpoint(&checkpoint).unwrap_err().to_string();
        assert!(problem.contains("merges.txt"), "{problem}");
    }
}
