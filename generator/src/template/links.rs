//! Parts that front matter names: the heads of a task, and those whose weights a head's checkpoints hold.

use std::collections::BTreeMap;

use super::Template;
use crate::spec::document::{Problem, nearest_name};

/// Where the parts of heads are.
const HEADS: &str = "graph/parts/head/";

/// Names of parts that no template has.
pub(super) fn check(templates: &BTreeMap<String, Template>) -> Vec<Problem> {
    let known: Vec<&str> =
        templates.keys().filter_map(|key| key.strip_prefix(HEADS)?.strip_suffix(".rs")).collect();
    let mut problems = vec![];
    for template in templates.values() {
        for (key, names) in [("heads", &template.front.heads), ("holds", &template.front.holds)] {
            for name in names.iter().filter(|name| !known.contains(&name.as_str())) {
                let message = format!("there is no part `{name}` in templates/{HEADS}");
                let nearest = nearest_name(name, known.iter().copied()).map(str::to_owned);
                problems.push(Problem { nearest, ..template.place(key).problem(key, message) });
            }
        }
    }
    problems
}
