//! What types alone cannot check of a field: bounds, multiples, the only value that is supported.

use indexmap::IndexMap;
use serde::Serialize;

use super::Config;
use super::literal::literal;
use crate::spec::check::join;
use crate::spec::document::{Problem, nearest_name};
use crate::spec::model::{ConfigEntry, ConfigField, ConfigType};
use crate::spec::yaml::Place;

/// A size that must not be zero.
#[derive(Clone, Debug, Serialize)]
pub struct Size {
    /// Its name in Rust.
    pub ident: String,
    /// Its name in `config.json`.
    pub key: String,
}

/// A condition that must not hold, and what it means if it does.
#[derive(Clone, Debug, Serialize)]
pub struct Check {
    /// The fields that it names as they are, besides those of `self`.
    pub reads: Vec<String>,
    /// A Rust expression.
    pub fails: String,
    /// A Rust expression that gives the message.
    pub message: String,
}

/// A value that a field may not have, where one is the only one supported.
#[derive(Clone, Debug, Serialize)]
pub struct Refused {
    /// The field, its path in `config.json`.
    pub field: String,
    /// The value, in JSON.
    pub value: String,
}

/// The checks of one field.
#[allow(clippy::too_many_arguments, reason = "all that is known of a field")]
pub(super) fn add(
    config: &mut Config,
    name: &str,
    ident: &str,
    kind: ConfigType,
    field: &ConfigField,
    fields: &IndexMap<String, ConfigEntry>,
    key: &str,
    at: &Place,
) -> Result<(), Problem> {
    let optional = field.optional.unwrap_or(false) || field.otherwise.is_some();
    let kind = if matches!(kind, ConfigType::Edge | ConfigType::Period) { ConfigType::Usize } else { kind };
    let shown = field.key.as_deref().unwrap_or(name);
    if let Some(min) = field.min {
        match (kind, min, optional) {
            (ConfigType::Usize, 0, _) => {}
            (ConfigType::Usize, 1, false) => {
                config.sizes.push(Size { ident: ident.to_owned(), key: shown.to_owned() });
            }
            (ConfigType::Usize | ConfigType::I64 | ConfigType::F64, ..) => {
                config.checks.push(least(shown, ident, kind, min, optional));
            }
            (ConfigType::Usizes, ..) if !optional => config.checks.push(Check {
                reads: vec![],
                fails: format!("self.{ident}.iter().any(|&value| value < {min})"),
                message: format!("format!(\"{shown}: {{:?}} has a value less than {min}\", self.{ident})"),
            }),
            (ConfigType::PerLayer, ..) if !optional => config.checks.push(Check {
                reads: vec![],
                fails: format!("self.{ident}.0.iter().any(|&value| value < {min})"),
                message: format!("format!(\"{shown}: {{:?}} has a value less than {min}\", self.{ident}.0)"),
            }),
            (ConfigType::Pair, ..) if !optional => config.checks.push(Check {
                reads: vec![],
                fails: format!("self.{ident}.height < {min} || self.{ident}.width < {min}"),
                message: format!("format!(\"{shown}: {{:?}} is less than {min}\", self.{ident})"),
            }),
            _ => return Err(at.problem(join(key, "min"), "only numbers have a least value")),
        }
    }
    if let Some(divisor) = &field.multiple_of {
        config.checks.push(multiple(name, kind, field, divisor, fields, key, at)?);
    }
    lists(config, ident, kind, field, fields, key, at)?;
    if let (None, Some(because)) = (&field.only, &field.because) {
        if !optional {
            return Err(at.problem(join(key, "because"), "says why of `only`, which is not given"));
        }
        let text = format!("{shown}: must be null: {because}");
        let fails = format!("self.{ident}.is_some()");
        config.checks.push(Check { reads: vec![], fails, message: format!("{text:?}.to_owned()") });
        config.refused.push(Refused { field: within(&config.path, shown), value: another(kind, "") });
    }
    if let Some(only) = &field.only {
        let value = literal(kind, only).map_err(|(message, _)| at.problem(join(key, "only"), message))?;
        let because = field.because.as_deref().unwrap_or("no other value is supported");
        let text = format!("{shown}: must be {}: {because}", only.show());
        let plain = value.trim_end_matches(".to_owned()");
        let fails = match kind {
            ConfigType::String if optional && plain == "\"\"" => {
                format!("self.{ident}.as_deref().is_some_and(|value| !value.is_empty())")
            }
            ConfigType::String if plain == "\"\"" => format!("!self.{ident}.is_empty()"),
            _ if optional && kind == ConfigType::String => {
                format!("self.{ident}.as_deref().is_some_and(|value| value != {plain})")
            }
            ConfigType::Bool if optional => format!("self.{ident} == Some({})", value == "false"),
            _ if optional => format!("self.{ident}.is_some_and(|value| value != {plain})"),
            ConfigType::Bool if value == "false" => format!("self.{ident}"),
            ConfigType::Bool => format!("!self.{ident}"),
            _ => format!("self.{ident} != {plain}"),
        };
        config.checks.push(Check { reads: vec![], fails, message: format!("{text:?}.to_owned()") });
        config.refused.push(Refused { field: within(&config.path, shown), value: another(kind, &value) });
    }
    Ok(())
}

/// The path of a field of a configuration.
fn within(path: &str, field: &str) -> String {
    if path.is_empty() { field.to_owned() } else { format!("{path}.{field}") }
}

/// Another value than the only one, in JSON.
fn another(kind: ConfigType, only: &str) -> String {
    match kind {
        ConfigType::Bool => (only == "false").to_string(),
        ConfigType::Activation if only.contains("Relu") => "\"gelu\"".to_owned(),
        ConfigType::Activation => "\"relu\"".to_owned(),
        ConfigType::String => "\"another\"".to_owned(),
        ConfigType::F64 => "0.75".to_owned(),
        ConfigType::Usizes => "[7]".to_owned(),
        ConfigType::Floats => "[0.75]".to_owned(),
        _ => "7".to_owned(),
    }
}

/// Lists that hold other words than they may, or are not as long as they must be.
fn lists(
    config: &mut Config,
    ident: &str,
    kind: ConfigType,
    field: &ConfigField,
    fields: &IndexMap<String, ConfigEntry>,
    key: &str,
    at: &Place,
) -> Result<(), Problem> {
    use ConfigType::{Bools, Floats, IntLists, Ints, String, Strings, UsizeLists, Usizes};
    let optional = field.optional.unwrap_or(false);
    let list = if optional { format!("self.{ident}.as_deref()") } else { format!("Some(&self.{ident})") };
    let shown = field.key.as_deref().unwrap_or(ident);
    match kind {
        _ if field.of.is_empty() => {}
        Strings => {
            let words = &field.of;
            config.lists.push(format!("weft::config::words({shown:?}, {list}, &{words:?})"));
        }
        String => {}
        _ => return Err(at.problem(join(key, "of"), "only texts and lists of texts have words")),
    }
    for (name, length) in [("length", &field.length), ("min_length", &field.min_length)] {
        let Some(length) = length else { continue };
        let key = join(key, name);
        if !matches!(kind, Bools | Floats | IntLists | Ints | Strings | UsizeLists | Usizes) {
            return Err(at.problem(key, "only lists have a length"));
        }
        if !fields.contains_key(length) {
            let nearest =
                nearest_name(length, fields.keys().map(std::string::String::as_str)).map(str::to_owned);
            return Err(Problem {
                nearest,
                ..at.problem(key, format!("`{length}` is not a field of config"))
            });
        }
        let of = key_of(fields, length);
        config.lists.push(format!("weft::config::{name}({shown:?}, {list}, {of:?}, self.{length})"));
    }
    Ok(())
}

fn multiple(
    name: &str,
    kind: ConfigType,
    field: &ConfigField,
    divisor: &str,
    fields: &IndexMap<String, ConfigEntry>,
    key: &str,
    at: &Place,
) -> Result<Check, Problem> {
    let key = join(key, "multiple_of");
    if kind != ConfigType::Usize || field.optional == Some(true) || field.otherwise.is_some() {
        return Err(at.problem(key, "only sizes that are always given can be multiples"));
    }
    if !fields.contains_key(divisor) {
        let nearest = nearest_name(divisor, fields.keys().map(String::as_str)).map(str::to_owned);
        return Err(Problem { nearest, ..at.problem(key, format!("`{divisor}` is not a field of config")) });
    }
    let quotient = format!("{name} / {divisor}");
    let given = fields.iter().find_map(|(other, entry)| match entry {
        ConfigEntry::Explicit(field) if field.otherwise.as_ref() == Some(&quotient) => Some(other),
        _ => None,
    });
    let unless = given.map_or_else(String::new, |given| format!("{given}.is_none() && "));
    Ok(Check {
        reads: [name, divisor].into_iter().chain(given.map(String::as_str)).map(str::to_owned).collect(),
        fails: format!("{unless}!{name}.is_multiple_of(*{divisor})"),
        message: format!(
            "format!(\"{}: {{{name}}} is not a multiple of {}, {{{divisor}}}\")",
            field.key.as_deref().unwrap_or(name),
            key_of(fields, divisor)
        ),
    })
}

/// What `config.json` calls a field.
fn key_of<'a>(fields: &'a IndexMap<String, ConfigEntry>, name: &'a str) -> &'a str {
    match fields.get(name) {
        Some(ConfigEntry::Explicit(field)) => field.key.as_deref().unwrap_or(name),
        _ => name,
    }
}

fn least(name: &str, ident: &str, kind: ConfigType, min: i64, optional: bool) -> Check {
    let bound = if kind == ConfigType::F64 { format!("{min}.0") } else { min.to_string() };
    let (fails, shown) = if optional {
        (
            format!("self.{ident}.is_some_and(|value| value < {bound})"),
            format!("self.{ident}.unwrap_or_default()"),
        )
    } else {
        (format!("self.{ident} < {bound}"), format!("self.{ident}"))
    };
    Check { reads: vec![], fails, message: format!("format!(\"{name}: {{}} is less than {min}\", {shown})") }
}
