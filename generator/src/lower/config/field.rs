//! What is known of a field of `config`.

use serde::Serialize;

use super::Config;
use crate::spec::model::{ConfigField, ConfigType};

/// A field of a struct.
#[derive(Clone, Debug, Serialize)]
pub struct Field {
    /// Its name in the spec.
    pub name: String,
    /// Its name in `config.json`, where that is another.
    pub key: Option<String>,
    /// Its name in Rust.
    pub ident: String,
    /// All names that files have for it, the one first that wins; empty if there is but one.
    pub names: Vec<String>,
    /// Its Rust type.
    pub rust: String,
    /// Its type in specs; none if it holds a configuration.
    pub kind: Option<ConfigType>,
    /// The type of the configuration that it holds.
    pub holds: Option<String>,
    /// Whether it may be absent.
    pub optional: bool,
    /// Whether older files say it, or a field within it, otherwise.
    pub prepares: bool,
    /// The base of rotary position embeddings where `config.json` has none, as a Rust expression.
    pub theta: Option<String>,
    /// The share of a head that turns where `config.json` has none, if that is not all of it.
    pub partial_rotary_factor: Option<f64>,
    /// What stretches them where `config.json` does not say, as a Rust expression.
    pub rope_scaling: Option<String>,
    /// Its default as a Rust expression; it must be given where there is none.
    pub default: Option<String>,
    /// What it means.
    pub doc: String,
    /// Whether code reads it by a method.
    #[serde(skip)]
    pub method: bool,
    /// The least that it can be.
    #[serde(skip)]
    pub min: i64,
    /// The words that it can be, or that it lists; any if empty.
    #[serde(skip)]
    pub of: Vec<String>,
}

/// What a name in code that reads a configuration is.
#[derive(Clone, Copy, Debug)]
pub enum Read<'a> {
    /// A plain field.
    Field,
    /// A method.
    Method,
    /// A configuration within this one.
    Nested(&'a Config),
}

/// What a spec says of a field, and what is known of it by its name where the spec says nothing.
pub(super) fn fill(given: ConfigField, known: ConfigField) -> ConfigField {
    ConfigField {
        kind: given.kind.or(known.kind),
        optional: given.optional.or(known.optional),
        doc: given.doc.or(known.doc),
        min: given.min.or(known.min),
        of: if given.of.is_empty() { known.of } else { given.of },
        length: given.length.or(known.length),
        min_length: given.min_length.or(known.min_length),
        ..given
    }
}

/// All names that files have for a field, the one first that wins; none if there is but one.
pub(super) fn names(name: &str, field: &ConfigField) -> Vec<String> {
    let own = field.key.iter().map(String::as_str).chain([name]);
    let winning = field.overridden_by.iter().map(String::as_str);
    let names: Vec<_> = winning.chain(own).chain(field.aliases.iter().map(String::as_str)).collect();
    if names.len() == 1 { vec![] } else { names.into_iter().map(str::to_owned).collect() }
}
