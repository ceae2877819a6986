//! The committed form of records: one file a backend, what many records share said once, one line a case.
//!
//! ```text
//! {"file":{"format":"weft-results/4","backend":"cpu","shared":[..],"columns":[..],"devices":["CPUExecutionProvider"],"stages":[..]}}
//! {"environment":{"id":"77d01e5b","versions":{..},"machine":{..}}}
//! {"setting":{"id":"3f9a01c2","run":"..","environment":"77d01e5b"}}
//! {"text":{"id":"0c11d2e3","is":"no cuda here: .."}}
//! {"cases":["bert","f32","device","3f9a01c2",1795260240,1,["BertModel"],["last_hidden_state"]]}
//! ["base",0,[[0,6e-7,3.1e-7]],[40],[12,3.5,0.4,1.3],25]
//! {"end":"weft-results/4"}
//! ```
//!
//! The lines of cases belong to the `cases` line before them, which names their classes and outputs; the columns of both are named in
//! the first line, and empty ones at their end are left out. Of the outputs that are close enough only the worst is kept, and of what was
//! lowered neither times nor memory, which are those of the device that it ran on. Ids are hashes of what they stand for, and no
//! line counts what is in the whole file, so that lines of two branches merge.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{Output, Record};

const FORMAT: &str = "weft-results/4";

/// The forms before it: in the third every run had its versions and its machine, and what cases share was named in their line; before
/// that every case named its class, and its outputs.
const FORMER: [&str; 3] = ["weft-results/1", "weft-results/2", "weft-results/3"];
/// What the cases below a line share, in the order of its columns.
const SHARED: [&str; 12] = [
    "model",
    "precision",
    "evidence",
    "setting",
    "time",
    "count",
    "classes",
    "outputs",
    "tolerance",
    "reason",
    "expected_failure",
    "passed",
];
const COLUMNS: [&str; 7] = ["case", "class", "outputs", "nodes", "ms", "memory_mb", "other"];
/// Those that every run has; others follow.
const STAGES: [&str; 4] = ["load", "first", "graph", "emit"];

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Line {
    File(Header),
    Environment(Environment),
    Setting(Setting),
    Text(Text),
    Cases(Value),
    End(String),
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct Header {
    format: String,
    backend: String,
    /// What values of a line of `cases` are, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    shared: Vec<String>,
    /// What a case's values are, in their order.
    columns: Vec<String>,
    /// Where nodes ran: what `nodes` counts.
    devices: Vec<String>,
    /// What `ms` are of.
    stages: Vec<String>,
}

/// What runs were made with, and where: that of many.
#[derive(Clone, Default, Serialize, Deserialize)]
struct Environment {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    id: String,
    versions: BTreeMap<String, String>,
    machine: BTreeMap<String, String>,
}

/// A run in an environment.
#[derive(Serialize, Deserialize)]
struct Setting {
    id: String,
    run: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    environment: Option<String>,
    /// What former files have in its place.
    #[serde(flatten, skip_serializing)]
    own: Option<Environment>,
}

/// Settings and environments by their ids, settings in order of their runs.
#[derive(Default)]
struct Settings {
    environments: BTreeMap<String, Environment>,
    settings: BTreeMap<(String, String), Setting>,
}

/// A reason that many cases share.
#[derive(Serialize, Deserialize)]
struct Text {
    id: String,
    is: String,
}

/// What the cases below it share.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
struct Cases {
    model: String,
    precision: String,
    evidence: String,
    /// Where it does not follow from the evidence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    passed: Option<bool>,
    setting: String,
    /// The last of them, in seconds since 1970.
    time: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expected_failure: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tolerance: Option<f64>,
    /// Their classes, which cases name by the place here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    classes: Vec<String>,
    /// Those outputs of theirs that are kept, which cases name by the place here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    outputs: Vec<String>,
    count: usize,
}

/// Whether a file of records is in this form.
pub fn is_compact(text: &str) -> bool {
    text.starts_with(r#"{"file":"#)
}

fn id(text: &str) -> String {
    Sha256::digest(text).iter().take(4).map(|byte| format!("{byte:02x}")).collect()
}

fn proves(evidence: &str) -> bool {
    matches!(evidence, "device" | "emulator" | "lowered")
}

/// The file of one backend's records.
pub fn text(backend: &str, records: &[Record]) -> Result<String> {
    let devices: BTreeSet<_> = records.iter().flat_map(|record| record.placement.keys().cloned()).collect();
    let stages: BTreeSet<_> = records.iter().flat_map(|record| record.ms.keys().cloned()).collect();
    let others = stages.into_iter().filter(|stage| !STAGES.contains(&stage.as_str()));
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

/// Reads a file; one that was cut short or spoilt is an error that names the line.
pub fn parse(text: &str, path: &Path) -> Result<Vec<Record>> {
    let mut reader = Reader::default();
    let mut last = 0;
    for (index, line) in text.lines().enumerate() {
        last = index + 1;
        reader.line(line).map_err(|problem| spoilt(path, last, &problem))?;
    }
    let whole = if text.ends_with('\n') { reader.finish() } else { Err(anyhow!("the line has no end")) };
    whole.map_err(|problem| spoilt(path, last, &problem))?;
    Ok(reader.records)
}

fn spoilt(path: &Path, line: usize, problem: &anyhow::Error) -> anyhow::Error {
    anyhow!(
        "{}:{line} is cut short or spoilt ({problem:#}): take the file again from git or from the machine that wrote it; \
         of a merge keep both sides' files and run `cargo xtask report --compact`",
        path.display()
    )
}

#[derive(Default)]
struct Reader {
    header: Option<Header>,
    environments: BTreeMap<String, Environment>,
    /// The runs of settings, and the environments of these.
    settings: BTreeMap<String, (String, Environment)>,
    texts: BTreeMap<String, String>,
    cases: Option<Cases>,
    /// Lines that the last `cases` still promises.
    left: usize,
    records: Vec<Record>,
    ended: bool,
}

impl Reader {
    fn line(&mut self, line: &str) -> Result<()> {
        if self.ended {
            bail!("something stands behind the last line");
        }
        if line.starts_with('[') {
            let record = self.case(&serde_json::from_str::<Vec<_>>(line)?)?;
            self.records.push(record);
            return Ok(());
        }
        if self.left > 0 {
            bail!("{} lines of cases are missing before it", self.left);
        }
        match serde_json::from_str(line)? {
            Line::File(header) if header.format == FORMAT || FORMER.contains(&header.format.as_str()) => {
                self.header = Some(header);
            }
            Line::File(header) => bail!("the format is `{}`, and this reads `{FORMAT}`", header.format),
            Line::Environment(environment) => {
                self.environments.insert(environment.id.clone(), environment);
            }
            Line::Setting(Setting { id, run, environment, own }) => {
                let shared = environment.map(|id| self.environments.get(&id).cloned());
                let environment = shared.unwrap_or(own).context("its environment is in no line above")?;
                self.settings.insert(id, (run, environment));
            }
            Line::Text(text) => drop(self.texts.insert(text.id, text.is)),
            Line::Cases(shared) => {
                let cases: Cases = serde_json::from_value(self.named(shared)?)?;
                self.left = cases.count;
                self.cases = Some(cases);
            }
            Line::End(_) => self.ended = true,
        }
        Ok(())
    }

    /// What cases share by its names, which former files have in the line.
    fn named(&self, shared: Value) -> Result<Value> {
        let Value::Array(values) = shared else { return Ok(shared) };
        let names = &self.header.as_ref().context("the first line is missing")?.shared;
        if values.len() > names.len() {
            bail!("it has {} columns, and the first line names {}", values.len(), names.len());
        }
        let some = names.iter().zip(values).filter(|(_, value)| !value.is_null());
        Ok(some.map(|(name, value)| (name.clone(), value)).collect::<serde_json::Map<_, _>>().into())
    }

    fn finish(&self) -> Result<()> {
        if self.ended { Ok(()) } else { bail!("the file has no last line, `end`") }
    }

    fn case(&mut self, columns: &[Value]) -> Result<Record> {
        let (Some(header), Some(cases)) = (&self.header, &self.cases) else {
            bail!("no `cases` line is before it")
        };
        self.left = self.left.checked_sub(1).context("there are more cases than the line above says")?;
        let (run, environment) =
            self.settings.get(&cases.setting).context("its setting is in no line above")?;
        let text = |id: &Option<String>| {
            let known = |id: &String| self.texts.get(id).cloned().context("its reason is in no line above");
            id.as_ref().map(known).transpose()
        };
        let at = |name: &str| {
            let found =
                header.columns.iter().position(|column| column == name).and_then(|at| columns.get(at));
            found.cloned().unwrap_or_default()
        };
        let nodes: Vec<u64> = list(at("nodes"))?;
        let ms: Vec<Option<f64>> = list(at("ms"))?;
        let placed = header.devices.iter().cloned().zip(nodes).filter(|(_, nodes)| *nodes > 0);
        let timed = header.stages.iter().cloned().zip(ms).filter_map(|(stage, ms)| Some((stage, ms?)));
        let memory: Option<f64> = serde_json::from_value(at("memory_mb"))?;
        let case: String = serde_json::from_value(at("case"))?;
        let outputs: Vec<Vec<Value>> = list(at("outputs"))?;
        let class = match at("class") {
            // The first is left out where nothing comes behind it.
            Value::Null => cases.classes.first().cloned().unwrap_or_default(),
            place => named(&place, &cases.classes).context("it names no class")?,
        };
        Ok(Record {
            run: run.clone(),
            time: cases.time.to_string(),
            model: cases.model.clone(),
            class,
            kind: kind(&case).into(),
            case,
            backend: header.backend.clone(),
            precision: cases.precision.clone(),
            evidence: cases.evidence.clone(),
            passed: cases.passed.unwrap_or_else(|| proves(&cases.evidence)),
            expected_failure: text(&cases.expected_failure)?,
            reason: text(&cases.reason)?,
            outputs: outputs.iter().map(|output| read_output(output, cases)).collect::<Result<_>>()?,
            placement: placed.collect(),
            ms: timed.collect(),
            memory_bytes: memory.map(|mb| (mb * 10.0).round() as u64 * 100_000),
            versions: environment.versions.clone().into_iter().collect(),
            machine: environment.machine.clone().into_iter().collect(),
            other: serde_json::from_value::<Option<_>>(at("other"))?.unwrap_or_default(),
        })
    }
}

/// A name, or that at a place among those that cases share.
fn named(place: &Value, names: &[String]) -> Option<String> {
    match place {
        Value::String(name) => Some(name.clone()),
        place => names.get(usize::try_from(place.as_u64()?).ok()?).cloned(),
    }
}

/// The kind that a case's name says.
fn kind(case: &str) -> &'static str {
    match case.split_once('/') {
        Some(("tasks", _)) => "task",
        Some(("refusals", _)) => "refusal",
        Some(("heads", _)) => "head",
        Some(("sizes", _)) => "size",
        _ => "golden",
    }
}

fn list<T: serde::de::DeserializeOwned>(value: Value) -> Result<Vec<T>> {
    Ok(serde_json::from_value::<Option<_>>(value)?.unwrap_or_default())
}

fn read_output(columns: &[Value], cases: &Cases) -> Result<Output> {
    let problem = columns.get(3).and_then(Value::as_str);
    Ok(Output {
        name: columns
            .first()
            .and_then(|place| named(place, &cases.outputs))
            .context("an output has no name")?,
        shape: Vec::new(),
        max_abs: columns.get(1).and_then(Value::as_f64),
        max_rel: columns.get(2).and_then(Value::as_f64),
        tolerance: cases.tolerance,
        passed: problem.is_none(),
        problem: problem.filter(|text| !text.is_empty()).map(str::to_owned),
    })
}

#[cfg(test)]
mod tests;
