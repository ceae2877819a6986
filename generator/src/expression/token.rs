//! The words and signs of an expression.

use std::ops::Range;

use super::Wrong;

/// A word or a sign, and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Token {
    /// The bytes of the text that it is.
    pub span: Range<usize>,
    /// What it is.
    pub kind: Lexeme,
}

/// The kinds of tokens.
#[derive(Clone, Debug, PartialEq)]
pub enum Lexeme {
    /// A number as it is written.
    Number,
    /// What stands between quotes.
    Text(String),
    /// A name or a word of the language.
    Word,
    /// An operator or a bracket.
    Sign,
}

/// Longer ones first.
const SIGNS: [&str; 19] =
    ["**", "??", "==", "!=", "<=", ">=", "<", ">", "+", "-", "*", "/", "%", "(", ")", "[", "]", ".", ","];

/// Splits a text.
pub fn tokens(text: &str) -> Result<Vec<Token>, Wrong> {
    let mut tokens = vec![];
    let mut start = 0;
    while let Some(first) = text[start..].chars().next() {
        let rest = &text[start..];
        let word = || rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        let (length, kind) = if first.is_whitespace() {
            start += first.len_utf8();
            continue;
        } else if first.is_ascii_digit() {
            (number(rest), Lexeme::Number)
        } else if first.is_alphabetic() || first == '_' {
            (word(), Lexeme::Word)
        } else if first == '"' || first == '\'' {
            let Some(end) = rest[1..].find(first) else {
                return Err(Wrong::new(format!("opens a text with {first} and never closes it")));
            };
            (end + 2, Lexeme::Text(rest[1..=end].to_owned()))
        } else if let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
            (sign.len(), Lexeme::Sign)
        } else {
            return Err(Wrong::new(sign(first)));
        };
        tokens.push(Token { span: start..start + length, kind });
        start += length;
    }
    Ok(tokens)
}

/// How many bytes a number is long: `12`, `0.5`, `1e-5`, `16_000`.
fn number(text: &str) -> usize {
    let bytes = text.as_bytes();
    let digits = |mut at: usize| {
        while bytes.get(at).is_some_and(|c| c.is_ascii_digit() || *c == b'_') {
            at += 1;
        }
        at
    };
    let mut end = digits(0);
    if bytes.get(end) == Some(&b'.') && bytes.get(end + 1).is_some_and(u8::is_ascii_digit) {
        end = digits(end + 1);
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let signed = end + 1 + usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        if bytes.get(signed).is_some_and(u8::is_ascii_digit) {
            end = digits(signed);
        }
    }
    end
}

/// What is said of a sign that the language does not have.
fn sign(found: char) -> String {
    let instead = match found {
        '&' => "; `and` joins conditions",
        '|' => "; `or` joins conditions",
        '!' => "; `not` turns a condition round",
        '?' => "; `??` says what stands for null",
        '=' => "; `==` compares",
        ':' | '{' | '}' | ';' | '#' => "; expressions are no Rust",
        _ => "",
    };
    format!("`{found}` is not a sign of expressions{instead}")
}
