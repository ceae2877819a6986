//! Labels with their scores, and the names of a classifier's labels: `id2label` of `config.json`.

use ndarray::ArrayD;
use serde::Serialize;
use serde_json::Value as Json;

use super::scores::{default_function, top};
use crate::ScoreFunction;

/// A label and its score.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Label {
    /// The name, from `id2label` in `config.json`.
    pub label: String,
    /// The score.
    pub score: f32,
}

/// Names by index, and how the checkpoint scores them.
#[derive(Clone, Debug)]
pub(super) struct Labels {
    names: std::collections::BTreeMap<usize, String>,
    problem_type: Option<String>,
}

impl Labels {
    /// Reads them; what has no name is `LABEL_<index>`, as in the reference.
    pub(super) fn read(config: &Json) -> Self {
        let named = config["id2label"].as_object().into_iter().flatten();
        let names =
            named.filter_map(|(id, name)| Some((id.parse().ok()?, name.as_str()?.to_string()))).collect();
        Self { names, problem_type: config["problem_type"].as_str().map(str::to_owned) }
    }

    pub(super) fn name(&self, index: usize) -> String {
        self.names.get(&index).cloned().unwrap_or_else(|| format!("LABEL_{index}"))
    }

    /// The best labels of a row of logits, all where `top_k` is none; scored by the function that is given, or else as
    /// `problem_type` and the number of labels say.
    pub(super) fn best(
        &self,
        logits: &ArrayD<f32>,
        function: Option<ScoreFunction>,
        top_k: Option<usize>,
    ) -> Vec<Label> {
        let problem_type = self.problem_type.as_deref();
        let function = function.unwrap_or_else(|| default_function(problem_type, logits.len()));
        let scores = function.apply(&logits.iter().copied().collect::<Vec<_>>());
        let label = |i: usize| Label { label: self.name(i), score: scores[i] };
        top(&scores, top_k.unwrap_or(scores.len())).into_iter().map(label).collect()
    }

    /// The index of the first name that starts so, in whatever case.
    pub(super) fn starting_with(&self, start: &str) -> Option<usize> {
        self.names.iter().find(|(_, name)| name.to_lowercase().starts_with(start)).map(|(index, _)| *index)
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

    #[test]
    fn the_best_labels_are_scored_as_the_checkpoint_or_the_caller_says() {
        let logits = ndarray::array![0.0, 2.0, 1.0].into_dyn();
        let names = |labels: &[Label]| labels.iter().map(|label| label.label.clone()).collect::<Vec<_>>();
        let labels = Labels::read(&serde_json::json!({"problem_type": "regression"}));
        let best = labels.best(&logits, None, Some(2));
        assert_eq!((names(&best), best[0].score), (vec!["LABEL_1".to_owned(), "LABEL_2".to_owned()], 2.0));
        let best = labels.best(&logits, Some(ScoreFunction::Sigmoid), None);
        assert_eq!((best.len(), best[2].score), (3, 0.5));
        let sum: f32 =
            Labels::read(&Json::Null).best(&logits, None, None).iter().map(|label| label.score).sum();
        assert!((sum - 1.0).abs() < 1e-6);
    }
}
