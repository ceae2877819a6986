//! Names of one field, and of one configuration among several.

use serde_json::Value as Json;

/// Keeps the first of several names of one field that a configuration gives a value; `null` is none.
pub fn keep_first(raw: &mut Json, names: &[&str]) {
    let Json::Object(raw) = raw else { return };
    let given = |name: &&&str| raw.get(**name).is_some_and(|value| !value.is_null());
    let kept =
        names.iter().find(given).or_else(|| names.iter().find(|name| raw.contains_key(**name))).copied();
    raw.retain(|name, _| Some(name.as_str()) == kept || !names.contains(&name.as_str()));
}

/// The `model_type` of a configuration that is one of several; the first, which it is given, where it has none.
pub fn model_type(raw: &mut Json, first: &str) -> String {
    let Json::Object(fields) = raw else { return first.to_owned() };
    let chosen = fields.entry("model_type").or_insert(Json::Null);
    if chosen.is_null() {
        *chosen = first.into();
    }
    chosen.as_str().unwrap_or(first).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_name_with_a_value_is_kept() {
        let kept = |text: &str| {
            let mut raw = serde_json::from_str(text).unwrap();
            keep_first(&mut raw, &["hidden_activation", "hidden_act"]);
            raw.to_string()
        };
        let both = r#"{"hidden_act":"gelu","hidden_activation":"relu","layers":2}"#;
        assert_eq!(kept(both), r#"{"hidden_activation":"relu","layers":2}"#);
        assert_eq!(kept(r#"{"hidden_act":"gelu","hidden_activation":null}"#), r#"{"hidden_act":"gelu"}"#);
        assert_eq!(kept(r#"{"hidden_act":null}"#), r#"{"hidden_act":null}"#);
    }
}
