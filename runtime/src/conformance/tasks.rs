//! Task cases: text in, the answer of the reference's pipeline out; and `--task`, which answers calls from
//! standard input.

use std::io::BufRead;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use serde::Deserialize;
use serde_json::{Value as Json, json};

use super::arguments::Arguments;
use super::run::{Target, recorded};
use super::subject::{Request, Subject};
use super::{Record, assisted, forced, lowered, machine};
use crate::golden::{Meta, OutputReport, rule};
use crate::session::millis;
use crate::weights::Weights;
use crate::{Error, Result, engine};

/// `task.json`.
#[derive(Debug, Deserialize)]
pub(super) struct TaskCase {
    pub(super) task: String,
    pub(super) calls: Vec<Call>,
    #[serde(flatten)]
    pub(super) meta: Meta,
}

#[derive(Debug, Deserialize)]
pub(super) struct Call {
    pub(super) inputs: Json,
    #[serde(default)]
    pub(super) parameters: Json,
    #[serde(default)]
    pub(super) output: Json,
    /// By how much the least sure of the model's choices was the best, relative to `max(1, max|logits|)`.
    #[serde(default)]
    pub(super) margin: Option<f64>,
}

/// The file that makes a checkpoint folder a task case.
pub(super) const FILE: &str = "task.json";

pub(super) fn read(path: &Path) -> Result<TaskCase> {
    let text = std::fs::read(path).map_err(|e| Error::io(path, e))?;
    let help = "make the case again with `cargo xtask reference`";
    let case: TaskCase = serde_json::from_slice(&text).map_err(|e| Error::case(path, e.to_string(), help))?;
    case.meta.check(path)?;
    if case.calls.is_empty() {
        return Err(Error::case(path, "has no `calls`: nothing could be compared", help));
    }
    Ok(case)
}

/// Weights by the rule for the checkpoint of a task case.
fn case_weights(dir: &Path) -> Result<Option<Weights>> {
    let path = dir.join(FILE);
    if path.is_file() { rule(dir, &read(&path)?.meta) } else { Ok(None) }
}

/// Runs a task case.
pub(super) fn golden(subject: Subject, dir: &Path, target: Target<'_>) -> Record {
    recorded(subject, dir, target, attempt)
}

fn attempt(subject: Subject, dir: &Path, target: Target<'_>, record: &mut Record) -> Result<()> {
    let case = read(&dir.join(FILE))?;
    record.class = case.meta.class.clone().unwrap_or_default();
    record.versions.extend(case.meta.reference.clone());
    let folder = dir.to_string_lossy();
    let request = target.request(&folder, rule(dir, &case.meta)?);
    let lowering = request.lowering.clone();
    let start = Instant::now();
    let tape = forced::Tape::default();
    let pipeline = forced::pipeline(subject, &case.task, request, &tape)?;
    record.ms.insert("load".to_owned(), millis(start));
    record.versions.insert("engine".to_owned(), engine::available(target.runs_on())?);
    let tolerance = case.meta.tolerance(target.tolerance);
    let start = Instant::now();
    let mut teacher = None;
    for (index, call) in case.calls.iter().enumerate() {
        let inputs = in_folder(dir, &call.inputs);
        let got = pipeline.run_json(&inputs, &call.parameters);
        let got = got.map(|answer| out_of_folder(dir, &answer));
        // A device that turns out to lack a number format leaves the case untested.
        if let Err(missing @ Error::Unavailable { .. }) = got {
            return Err(missing);
        }
        if index == 0 {
            record.ms.insert("first".to_owned(), millis(start));
        }
        let answered = report(index, got, &call.output, tolerance);
        if answered.passed || !forced::is_near_tie(call, target, tolerance) {
            record.outputs.push(answered);
            continue;
        }
        let teacher = match &mut teacher {
            Some(teacher) => teacher,
            none => none.insert(forced::Teacher::of(subject, dir, &case, target)?),
        };
        let forced = teacher.force(pipeline.as_ref(), &tape, (index, call), (&inputs, tolerance));
        record.outputs.push(forced);
    }
    record.outputs.extend(assisted::answers(subject, dir, &case, target, pipeline.as_ref())?);
    record.memory_bytes = machine::private_bytes();
    record.passed = record.outputs.iter().all(|output| output.passed);
    record.evidence = if record.passed { super::run::evidence(target.hardware) } else { "failed" }.to_owned();
    if let Some(lowering) = &lowering {
        lowered::conclude(record, target, lowering);
    }
    Ok(())
}

/// The inputs of a case with the names of files in its folder made paths.
pub(super) fn in_folder(dir: &Path, inputs: &Json) -> Json {
    texts(inputs, &|text| {
        let file = Path::new(text).components().count() == 1 && dir.join(text).is_file();
        if file { dir.join(text).to_string_lossy().into_owned() } else { text.to_owned() }
    })
}

/// An answer with paths of files in the case's folder made names.
pub(super) fn out_of_folder(dir: &Path, output: &Json) -> Json {
    texts(output, &|text| match Path::new(text).strip_prefix(dir) {
        Ok(name) => name.to_string_lossy().into_owned(),
        Err(_) => text.to_owned(),
    })
}

pub(super) fn texts(json: &Json, change: &dyn Fn(&str) -> String) -> Json {
    match json {
        Json::String(text) => change(text).into(),
        Json::Array(list) => list.iter().map(|item| texts(item, change)).collect(),
        Json::Object(object) => {
            Json::Object(object.iter().map(|(key, value)| (key.clone(), texts(value, change))).collect())
        }
        other => other.clone(),
    }
}

pub(super) fn report(index: usize, got: Result<Json>, want: &Json, tolerance: f64) -> OutputReport {
    let mut most = 0.0;
    let same = got.map_err(|e| e.to_string()).and_then(|got| differs("", &got, want, &mut most));
    OutputReport {
        name: format!("calls[{index}]"),
        shape: vec![],
        max_abs: None,
        max_rel: same.is_ok().then_some(most),
        tolerance,
        passed: same.is_ok() && most <= tolerance,
        problem: same.err(),
    }
}

/// The largest difference of two answers relative to `max(1, |want|)`; an error names the first place where
/// they differ in more than a number.
fn differs(place: &str, got: &Json, want: &Json, most: &mut f64) -> std::result::Result<(), String> {
    let unlike = || Err(format!("at {}: {}, the reference has {}", at(place), short(got), short(want)));
    match (got, want) {
        (Json::Array(g), Json::Array(w)) => {
            if g.len() != w.len() {
                let lengths = format!("{} elements, the reference has {}", g.len(), w.len());
                return Err(format!("at {}: {lengths}: {}", at(place), short(got)));
            }
            g.iter()
                .zip(w)
                .enumerate()
                .try_for_each(|(i, (g, w))| differs(&format!("{place}[{i}]"), g, w, most))
        }
        (Json::Object(g), Json::Object(w)) => {
            if g.len() != w.len() {
                return unlike();
            }
            w.iter().try_for_each(|(key, w)| match g.get(key) {
                Some(g) => differs(&format!("{place}.{key}"), g, w, most),
                None => unlike(),
            })
        }
        (Json::Number(g), Json::Number(w)) if w.is_f64() || g.is_f64() => {
            let (g, w) = (g.as_f64().unwrap_or(f64::NAN), w.as_f64().unwrap_or(f64::NAN));
            if !(g - w).is_finite() {
                return unlike();
            }
            *most = most.max((g - w).abs() / w.abs().max(1.0));
            Ok(())
        }
        (got, want) if got == want => Ok(()),
        _ => unlike(),
    }
}

fn at(place: &str) -> &str {
    if place.is_empty() { "the top" } else { place.trim_start_matches('.') }
}

fn short(json: &Json) -> String {
    let text = json.to_string();
    match text.char_indices().nth(120) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// `--task TASK --checkpoint DIR`: a line `{"inputs": …, "parameters": …}` in, a line `{"output": …, "ms": …}`
/// or `{"error": …}` out; answers also say how long loading took. `--out FILE` is the parameter `out` of every line:
/// the image with what was found drawn onto it.
pub(super) fn main(subject: Subject, arguments: &[String]) -> Result<ExitCode> {
    let arguments = Arguments::parse(arguments)?;
    let ([task], Some(checkpoint)) = (arguments.alone.as_slice(), arguments.get("checkpoint")) else {
        let help = "write `--task fill-mask --checkpoint DIR`";
        return Err(Error::input("--task", "needs a task and a checkpoint", help));
    };
    let threads = arguments.get("threads").is_some().then(|| arguments.number("threads", 0)).transpose()?;
    let request = Request {
        checkpoint,
        hardware: Some(arguments.hardware()?),
        precision: arguments.precision()?,
        threads,
        weights: case_weights(Path::new(checkpoint))?,
        ..Request::default()
    };
    let start = Instant::now();
    let pipeline = (subject.pipeline)(task, request)?;
    let loaded_ms = millis(start);
    let mut passed = true;
    for line in std::io::stdin().lock().lines().map_while(std::io::Result::ok) {
        let start = Instant::now();
        let answer = serde_json::from_str::<Call>(&line).map_err(|e| e.to_string()).and_then(|mut call| {
            if let Some(file) = arguments.get("out") {
                call.parameters["out"] = file.into();
            }
            pipeline.run_json(&call.inputs, &call.parameters).map_err(|e| e.to_string())
        });
        match answer {
            Ok(output) => {
                println!("{}", json!({ "output": output, "ms": millis(start), "loaded_ms": loaded_ms }));
            }
            Err(error) => {
                passed = false;
                println!("{}", json!({ "error": error }));
            }
        }
    }
    Ok(if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
