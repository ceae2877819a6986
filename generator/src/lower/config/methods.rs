//! Fields that another field stands for where nothing is said: `or: hidden_size / num_attention_heads`.

use indexmap::IndexMap;
use serde::Serialize;

use super::literal::rust;
use super::{Config, Field};
use crate::spec::check::join;
use crate::spec::document::{Problem, nearest_name};
use crate::spec::model::{ConfigEntry, ConfigType};
use crate::spec::yaml::Node;

/// A field that is read through a method.
#[derive(Clone, Debug, Serialize)]
pub struct Method {
    /// The field's name, and the method's.
    pub name: String,
    /// What it gives.
    pub doc: String,
    /// Its Rust type.
    pub rust: String,
    /// The expression.
    pub body: String,
}

/// The methods of one configuration.
pub(super) fn add(
    config: &mut Config,
    fields: &IndexMap<String, ConfigEntry>,
    node: &Node,
    problems: &mut Vec<Problem>,
) {
    let otherwise: Vec<(String, String)> = fields
        .iter()
        .filter_map(|(name, entry)| match entry {
            ConfigEntry::Explicit(field) => Some((name.clone(), field.otherwise.clone()?)),
            ConfigEntry::Default(_) => None,
        })
        .collect();
    let is_method = |name: &str| otherwise.iter().any(|(known, _)| known == name);
    let mut methods = vec![];
    for (name, text) in &otherwise {
        let Some(field) = config.fields.iter().find(|field| field.name == *name) else { continue };
        let wrong = |message: String, nearest: Option<String>| {
            let at = node.entry(name).map_or(&node.at, |entry| &entry.at);
            let key = join(&join("config", &join(&config.path, name)), "or");
            Problem { nearest, ..at.problem(key, message) }
        };
        match method(config, field, text, &is_method) {
            Ok(method) => methods.push(method),
            Err((message, nearest)) => problems.push(wrong(message, nearest)),
        }
    }
    config.methods = methods;
}

fn method(
    config: &Config,
    field: &Field,
    text: &str,
    is_method: &impl Fn(&str) -> bool,
) -> Result<Method, (String, Option<String>)> {
    let copied = matches!(
        field.kind,
        Some(
            ConfigType::Usize
                | ConfigType::I64
                | ConfigType::F64
                | ConfigType::Bool
                | ConfigType::Activation
                | ConfigType::FeedForward
        )
    );
    if !copied || !field.optional {
        let message = "is for numbers, truth values and activation functions";
        return Err((message.to_owned(), None));
    }
    let term = |word: &str| -> Result<String, (String, Option<String>)> {
        if word.parse::<f64>().is_ok() {
            return Ok(word.to_owned());
        }
        if is_method(word) && word != field.name {
            return Ok(format!("self.{word}()"));
        }
        match config.fields.iter().find(|field| field.name == word) {
            Some(found) if !found.optional && found.kind == field.kind => Ok(format!("self.{}", found.ident)),
            Some(_) => {
                Err((format!("`{word}` is not always there, or of another type than `{}`", field.name), None))
            }
            None => {
                let names = config.fields.iter().map(|field| field.name.as_str());
                let nearest = nearest_name(word, names).map(str::to_owned);
                Err((format!("`{word}` is not a field of config"), nearest))
            }
        }
    };
    let words: Vec<&str> = text.split_whitespace().collect();
    let value = match words.as_slice() {
        [one] => term(one)?,
        [a, operator @ ("/" | "*"), b] => format!("{} {operator} {}", term(a)?, term(b)?),
        _ => {
            let message =
                format!("expected a field, or two of them with `/` or `*` between, found \"{text}\"");
            return Err((message, None));
        }
    };
    let lazy = words.len() > 1 || value.contains('(');
    let or = if lazy { format!("unwrap_or_else(|| {value})") } else { format!("unwrap_or({value})") };
    Ok(Method {
        name: field.name.clone(),
        doc: format!("`{}`, or else `{text}`.", field.name),
        rust: field.kind.map(rust).unwrap_or_default().to_owned(),
        body: format!("self.{}.{or}", field.ident),
    })
}
