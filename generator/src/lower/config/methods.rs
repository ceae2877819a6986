//! Fields that another field stands for where nothing is said: `or: hidden_size / num_attention_heads`.

use indexmap::IndexMap;
use serde::Serialize;

use super::literal::rust;
use super::names::{Fields, kind};
use super::{Config, Field};
use crate::expression::{Expression, Wrong};
use crate::spec::check::join;
use crate::spec::document::Problem;
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
    let otherwise: IndexMap<&str, &str> = fields
        .iter()
        .filter_map(|(name, entry)| match entry {
            ConfigEntry::Explicit(field) => Some((name.as_str(), field.otherwise.as_deref()?)),
            ConfigEntry::Default(_) => None,
        })
        .collect();
    let mut methods = vec![];
    for (name, text) in &otherwise {
        let Some(field) = config.field(name) else { continue };
        match method(config, field, text, &otherwise) {
            Ok(method) => methods.push(method),
            Err(Wrong { message, .. }) if message.is_empty() => {}
            Err(Wrong { message, nearest }) => {
                let at = node.entry(name).map_or(&node.at, |entry| &entry.at);
                let key = join(&join("config", &join(&config.path, name)), "or");
                problems.push(Problem { nearest, ..at.problem(key, message) });
            }
        }
    }
    config.methods = methods;
}

fn method(
    config: &Config,
    field: &Field,
    text: &str,
    otherwise: &IndexMap<&str, &str>,
) -> Result<Method, Wrong> {
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
        return Err(Wrong::new("is for numbers, truth values and activation functions"));
    }
    let names = Fields { config, root: "self" };
    let expected = kind(field);
    let other = Expression::parse(text)?.check(text, &names, expected, false)?;
    circle(&field.name, text, otherwise)?;
    let value = other.rust(expected, false);
    let or =
        if other.is_cheap() { format!("unwrap_or({value})") } else { format!("unwrap_or_else(|| {value})") };
    Ok(Method {
        name: field.name.clone(),
        doc: format!("`{}`, or else `{text}`.", field.name),
        rust: field.kind.map(rust).unwrap_or_default().to_owned(),
        body: format!("self.{}.{or}", field.ident),
    })
}

/// Refuses a field that, by what stands for it, stands for itself.
fn circle(name: &str, text: &str, otherwise: &IndexMap<&str, &str>) -> Result<(), Wrong> {
    let mut left = vec![text];
    let mut seen: Vec<String> = vec![];
    while let Some(text) = left.pop() {
        for found in Expression::parse(text)?.names() {
            if found == name {
                return Err(Wrong::new(format!("`{name}` stands for itself where nothing is said")));
            }
            if !seen.contains(&found) {
                left.extend(otherwise.get(found.as_str()));
                seen.push(found);
            }
        }
    }
    Ok(())
}
