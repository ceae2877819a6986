//! What the crate's table of tasks promises: from a checkpoint of each class that is said to serve a task, the task finds
//! that class, loads and runs it, and gets the outputs that its pipeline reads.

use std::path::{Path, PathBuf};

use super::Record;
use super::run::{Target, evidence, recorded};
use super::subject::Subject;
use crate::golden::{Case, OutputReport};
use crate::{Error, Result, Task, engine};

/// Tries every class of every task on a golden of that class, in the folder that holds the model's goldens.
pub(super) fn golden(subject: Subject, goldens: &Path, target: Target<'_>) -> Record {
    recorded(subject, goldens, target, attempt)
}

fn attempt(subject: Subject, goldens: &Path, target: Target<'_>, record: &mut Record) -> Result<()> {
    record.versions.insert("engine".to_owned(), engine::available(target.hardware)?);
    let cases = super::trials::cases(goldens, "io.safetensors");
    for (task, classes) in (subject.promises)() {
        for class in classes {
            let problem = match served(subject, &cases, target, task, class) {
                Ok(()) => None,
                Err(missing @ Error::Unavailable { .. }) => return Err(missing),
                Err(error) => Some(error.to_string()),
            };
            record.outputs.push(OutputReport::claim(format!("{task} by {class}"), problem));
        }
    }
    record.passed = record.outputs.iter().all(|output| output.passed);
    record.evidence = if record.passed { evidence(target.hardware) } else { "failed" }.to_owned();
    Ok(())
}

/// Loads the class for the task from the first golden of it, and runs it.
fn served(subject: Subject, cases: &[PathBuf], target: Target<'_>, task: Task, class: &str) -> Result<()> {
    let Some(dir) = cases.iter().find(|dir| names(dir, class)) else {
        let help = format!(
            "add a case of it to tests/reference, or take the task from the spec of {}",
            subject.name
        );
        return Err(Error::input("architectures", format!("no golden is of {class}"), help));
    };
    let case = Case::open(dir)?;
    let folder = dir.to_string_lossy();
    let mut request = target.request(&folder, case.weights()?);
    request.interpolate = case.meta.forward.interpolate_pos_encoding;
    let loaded = (subject.load_for)(task, request)?;
    if loaded.class() != class {
        let problem = format!("{task} loads {} from a checkpoint of {class}", loaded.class());
        return Err(Error::input(
            "architectures",
            problem,
            "correct the heads of the task in templates/pipeline/",
        ));
    }
    let outputs = loaded.run(case.inputs)?;
    match task.reads().iter().find(|name| !outputs.contains_key(**name)) {
        None => Ok(()),
        Some(name) => {
            let problem = format!("{class} does not give it, and {task} reads it");
            Err(Error::input(
                *name,
                problem,
                "take its part from the heads of the task in templates/pipeline/",
            ))
        }
    }
}

/// Whether the case's configuration names the class.
fn names(dir: &Path, class: &str) -> bool {
    let read = std::fs::read(dir.join("config.json")).ok();
    let config: Option<serde_json::Value> = read.and_then(|bytes| serde_json::from_slice(&bytes).ok());
    config.is_some_and(|config| {
        let saved = config["architectures"].as_array();
        saved.is_some_and(|names| names.contains(&class.into())) || config["_class_name"] == class
    })
}
