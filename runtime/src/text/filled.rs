//! JSON texts with holes: a `tokenizer.json` that is written here takes less room in a program than values put together one by one.

use serde_json::Value;

/// A JSON text in which each string that names a hole, such as `"$vocab"`, is replaced by the hole's value.
pub(super) fn filled(text: &str, holes: &[(&str, Value)]) -> Value {
    let mut json = serde_json::from_slice(text.as_bytes()).unwrap_or_default();
    fill(&mut json, holes);
    json
}

fn fill(json: &mut Value, holes: &[(&str, Value)]) {
    match json {
        Value::String(name) => {
            if let Some((_, value)) = holes.iter().find(|(hole, _)| hole == name) {
                *json = value.clone();
            }
        }
        Value::Array(list) => list.iter_mut().for_each(|value| fill(value, holes)),
        Value::Object(fields) => fields.values_mut().for_each(|value| fill(value, holes)),
        _ => {}
    }
}

/// A special token of `added_tokens`.
pub(super) fn special_token(id: Value, content: &str) -> Value {
    let token = r#"{
        "id": "$id", "content": "$content", "special": true, "normalized": false,
        "single_word": false, "lstrip": false, "rstrip": false
    }"#;
    filled(token, &[("$id", id), ("$content", content.into())])
}

/// An object of one field.
pub(super) fn field(name: &str, value: Value) -> Value {
    Value::Object([(name.to_owned(), value)].into_iter().collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn strings_that_name_a_hole_are_its_value() {
        let text = r#"{"a": ["$x", "b", {"c": "$y"}], "$x": 1}"#;
        // What fills a hole is taken as it is.
        let holes = [("$x", json!({"d": "$y"})), ("$y", json!(2))];
        assert_eq!(filled(text, &holes), json!({"a": [{"d": "$y"}, "b", {"c": 2}], "$x": 1}));
    }
}
