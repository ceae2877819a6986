//! Filters for templates that write Rust.

use std::collections::BTreeMap;

use tera::{Kwargs, State, Tera, TeraResult, Value};

use crate::expression;

pub(super) fn register(tera: &mut Tera) {
    tera.register_filter("quoted", |text: &str, _: Kwargs, _: &State<'_>| format!("{text:?}"));
    // For attributes that fill in names between braces.
    tera.register_filter("quoted_message", |text: &str, _: Kwargs, _: &State<'_>| {
        format!("{text:?}").replace('{', "{{").replace('}', "}}")
    });
    // What the variables of an expression are where a template puts it.
    tera.register_filter("at", |value: &Value, arguments: Kwargs, _: &State<'_>| -> TeraResult<String> {
        let arguments: BTreeMap<String, String> = arguments.deserialize()?;
        let variables = arguments.iter().map(|(name, with)| (name.as_str(), with.as_str()));
        Ok(expression::bind(&value.to_string(), variables))
    });
    tera.register_filter("has", |config: &Value, arguments: Kwargs, _: &State<'_>| -> TeraResult<bool> {
        Ok(has(config, arguments.must_get("field")?))
    });
    tera.register_filter("scope", |path: &str, _: Kwargs, _: &State<'_>| scope(path));
    tera.register_filter("docs", |text: &str, arguments: Kwargs, _: &State<'_>| -> TeraResult<String> {
        Ok(docs(text, arguments.get::<&str>("with")?.unwrap_or("///")))
    });
    tera.register_filter("wrapped", |text: &str, _: Kwargs, _: &State<'_>| docs(text, "").trim().to_owned());
    tera.register_filter("axes", |axes: &[Value], _: Kwargs, _: &State<'_>| {
        let names: Vec<_> = axes.iter().map(|axis| axis.as_str().unwrap_or_default()).collect();
        format!("[{}]", names.join(", "))
    });
}

/// Whether a configuration, such as `model.config`, has a field of this name.
fn has(config: &Value, name: &str) -> bool {
    let named = |field: &Value| field.get_from_path("name").and_then(Value::as_str) == Some(name);
    config.get_from_path("fields").and_then(Value::as_array).is_some_and(|fields| fields.iter().any(named))
}

/// `.scope("attention").scope("output")` for `attention.output`; nothing for the empty path.
fn scope(path: &str) -> String {
    path.split('.').filter(|level| !level.is_empty()).map(|level| format!(".scope({level:?})")).collect()
}

/// Text as comment lines of at most 110 columns; paragraphs stay apart.
fn docs(text: &str, with: &str) -> String {
    let mut lines = vec![];
    for paragraph in text.trim().split("\n\n") {
        if !lines.is_empty() {
            lines.push(with.to_owned());
        }
        let mut line = with.to_owned();
        for word in paragraph.split_whitespace() {
            if line.len() > with.len() && line.chars().count() + word.chars().count() + 1 > 110 {
                lines.push(std::mem::replace(&mut line, with.to_owned()));
            }
            line.push(' ');
            line.push_str(word);
        }
        lines.push(line);
    }
    lines.join("\n")
}
