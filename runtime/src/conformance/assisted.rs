//! A task case once more by assisted decoding: with the model as its own assistant, and with candidates from the text itself, the
//! answer must be that of the model alone.

use std::path::Path;

use serde_json::{Value as Json, json};

use super::run::Target;
use super::subject::{Request, Subject};
use super::tasks::{TaskCase, in_folder, report};
use crate::golden::{OutputReport, rule};
use crate::tasks::{JsonPipeline, Task};
use crate::{Hardware, Precision, Result};

/// How many calls of a case are made.
const CALLS: usize = 2;

/// Tasks that take an assistant.
const TASKS: [Task; 6] = [
    Task::TextGeneration,
    Task::Text2TextGeneration,
    Task::Summarization,
    Task::Translation,
    Task::AutomaticSpeechRecognition,
    Task::ImageTextToText,
];

/// Compares the answers of a case by assisted decoding with those without, in single precision on the CPU: elsewhere ties may be
/// decided by how many tokens run together. Nothing of tasks that take no assistant.
pub(super) fn answers(
    subject: Subject,
    dir: &Path,
    case: &TaskCase,
    target: Target<'_>,
    alone: &dyn JsonPipeline,
) -> Result<Vec<OutputReport>> {
    let task: Task = case.task.parse()?;
    let exact =
        target.absent.is_none() && target.hardware == Hardware::Cpu && target.precision == Precision::F32;
    if !exact || !TASKS.contains(&task) {
        return Ok(vec![]);
    }
    let folder = dir.to_string_lossy();
    let request = || -> Result<Request<'_>> {
        let weights = rule(dir, &case.meta)?;
        Ok(Request {
            checkpoint: &folder,
            hardware: Some(Hardware::Cpu),
            threads: Some(1),
            weights,
            ..Request::default()
        })
    };
    let mut assisted = (subject.pipeline)(&case.task, request()?)?;
    if assisted.set_assistant((subject.load_for)(task, request()?)?).is_err() {
        return Ok(vec![]);
    }
    let mut reports = vec![];
    for (index, call) in case.calls.iter().take(CALLS).enumerate() {
        let inputs = in_folder(dir, &call.inputs);
        let mut parameters = call.parameters.clone();
        set(&mut parameters, "num_beams", 1.into());
        set(&mut parameters, "num_return_sequences", 1.into());
        let want = alone.run_json(&inputs, &parameters)?;
        let mut looked_up = parameters.clone();
        set(&mut looked_up, "prompt_lookup_num_tokens", 3.into());
        for (how, got) in [
            ("assisted", assisted.run_json(&inputs, &parameters)),
            ("prompt lookup", alone.run_json(&inputs, &looked_up)),
        ] {
            let compared = report(index, got, &want, 0.0);
            reports.push(OutputReport { name: format!("{}, {how}", compared.name), ..compared });
        }
    }
    Ok(reports)
}

/// Sets a parameter, of speech recognition where it is read.
fn set(parameters: &mut Json, name: &str, value: Json) {
    if !parameters.is_object() {
        *parameters = json!({});
    }
    match parameters.get_mut("generate_kwargs") {
        Some(inner @ Json::Object(_)) => inner[name] = value,
        _ => parameters[name] = value,
    }
}
