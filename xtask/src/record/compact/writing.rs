//! Records to a file.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use anyhow::Result;
use indexmap::IndexMap;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::line::{
    COLUMNS, Cases, Environment, FORMAT, Header, Line, PARTS, SHARED, STAGES, Setting, Text, proves,
};
use crate::record::{Output, Record};

/// Settings and environments by their ids, settings in order of their runs.
#[derive(Default)]
struct Settings {
    environments: BTreeMap<String, Environment>,
    settings: BTreeMap<(String, String), Setting>,
}

/// The file of one backend's records.
pub fn text(backend: &str, records: &[Record]) -> Result<String> {
    let devices: BTreeSet<_> = records.iter().flat_map(|record| record.placement.keys().cloned()).collect();
    let stages: BTreeSet<_> = records.iter().flat_map(|record| record.ms.keys().cloned()).collect();
    let known = STAGES.iter().chain(&PARTS);
    let others = stages.into_iter().filter(|stage| !known.clone().any(|known| known == stage));
    let header = Header {
        format: FORMAT.into(),
        backend: backend.into(),
        shared: SHARED.map(str::to_owned).to_vec(),
        columns: COLUMNS.map(str::to_owned).to_vec(),
        devices: devices.into_iter().collect(),
        stages: STAGES.map(str::to_owned).into_iter().chain(others).collect(),
    };
    let (mut settings, mut texts) = (Settings::default(), BTreeMap::new());
    let mut groups: BTreeMap<String, (Cases, Vec<&Record>)> = BTreeMap::new();
    for record in records {
        let mut noted = |text: &Option<String>| {
            text.as_ref().map(|text| {
                let id = id(text);
                texts.insert(id.clone(), text.clone());
                id
            })
        };
        let cases = Cases {
            model: record.model.clone(),
            precision: record.precision.clone(),
            evidence: record.evidence.clone(),
            passed: (record.passed != proves(&record.evidence)).then_some(record.passed),
            setting: setting(record, &mut settings)?,
            time: 0,
            reason: noted(&record.reason),
            expected_failure: noted(&record.expected_failure),
            tolerance: record.outputs.iter().find_map(|output| output.tolerance),
            classes: Vec::new(),
            outputs: Vec::new(),
            count: 0,
        };
        let key = serde_json::to_string(&cases)?;
        let (cases, records) = groups.entry(key).or_insert_with(|| (cases, Vec::new()));
        cases.time = cases.time.max(record.seconds());
        records.push(record);
    }
    let mut text = line(&Line::File(header.clone()))?;
    for environment in settings.environments.into_values() {
        text += &line(&Line::Environment(environment))?;
    }
    for setting in settings.settings.into_values() {
        text += &line(&Line::Setting(setting))?;
    }
    for (id, is) in texts {
        text += &line(&Line::Text(Text { id, is }))?;
    }
    for (cases, mut records) in groups.into_values() {
        let classes: BTreeSet<_> = records.iter().map(|record| record.class.clone()).collect();
        let outputs: BTreeSet<_> =
            records.iter().flat_map(|record| kept(record)).map(|output| output.name.clone()).collect();
        let cases = Cases {
            classes: classes.into_iter().collect(),
            outputs: outputs.into_iter().collect(),
            count: records.len(),
            ..cases
        };
        text += &line(&Line::Cases(shared_line(&cases)?))?;
        records.sort_by(|a, b| a.case.cmp(&b.case));
        for record in records {
            let _ = writeln!(text, "{}", case_line(&header, &cases, record)?);
        }
    }
    Ok(text + &line(&Line::End(FORMAT.into()))?)
}

fn line(line: &Line) -> Result<String> {
    Ok(serde_json::to_string(line)? + "\n")
}

/// The id of a record's run and machine, which it enters into the tables.
fn setting(record: &Record, settings: &mut Settings) -> Result<String> {
    let sorted = |map: &IndexMap<String, String>| -> BTreeMap<_, _> { map.clone().into_iter().collect() };
    let mut environment = Environment {
        id: String::new(),
        versions: sorted(&record.versions),
        machine: sorted(&record.machine),
    };
    environment.id = id(&serde_json::to_string(&environment)?);
    let (run, of) = (record.run.clone(), environment.id.clone());
    let id = id(&format!("{run} {of}"));
    settings.environments.insert(of.clone(), environment);
    let setting = Setting { id: id.clone(), run: run.clone(), environment: Some(of), own: None };
    settings.settings.insert((run, id.clone()), setting);
    Ok(id)
}

/// Of the outputs that are close enough the worst, and all others.
fn kept(record: &Record) -> impl Iterator<Item = &Output> {
    let worst = record.outputs.iter().filter(|output| output.passed);
    let worst = worst.reduce(|a, b| if b.max_rel > a.max_rel { b } else { a });
    let kept =
        move |output: &&Output| !output.passed || worst.is_some_and(|worst| std::ptr::eq(worst, *output));
    record.outputs.iter().filter(kept)
}

/// What cases share, by columns.
fn shared_line(cases: &Cases) -> Result<Value> {
    let named = serde_json::to_value(cases)?;
    Ok(trimmed(SHARED.iter().map(|name| named.get(name).cloned().unwrap_or_default())))
}

fn case_line(header: &Header, cases: &Cases, record: &Record) -> Result<String> {
    let outputs: Vec<_> = kept(record).map(|kept| output(kept, &cases.outputs)).collect();
    let nodes =
        header.devices.iter().map(|device| record.placement.get(device).map_or(json!(0), |n| json!(n)));
    let ms = header.stages.iter().map(|stage| record.ms.get(stage).map_or(Value::Null, |ms| measured(*ms)));
    let memory = record.memory_bytes.map(|bytes| measured(bytes as f64 / 1e6));
    // What was lowered ran on another device, whose times and memory say nothing of the backend.
    let observed = record.evidence != "lowered";
    let columns = [
        json!(record.case),
        json!(cases.classes.iter().position(|class| *class == record.class)),
        json!(outputs),
        trimmed(nodes),
        if observed { trimmed(ms) } else { json!([]) },
        json!(memory.filter(|_| observed)),
        other(record),
    ];
    Ok(serde_json::to_string(&trimmed(columns))?)
}

/// Accuracy as it is read, and fields that a later release wrote.
fn other(record: &Record) -> Value {
    let mut other = record.other.clone();
    match record.accuracy() {
        Some(accuracy) => {
            let short: BTreeMap<_, _> =
                accuracy.into_iter().map(|(key, value)| (key, short(value))).collect();
            other.insert("accuracy".into(), json!(short));
        }
        None => drop(other.shift_remove("accuracy")),
    }
    if other.is_empty() { Value::Null } else { json!(other) }
}

/// Place of the name and differences; of one that is not close enough also what is wrong.
fn output(output: &Output, names: &[String]) -> Value {
    let name = names.iter().position(|name| *name == output.name);
    let mut columns = vec![json!(name), json!(output.max_abs.map(short)), json!(output.max_rel.map(short))];
    if !output.passed {
        columns.push(json!(output.problem.clone().unwrap_or_default()));
    }
    Value::Array(columns)
}

/// Without what is empty at the end.
fn trimmed(values: impl IntoIterator<Item = Value>) -> Value {
    let empty = |value: &Value| match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(values) => values.is_empty(),
        number => *number == json!(0),
    };
    let mut values: Vec<_> = values.into_iter().collect();
    while values.last().is_some_and(empty) {
        values.pop();
    }
    Value::Array(values)
}

/// Two significant digits: what a difference is read to.
fn short(value: f64) -> f64 {
    format!("{value:.1e}").parse().unwrap_or(value)
}

/// Milliseconds and megabytes: tenths below ten, whole ones from there on.
fn measured(value: f64) -> Value {
    match value < 9.95 {
        true => json!(format!("{value:.1}").parse().unwrap_or(value)),
        false => json!(value.round() as u64),
    }
}

fn id(text: &str) -> String {
    Sha256::digest(text).iter().take(4).map(|byte| format!("{byte:02x}")).collect()
}
