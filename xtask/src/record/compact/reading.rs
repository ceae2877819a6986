//! A file's records: one that was cut short or spoilt gives none.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use serde_json::Value;

use super::line::{Cases, Environment, FORMAT, FORMER, Header, Line, Setting, proves};
use crate::record::{Output, Record};

/// Whether a file of records is in this form.
pub fn is_compact(text: &str) -> bool {
    text.starts_with(r#"{"file":"#)
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
                let cases: Cases = serde_json::from_value(self.header()?.named(shared)?)?;
                self.left = cases.count;
                self.cases = Some(cases);
            }
            Line::End(_) => self.ended = true,
        }
        Ok(())
    }

    fn header(&self) -> Result<&Header> {
        self.header.as_ref().context("the first line is missing")
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
pub(super) fn kind(case: &str) -> &'static str {
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
