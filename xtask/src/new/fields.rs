//! The fields of a draft: those that differ from the parent's, and those of configurations within the configuration.

use std::fmt::Write;

use indexmap::IndexMap;
use serde_json::{Map, Value};
use weft_generator::spec::model::{ConfigEntry, ConfigType, ModelSpec, Scalar};

use super::nearest::own_fields;

/// What a spec may have instead of these: a field of the type `rope`.
const ROPE: [&str; 3] = ["rope_parameters", "rope_theta", "rope_scaling"];

/// Writes `config:`; all fields without a parent.
pub fn draft(text: &mut String, config: &Map<String, Value>, parent: Option<&ModelSpec>) {
    let lines = lines(config, parent.map(|spec| (spec.model.as_str(), &spec.config)), 1);
    if lines.is_empty() {
        return;
    }
    text.push_str(
        "\n# decide: these are one checkpoint's values; a spec holds the architecture's own defaults.\n",
    );
    let only_comments = lines.iter().all(|line| line.trim_start().starts_with('#'));
    text.push_str(if only_comments { "config: {}\n" } else { "config:\n" });
    for line in lines {
        let _ = writeln!(text, "{line}");
    }
}

type Fields = IndexMap<String, ConfigEntry>;

fn lines(config: &Map<String, Value>, parent: Option<(&str, &Fields)>, depth: usize) -> Vec<String> {
    let indent = "  ".repeat(depth);
    let entry = |key: &str| parent.and_then(|(_, fields)| fields.get(key));
    let turns = parent.is_none() || entry("rope_parameters").is_some_and(is_rope);
    let mut lines = vec![];
    if turns && ROPE.iter().any(|name| config.contains_key(*name)) {
        let theta = theta(config);
        if !same(entry("rope_parameters").and_then(default), &theta) {
            let decide = if parent.is_none() { "  # decide: whether the graph depends on it" } else { "" };
            lines.push(format!("{indent}rope_parameters: {}{decide}", scalar(&theta)));
        }
    }
    for key in own_fields(config).filter(|key| !(turns && ROPE.contains(key))) {
        let value = &config[key];
        if let (Value::Object(within), true) = (value, key.ends_with("_config")) {
            let fields = match entry(key) {
                Some(ConfigEntry::Explicit(field)) => field.fields.as_ref(),
                _ => None,
            };
            let inner = self::lines(within, parent.map(|(model, _)| model).zip(fields), depth + 1);
            if !inner.is_empty() {
                lines.push(format!("{indent}{key}:"));
                lines.extend(inner);
            }
            continue;
        }
        match entry(key) {
            Some(ConfigEntry::Explicit(field)) if field.no_effect.is_some() => {}
            Some(entry) if same(default(entry), value) => {}
            Some(_) if is_plain(value) => lines.push(format!("{indent}{key}: {}", scalar(value))),
            Some(_) => {
                let shown = short(value);
                lines.push(format!("{indent}# decide: {key} is {shown}, which its parent does not expect"));
            }
            None if is_plain(value) => {
                let known =
                    parent.map_or(String::new(), |(model, _)| format!("; `{model}` does not have it"));
                let shown = scalar(value);
                lines.push(format!(
                    "{indent}{key}: {shown}  # decide: whether the graph depends on it{known}"
                ));
            }
            None => {
                let shown = short(value);
                lines.push(format!("{indent}# decide: {key} is {shown}: describe it, or leave it out"));
            }
        }
    }
    for (key, entry) in parent.into_iter().flat_map(|(_, fields)| fields) {
        let required = !matches!(entry, ConfigEntry::Explicit(field)
            if field.optional == Some(true) || field.otherwise.is_some() || field.no_effect.is_some());
        let turns = turns && key == "rope_parameters";
        if required && !config.contains_key(key) && key != "id2label" && !turns {
            let shown = default(entry).map_or_else(String::new, |value| format!(" ({})", scalar(value)));
            lines.push(format!(
                "{indent}# decide: {key} is not in config.json: its parent's default{shown}, or {{remove: true}}"
            ));
        }
    }
    lines
}

fn is_rope(entry: &ConfigEntry) -> bool {
    match entry {
        ConfigEntry::Explicit(field) => field.kind.is_none_or(|kind| kind == ConfigType::Rope),
        ConfigEntry::Default(_) => true,
    }
}

/// The base of rotary position embeddings, wherever the file has it.
fn theta(config: &Map<String, Value>) -> Value {
    let inner = |name: &str| config.get(name).and_then(|rope| rope.get("rope_theta"));
    let found =
        inner("rope_parameters").or_else(|| inner("rope_scaling")).or_else(|| config.get("rope_theta"));
    found.filter(|theta| theta.is_number()).cloned().unwrap_or_else(|| 10_000.0.into())
}

fn default(entry: &ConfigEntry) -> Option<&Scalar> {
    match entry {
        ConfigEntry::Default(value) => Some(value),
        ConfigEntry::Explicit(field) => field.default.as_ref(),
    }
}

fn same(default: Option<&Scalar>, value: &Value) -> bool {
    match default.map(serde_json::to_value) {
        Some(Ok(Value::Number(a))) if value.is_number() => a.as_f64() == value.as_f64(),
        Some(Ok(default)) => default == *value,
        _ => value.is_null(),
    }
}

fn is_plain(value: &Value) -> bool {
    match value {
        Value::Null | Value::Object(_) => false,
        Value::Array(items) => {
            let kind = |value: &Value| (value.is_number(), value.is_string(), value.is_boolean());
            items.iter().all(|item| is_plain(item) && !item.is_array() && kind(item) == kind(&items[0]))
                && !items.is_empty()
        }
        _ => true,
    }
}

/// A value as YAML writes it.
pub fn scalar(value: &impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(Value::String(text)) => {
            let plain = serde_yaml::to_string(&text).unwrap_or_default();
            if plain.contains(['|', '>']) { format!("{text:?}") } else { plain.trim_end().to_owned() }
        }
        Ok(Value::Array(items)) => format!("[{}]", items.iter().map(scalar).collect::<Vec<_>>().join(", ")),
        Ok(other) => other.to_string(),
        Err(_) => String::new(),
    }
}

/// A value that has no place in a spec as it is, in a few words.
fn short(value: &Value) -> String {
    match value {
        Value::Null => "null".into(),
        Value::Object(map) => format!("an object with {} fields", map.len()),
        Value::Array(items) => format!("a list of {}", items.len()),
        other => other.to_string(),
    }
}
