//! SentencePiece models of single characters (`spm_char.model` of SpeechT5), as a `tokenizer.json`.
//!
//! Reference: `SpeechT5Tokenizer`, which appends the end-of-sequence token; fields by `sentencepiece_model.proto`.

use serde_json::Value;

use super::filled::{field, filled, special_token};
use crate::base64;

/// A field of a message: a number, or bytes.
enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// The fields of a message, with their numbers; none where it is damaged.
fn fields(mut bytes: &[u8]) -> Option<Vec<(u64, Field<'_>)>> {
    let mut all = vec![];
    while !bytes.is_empty() {
        let key = varint(&mut bytes)?;
        let field = match key & 7 {
            0 => Field::Number(varint(&mut bytes)?),
            1 => Field::Bytes(take(&mut bytes, 8)?),
            2 => {
                let length = usize::try_from(varint(&mut bytes)?).ok()?;
                Field::Bytes(take(&mut bytes, length)?)
            }
            5 => Field::Bytes(take(&mut bytes, 4)?),
            _ => return None,
        };
        all.push((key >> 3, field));
    }
    Some(all)
}

fn take<'a>(bytes: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(count)?;
    *bytes = rest;
    Some(taken)
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = take(bytes, 1)?[0];
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

/// A piece that stands for what is unknown, and one that no text gives.
const UNKNOWN: u64 = 2;
const CONTROL: u64 = 3;
/// The model of single characters.
const CHARACTERS: u64 = 4;

/// The tokenizer of such a model, with the end-of-sequence token behind texts; none where the file is no such model.
pub(super) fn tokenizer_json(bytes: &[u8], eos: &str) -> Option<Value> {
    let (mut vocab, mut added, mut unknown): (Vec<Value>, _, _) = (vec![], vec![], None);
    let (mut model_type, mut charsmap) = (1, &[][..]);
    for (number, field) in fields(bytes)? {
        match (number, field) {
            (1, Field::Bytes(piece)) => {
                let (mut text, mut kind) = ("", 1);
                for (number, field) in fields(piece)? {
                    match (number, field) {
                        (1, Field::Bytes(bytes)) => text = std::str::from_utf8(bytes).ok()?,
                        (3, Field::Number(number)) => kind = number,
                        _ => {}
                    }
                }
                if kind == UNKNOWN {
                    unknown = Some(vocab.len());
                }
                if kind == UNKNOWN || kind == CONTROL {
                    added.push(special_token(vocab.len().into(), text));
                }
                // All alike: each character is one piece, whatever its score.
                vocab.push(vec![Value::from(text), (-1.0).into()].into());
            }
            (2, Field::Bytes(trainer)) => {
                for (number, field) in fields(trainer)? {
                    if let (3, Field::Number(kind)) = (number, field) {
                        model_type = kind;
                    }
                }
            }
            (3, Field::Bytes(normalizer)) => {
                for (number, field) in fields(normalizer)? {
                    if let (2, Field::Bytes(map)) = (number, field) {
                        charsmap = map;
                    }
                }
            }
            _ => {}
        }
    }
    let eos_id = vocab.iter().position(|piece| piece[0] == eos)?;
    if model_type != CHARACTERS {
        return None;
    }
    let special = r#"{"id": "$eos", "ids": ["$eos id"], "tokens": ["$eos"]}"#;
    let ends = [("$eos", eos.into()), ("$eos id", eos_id.into())];
    let mut json = filled(
        TOKENIZER,
        &[
            ends[0].clone(),
            ("$added", added.into()),
            ("$special", field(eos, filled(special, &ends))),
            ("$unknown", unknown.into()),
            ("$vocab", vocab.into()),
            ("$charsmap", base64::encode(charsmap).into()),
        ],
    );
    if charsmap.is_empty()
        && let Some(normalizers) = json["normalizer"]["normalizers"].as_array_mut()
    {
        normalizers.remove(0);
    }
    Some(json)
}

const TOKENIZER: &str = r#"{
    "version": "1.0",
    "added_tokens": "$added",
    "normalizer": {
        "type": "Sequence",
        "normalizers": [
            {"type": "Precompiled", "precompiled_charsmap": "$charsmap"},
            {"type": "Strip", "strip_left": true, "strip_right": true},
            {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}
        ]
    },
    "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": false},
    "post_processor": {
        "type": "TemplateProcessing",
        "single": [{"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "$eos", "type_id": 0}}],
        "pair": [
            {"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}},
            {"SpecialToken": {"id": "$eos", "type_id": 0}}
        ],
        "special_tokens": "$special"
    },
    "decoder": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": false},
    "model": {"type": "Unigram", "unk_id": "$unknown", "vocab": "$vocab", "byte_fallback": false}
}"#;

#[cfg(test)]
mod tests {
    use super::*;

    fn message(number: u8, bytes: &[u8]) -> Vec<u8> {
        [&[number << 3 | 2, bytes.len() as u8], bytes].concat()
    }

    fn piece(text: &str, kind: u8) -> Vec<u8> {
        message(1, &[message(1, text.as_bytes()), vec![3 << 3, kind]].concat())
    }

    #[test]
    fn pieces_are_characters() {
        let pieces =
            [piece("<unk>", 2), piece("</s>", 3), piece("▁", 1), piece("a", 1), message(2, &[3 << 3, 4])];
        let json = tokenizer_json(&pieces.concat(), "</s>").unwrap();
        let read = tokenizers::Tokenizer::from_bytes(json.to_string()).unwrap();
        let ids = |text| read.encode(text, true).unwrap().get_ids().to_vec();
        assert_eq!(ids("a  a "), [2, 3, 2, 3, 1]);
        assert_eq!(ids("axy"), [2, 3, 0, 1]);
        assert_eq!(read.decode(&[2, 3, 2, 3, 1], true).unwrap(), "a a");
    }

    #[test]
    fn other_files_are_refused() {
        assert!(tokenizer_json(&[piece("a", 1), piece("</s>", 3)].concat(), "</s>").is_none());
        assert!(tokenizer_json(b"not one", "</s>").is_none());
        assert!(tokenizer_json(&[10, 200], "</s>").is_none());
    }
}
