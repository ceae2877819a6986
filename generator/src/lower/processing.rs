//! `processing` of a spec, as code gives it.

use serde::Serialize;

use super::config::{Config, Fields};
use crate::expression::{Expression, Kind};
use crate::spec::document::Problem;
use crate::spec::load::Resolved;
use crate::spec::model::FunctionToApply;
use crate::spec::yaml::Data;

/// How pipelines prepare what the model reads, as templates see it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Processing {
    /// Whether texts are lowercased.
    pub do_lower_case: bool,
    /// The length that texts are padded and truncated to, as a Rust expression over `c`.
    pub max_length: Option<String>,
    /// The variant of `weft::tasks::ScoreFunction`.
    pub function_to_apply: Option<&'static str>,
    /// Whether memory of a video's frames is rounded to bfloat16.
    pub bf16_memory: bool,
    /// Whether memory of all objects of a frame is made in one batch.
    pub batched_memory: bool,
    /// Whether the expression reads the configuration.
    pub reads_config: bool,
}

/// Lowers `processing`; nothing where the spec says nothing of it.
pub(super) fn lower(model: &Resolved, config: &Config, problems: &mut Vec<Problem>) -> Option<Processing> {
    let spec = &model.spec.processing;
    let mut processing = Processing {
        do_lower_case: spec.do_lower_case.unwrap_or(false),
        function_to_apply: spec.function_to_apply.map(|function| match function {
            FunctionToApply::Sigmoid => "Sigmoid",
            FunctionToApply::Softmax => "Softmax",
        }),
        bf16_memory: spec.bf16_memory.unwrap_or(false),
        batched_memory: spec.batched_memory.unwrap_or(false),
        ..Processing::default()
    };
    if let Some(node) = model.node.get("processing").and_then(|node| node.get("max_length")) {
        let text = match &node.data {
            Data::Int(number) => number.to_string(),
            _ => node.text().unwrap_or_default().to_owned(),
        };
        let names = Fields { config, root: "c" };
        let checked = Expression::parse(&text).and_then(|expression| {
            expression.check(&text, &names, Kind::Usize, false).map(|c| (expression, c))
        });
        match checked {
            Ok((expression, checked)) => {
                processing.reads_config = !expression.names().is_empty();
                processing.max_length = Some(checked.rust(Kind::Usize, false));
            }
            Err(wrong) => {
                let problem = node.at.problem("processing.max_length", wrong.message);
                problems.push(Problem { nearest: wrong.nearest, ..problem });
            }
        }
    }
    (processing != Processing::default()).then_some(processing)
}
