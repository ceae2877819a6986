//! Expressions over fields of `config`, as specs write them: `hidden_size / num_attention_heads`.
//!
//! What a spec computes is said in this small language, never in Rust: names are fields of `config`, or what the template
//! that is given the expression declares, such as `layer`. Every expression is checked for names and types before Rust is
//! made of it.

mod check;
mod parse;
mod print;
mod token;
mod tree;
mod value;

#[cfg(test)]
mod tests;

use indexmap::IndexMap;

pub use check::Checked;
pub use tree::{Expression, Operator};

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A count or a size, never negative.
    Usize,
    /// A whole number.
    I64,
    /// A number.
    F64,
    /// True or false.
    Bool,
    /// A text.
    Text,
    /// Several of one kind.
    List(Item),
    /// `null` alone.
    Null,
    /// What expressions can only pass on.
    Other(&'static str),
}

/// What the elements of a list are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item {
    /// Counts or sizes.
    Usize,
    /// Numbers.
    F64,
    /// Texts.
    Text,
    /// Truth values.
    Bool,
}

impl Item {
    fn kind(self) -> Kind {
        match self {
            Self::Usize => Kind::Usize,
            Self::F64 => Kind::F64,
            Self::Text => Kind::Text,
            Self::Bool => Kind::Bool,
        }
    }
}

impl Kind {
    /// What it is, in words for an error.
    pub fn words(self) -> &'static str {
        match self {
            Self::Usize => "a count",
            Self::I64 => "a whole number",
            Self::F64 => "a number",
            Self::Bool => "true or false",
            Self::Text => "a text",
            Self::List(_) => "a list",
            Self::Null => "null",
            Self::Other(words) => words,
        }
    }
}

/// A name that an expression may use.
#[derive(Clone, Debug, PartialEq)]
pub struct Name {
    /// What it is.
    pub kind: Kind,
    /// Whether it may be null.
    pub optional: bool,
    /// The Rust expression that reads it.
    pub rust: String,
    /// The least that it can be.
    pub min: i64,
    /// The words that it can be; any if empty.
    pub of: Vec<String>,
}

/// The names that expressions may use.
pub trait Names {
    /// The name, dots within it leading into configurations; or what is wrong with it.
    ///
    /// # Errors
    /// There is no such name, or it cannot be read.
    fn name(&self, path: &str) -> Result<Name, Wrong>;
}

/// What is wrong with an expression, and the nearest valid name.
#[derive(Clone, Debug, PartialEq)]
pub struct Wrong {
    /// The problem, in words; nothing where it is told elsewhere.
    pub message: String,
    /// The name that was meant, if one is near.
    pub nearest: Option<String>,
}

impl Wrong {
    /// A problem without a name.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), nearest: None }
    }
}

/// The types of the variables that a template binds where it puts an expression.
pub type Variables = IndexMap<String, Kind>;

/// Stands in Rust before the name of a variable that the template binds.
pub const OPEN: char = '\u{E002}';
/// Stands in Rust behind the name of a variable that the template binds.
pub const CLOSE: char = '\u{E003}';

/// Rust in which the variables of an expression are what a template says.
pub fn bind<'a>(rust: &str, variables: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    variables
        .into_iter()
        .fold(rust.to_owned(), |text, (name, with)| text.replace(&format!("{OPEN}{name}{CLOSE}"), with))
}

/// The first variable in Rust that no template has bound.
pub fn unbound(rust: &str) -> Option<&str> {
    let (_, rest) = rust.split_once(OPEN)?;
    rest.split_once(CLOSE).map(|(name, _)| name)
}
