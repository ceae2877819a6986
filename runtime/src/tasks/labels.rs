//! Labels with their scores, and the names of a classifier's labels: `id2label` of `config.json`.

use serde::Serialize;
use serde_json::Value as Json;

/// A label and its score.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Label {
    /// The name, from `id2label` in `config.json`.
    pub label: String,
    /// The score.
    pub score: f32,
}

/// Names by index.
#[derive(Clone, Debug)]
pub(super) struct Labels(std::collections::BTreeMap<usize, String>);

impl Labels {
    /// Reads them; what has no name is `LABEL_<index>`, as in the reference.
    pub(super) fn read(config: &Json) -> Self {
        let named = config["id2label"].as_object().into_iter().flatten();
        Self(named.filter_map(|(id, name)| Some((id.parse().ok()?, name.as_str()?.to_string()))).collect())
    }

    pub(super) fn name(&self, index: usize) -> String {
        self.0.get(&index).cloned().unwrap_or_else(|| format!("LABEL_{index}"))
    }

    /// The index of the first name that starts so, in whatever case.
    pub(super) fn starting_with(&self, start: &str) -> Option<usize> {
        self.0.iter().find(|(_, name)| name.to_lowercase().starts_with(start)).map(|(index, _)| *index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unnamed_labels_are_numbered() {
        let labels = Labels::read(&serde_json::json!({"id2label": {"0": "NEG", "10": "POS"}}));
        assert_eq!([labels.name(0), labels.name(1), labels.name(10)], ["NEG", "LABEL_1", "POS"]);
        assert_eq!(Labels::read(&Json::Null).name(0), "LABEL_0");
        assert_eq!((labels.starting_with("po"), labels.starting_with("x")), (Some(10), None));
    }
}
