//! What fields and structs of a configuration are called in Rust.

use crate::spec::check::join;
use crate::spec::document::Problem;
use crate::spec::yaml::Place;

/// The name of the struct of a crate's whole configuration.
pub(super) const TOP: &str = "Config";

/// The name of the struct that a field holds: the field's, after that of what it is in where that is taken.
pub(super) fn type_name(field: &str, within: &str, taken: impl Fn(&str) -> bool) -> String {
    let mut name = format!("{}Config", camel(field.strip_suffix("_config").unwrap_or(field)));
    while taken(&name) {
        name = match within.strip_suffix("Config").unwrap_or_default() {
            "" => format!("Inner{name}"),
            outer => format!("{outer}{name}"),
        };
    }
    name
}

/// A name as Rust writes it; nothing if a field cannot have it.
pub(super) fn ident(name: &str) -> Option<String> {
    let fits = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !name.starts_with(|c: char| c.is_ascii_digit());
    let plain = weft_code::is_name(name);
    fits.then(|| if plain { name.to_owned() } else { format!("r#{name}") })
}

pub(super) fn no_name(at: &Place, path: &str) -> Problem {
    at.problem(join("config", path), "is not a name that a Rust field can have")
}

/// `text_model` as `TextModel`.
pub(super) fn camel(name: &str) -> String {
    let word = |word: &str| {
        let mut chars = word.chars();
        chars.next().map(|first| first.to_ascii_uppercase().to_string() + chars.as_str()).unwrap_or_default()
    };
    name.split('_').map(word).collect()
}
