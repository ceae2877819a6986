//! What inputs and answers look like in JSON, whatever the task.

use serde::Serialize;
use serde_json::Value as Json;

use crate::{Error, Result};

/// One text or a list of texts.
pub(super) fn texts(value: &Json) -> Result<Vec<&str>> {
    let not_text = |value: &Json| {
        Error::input("inputs", format!("{} is not a text", start_of(value)), "give a text or a list of texts")
    };
    match value {
        Json::String(text) => Ok(vec![text]),
        Json::Array(list) => list.iter().map(|item| item.as_str().ok_or_else(|| not_text(item))).collect(),
        other => Err(not_text(other)),
    }
}

/// A list for a list, the only result for a single text.
pub(super) fn shaped<T: Serialize>(inputs: &Json, mut results: Vec<T>) -> Result<Json> {
    if inputs.is_array() || results.len() != 1 { to_json(&results) } else { to_json(&results.remove(0)) }
}

pub(super) fn to_json<T: Serialize>(value: &T) -> Result<Json> {
    serde_json::to_value(value).map_err(|e| {
        Error::input("output", format!("cannot be written as JSON: {e}"), "use the typed pipeline")
    })
}

/// Enough of a value to recognise it.
pub(super) fn start_of(value: &Json) -> String {
    let text = value.to_string();
    if text.chars().count() <= 60 { text } else { text.chars().take(60).chain(['…']).collect() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn texts_are_told_from_other_values() {
        assert_eq!(texts(&json!(["a", "b"])).unwrap(), ["a", "b"]);
        let text = texts(&json!([1])).unwrap_err().to_string();
        assert!(text.contains("1 is not a text"), "{text}");
        assert_eq!(start_of(&json!("é".repeat(99))).chars().count(), 61);
    }
}
