//! Configurations within configurations: `text_config: {hidden_size: 512}`.

use super::document::Problem;
use super::model::{ConfigType, Scalar};
use super::yaml::{Data, Entry, Node};

/// What the name of a field ends with if it holds a configuration of its own.
pub const ENDING: &str = "_config";

/// The key of a field that inference does not depend on.
pub const NO_EFFECT: &str = "no_effect";

/// Writes `text_config: {hidden_size: 512}` as `text_config: {fields: {hidden_size: 512}}`, at every depth.
pub fn spell_out(spec: &mut Node) {
    let Data::Map(entries) = &mut spec.data else { return };
    if let Some(config) = entries.iter_mut().find(|entry| entry.key == "config") {
        fields(&mut config.value);
    }
}

fn fields(config: &mut Node) {
    let Data::Map(entries) = &mut config.data else { return };
    for Entry { key, value, .. } in entries {
        let Data::Map(inner) = &mut value.data else { continue };
        let explicit = ["fields", "one_of", "remove", "type", NO_EFFECT]
            .iter()
            .any(|key| inner.iter().any(|entry| entry.key == *key));
        if key.ends_with(ENDING) && !explicit {
            let at = value.at.clone();
            let inner = Node { at: at.clone(), data: std::mem::replace(&mut value.data, Data::Null) };
            value.data = Data::Map(vec![Entry { key: "fields".to_owned(), at, value: inner }]);
        }
        let Data::Map(inner) = &mut value.data else { continue };
        if let Some(inner) = inner.iter_mut().find(|entry| entry.key == "fields") {
            fields(&mut inner.value);
        }
    }
}

/// The problems of a spec that is spelled out, under the keys that a person wrote.
pub fn checked(node: &Node, check: fn(&Node) -> Vec<Problem>) -> Vec<Problem> {
    let mut problems = check(node);
    for problem in &mut problems {
        problem.key = problem.key.replace("_config.fields", ENDING);
    }
    problems
}

/// The types of fields that a spec's own defaults show, by their dotted paths.
pub fn shown_types(config: Option<&Node>, path: &str) -> Vec<(String, ConfigType)> {
    let mut types = vec![];
    for entry in config.map_or(&[][..], Node::entries) {
        let path = super::check::join(path, &entry.key);
        let default = match &entry.value.data {
            Data::Map(_) => {
                types.extend(shown_types(entry.value.get("fields"), &path));
                entry.value.get("default")
            }
            _ => Some(&entry.value),
        };
        let value = default.and_then(|default| serde_json::from_value::<Scalar>(default.to_json()).ok());
        types.extend(value.and_then(|value| Some((path, value.kind()?))));
    }
    types
}
