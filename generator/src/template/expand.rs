//! Calls of parts: `{{ norm(w="&w", x="&x") }}` is replaced by the part in that slot, rendered with these arguments.
//!
//! Tera's own `include` takes only fixed names. So a call leaves a mark in the output, and the marks are replaced
//! afterwards, from the outside in.

use serde_json::{Map, Value};
use tera::{Context, Kwargs, TeraResult};

use super::Templates;
use crate::spec::document::Problem;
use crate::spec::yaml::Place;

const OPEN: char = '\u{E000}';
const CLOSE: char = '\u{E001}';
/// Deeper than any sensible nesting of parts; only a circle gets there.
const DEPTH: usize = 24;

/// The mark for a call of a slot.
pub(super) fn call(slot: &str, arguments: &Kwargs) -> TeraResult<String> {
    let arguments: Map<String, Value> = arguments.deserialize()?;
    Ok(format!("{OPEN}{}{CLOSE}", serde_json::json!({"slot": slot, "arguments": arguments})))
}

/// See [`Templates::render`].
pub(super) fn render(
    templates: &Templates,
    key: &str,
    context: &Context,
    part: &dyn Fn(&str) -> Option<(String, Value)>,
    depth: usize,
) -> Result<String, Problem> {
    let wrong = |message: String| {
        let shown = templates.get(key).map(|template| template.shown.clone()).unwrap_or_default();
        Place::start(&shown).problem("", message)
    };
    if depth > DEPTH {
        return Err(wrong("is called by the parts that it calls; parts must not go in a circle".to_owned()));
    }
    let text = templates.render_one(key, context)?;
    let mut output = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(start) = rest.find(OPEN) {
        let (before, marked) = rest.split_at(start);
        output.push_str(before);
        let end =
            matching(marked).ok_or_else(|| wrong("calls a part and changes what it gave".to_owned()))?;
        let call: Value = serde_json::from_str(&marked[OPEN.len_utf8()..end])
            .map_err(|error| wrong(format!("calls a part and changes what it gave: {error}")))?;
        let slot = call.get("slot").and_then(Value::as_str).unwrap_or_default();
        let (called, options) = part(slot).ok_or_else(|| {
            wrong(format!("calls the slot `{slot}`, which its graph template does not have"))
        })?;
        let mut inner = context.clone();
        inner.insert("o", &options);
        for (name, value) in call.get("arguments").and_then(Value::as_object).into_iter().flatten() {
            inner.insert(name.clone(), value);
        }
        output.push_str(render(templates, &called, &inner, part, depth + 1)?.trim_matches('\n'));
        rest = &marked[end + CLOSE.len_utf8()..];
    }
    output.push_str(rest);
    Ok(output)
}

/// Where the mark that the text starts with ends; calls in arguments are marks within it.
fn matching(text: &str) -> Option<usize> {
    let mut depth = 0;
    for (index, c) in text.char_indices() {
        match c {
            OPEN => depth += 1,
            CLOSE if depth == 1 => return Some(index),
            CLOSE => depth -= 1,
            _ => {}
        }
    }
    None
}
