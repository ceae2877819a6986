//! The bytes that each token stands for, whatever stands before it.
//!
//! Reference: `StopStringCriteria.clean_tokenizer_vocab`.

use serde_json::Value;

use super::{EncodeOptions, Tokenizer};
use crate::Result;

/// A text before the token whose bytes are wanted: decoders treat the first token of a text differently.
const BEFORE: &str = "abcdef";

/// Tells the bytes of tokens.
#[derive(Clone, Debug)]
pub struct TokenBytes {
    tokenizer: Tokenizer,
    coding: Coding,
    /// The tokens of [`BEFORE`].
    before: Vec<String>,
}

/// How a vocabulary writes bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Coding {
    /// A letter for every byte (`Ġ` for the space).
    Letters,
    /// `<0x0A>` for bytes that are no text of a token.
    Fallback,
    /// Not at all.
    Text,
}

impl Tokenizer {
    /// The bytes of tokens.
    ///
    /// # Errors
    /// When the tokenizer cannot encode.
    pub fn token_bytes(&self) -> Result<TokenBytes> {
        let decoder = self.core.get_decoder().and_then(|decoder| serde_json::to_value(decoder).ok());
        let coding = match decoder {
            Some(decoder) if has_type(&decoder, "ByteFallback") => Coding::Fallback,
            Some(decoder) if has_type(&decoder, "ByteLevel") => Coding::Letters,
            _ => Coding::Text,
        };
        let plain = EncodeOptions { add_special_tokens: false, ..EncodeOptions::default() };
        let ids = self.encode(&[BEFORE.into()], &plain)?.into_iter().flat_map(|row| row.ids);
        let before = ids.filter_map(|id| self.token(id)).collect();
        Ok(TokenBytes { tokenizer: self.clone(), coding, before })
    }
}

impl TokenBytes {
    /// The bytes of one token; none for ids without a token.
    ///
    /// # Errors
    /// When the tokenizer's decoder fails.
    pub fn of(&self, id: i64) -> Result<Vec<u8>> {
        let Some(token) = self.tokenizer.token(id) else { return Ok(Vec::new()) };
        let bytes = match self.coding {
            Coding::Letters => token.chars().map(byte_of_letter).collect::<Option<Vec<u8>>>(),
            Coding::Fallback => byte_of_fallback(&token).map(|byte| vec![byte]),
            Coding::Text => None,
        };
        if let Some(bytes) = bytes {
            return Ok(bytes);
        }
        let mut tokens = self.before.clone();
        tokens.push(token);
        let text = self.tokenizer.tokens_to_string(&tokens)?;
        let start = text.find(BEFORE).map_or(0, |at| at + BEFORE.len());
        Ok(text.as_bytes()[start..].to_vec())
    }
}

/// Whether a decoder, or one that it is made of, has this type.
fn has_type(decoder: &Value, name: &str) -> bool {
    match decoder {
        Value::Object(fields) => {
            fields.get("type").is_some_and(|kind| kind == name)
                || fields.values().any(|value| has_type(value, name))
        }
        Value::Array(list) => list.iter().any(|value| has_type(value, name)),
        _ => false,
    }
}

/// The byte that a letter of a byte-level vocabulary stands for: itself where it is printable, and the next free
/// letter from 256 on otherwise.
fn byte_of_letter(letter: char) -> Option<u8> {
    let printable = |byte: u8| matches!(byte, b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff);
    let code = u32::from(letter);
    if let Ok(byte) = u8::try_from(code) {
        return printable(byte).then_some(byte);
    }
    (0..=u8::MAX).filter(|byte| !printable(*byte)).nth(code as usize - 256)
}

/// The byte of `<0x0A>`.
fn byte_of_fallback(token: &str) -> Option<u8> {
    let digits = token.strip_prefix("<0x")?.strip_suffix('>')?;
    (digits.len() == 2).then(|| u8::from_str_radix(digits, 16).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_and_fallbacks_are_bytes() {
        assert_eq!(byte_of_letter('A'), Some(b'A'));
        assert_eq!(byte_of_letter('Ġ'), Some(b' '));
        assert_eq!(byte_of_letter('Ċ'), Some(b'\n'));
        assert_eq!(byte_of_letter('é'), Some(0xe9));
        assert_eq!(byte_of_letter('Ń'), Some(0xad));
        assert_eq!(byte_of_letter(' '), None);
        assert_eq!(byte_of_letter('日'), None);
        assert_eq!(byte_of_fallback("<0x0A>"), Some(10));
        assert_eq!(byte_of_fallback("<0x0>"), None);
        assert_eq!(byte_of_fallback("0x0A"), None);
    }
}
