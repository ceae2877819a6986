//! One record of a result: what one case of one model did on one backend. Result files hold one a line.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

/// What one case did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Record {
    pub run: String,
    /// Seconds since 1970, UTC.
    pub time: String,
    pub model: String,
    pub case: String,
    pub class: String,
    /// `golden`, `task` or `verify`.
    pub kind: String,
    pub backend: String,
    pub precision: String,
    /// `device`, `emulator`, `lowered`, `failed`, `unsupported` or `untested`.
    pub evidence: String,
    pub passed: bool,
    /// The reason of a known failure.
    pub expected_failure: Option<String>,
    /// Why it failed or was not run.
    pub reason: Option<String>,
    pub outputs: Vec<Output>,
    /// Nodes by the provider that ran them.
    pub placement: IndexMap<String, u64>,
    /// Milliseconds by stage: `graph`, `emit`, `load`, `first`.
    pub ms: IndexMap<String, f64>,
    pub memory_bytes: Option<u64>,
    pub versions: IndexMap<String, String>,
    pub machine: IndexMap<String, String>,
    /// Fields that a later release wrote.
    #[serde(flatten)]
    pub other: IndexMap<String, serde_json::Value>,
}

/// How far one output was off.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Output {
    pub name: String,
    pub shape: Vec<u64>,
    /// None where there is nothing to subtract: an output that is missing or has another shape.
    pub max_abs: Option<f64>,
    pub max_rel: Option<f64>,
    pub tolerance: Option<f64>,
    pub passed: bool,
    /// What is wrong besides the difference.
    pub problem: Option<String>,
}

/// How a record counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    Passed,
    Failed,
    /// Not run: no such hardware, or the model does not support it.
    Skipped,
    /// Failed as listed, with a reason.
    Known,
}

impl Record {
    pub fn outcome(&self) -> Outcome {
        if matches!(self.evidence.as_str(), "untested" | "unsupported") {
            return Outcome::Skipped;
        }
        match (&self.expected_failure, self.passed) {
            (Some(_), false) => Outcome::Known,
            (None, true) => Outcome::Passed,
            (None, false) | (Some(_), true) => Outcome::Failed,
        }
    }

    /// Why it does not count as passed.
    pub fn explanation(&self) -> String {
        let own = self.reason.clone();
        match (self.outcome(), &self.expected_failure) {
            (Outcome::Failed, Some(listed)) if self.passed => {
                format!("passes although listed as a known failure ({listed}): take it off the list")
            }
            (_, Some(listed)) => own.map_or_else(|| listed.clone(), |own| format!("{listed}: {own}")),
            (_, None) => own.unwrap_or_else(|| self.missed_outputs()),
        }
    }

    /// As much of the explanation as a person reads in a list, on one line.
    pub fn summary(&self) -> String {
        const LENGTH: usize = 240;
        let line = self.explanation().replace('\n', " ");
        match line.char_indices().nth(LENGTH) {
            Some((end, _)) => format!("{} …", &line[..end]),
            None => line,
        }
    }

    fn missed_outputs(&self) -> String {
        let missed: Vec<_> = self
            .outputs
            .iter()
            .filter(|output| !output.passed)
            .map(|output| match (output.max_rel, output.tolerance) {
                _ if output.problem.is_some() => {
                    format!("{}: {}", output.name, output.problem.as_deref().unwrap_or_default())
                }
                (Some(got), Some(allowed)) => {
                    format!("{} is off by {got:.1e}, allowed {allowed:.0e}", output.name)
                }
                _ => format!("{} could not be compared", output.name),
            })
            .collect();
        if missed.is_empty() { "no reason was recorded".into() } else { missed.join("; ") }
    }

    /// The test's name in its binary: `cpu::f32::base`.
    pub fn test_name(&self) -> String {
        let tasks = if self.kind == "task" && !self.case.starts_with("tasks/") { "tasks/" } else { "" };
        format!("{}::{}::{tasks}{}", self.backend, self.precision, self.case)
    }

    /// The largest relative difference of its outputs.
    pub fn max_rel(&self) -> Option<f64> {
        self.outputs.iter().filter_map(|output| output.max_rel).reduce(f64::max)
    }

    /// The time that loading and the first run took.
    pub fn total_ms(&self) -> f64 {
        self.ms.values().fold(0.0, |sum, ms| sum + ms)
    }
}

/// Writes `~` for the home folder, as test binaries do: results are shown to others, whom it does not concern.
pub fn without_home(text: &str) -> String {
    let home = std::env::var(if cfg!(windows) { "USERPROFILE" } else { "HOME" }).unwrap_or_default();
    tilde(text, home.trim_end_matches(['/', '\\']))
}

fn tilde(text: &str, home: &str) -> String {
    match home.is_empty() {
        true => text.to_owned(),
        false => text.replace(&format!("{home}/"), "~/").replace(&format!("{home}\\"), "~\\"),
    }
}

/// Reads a file of records; a last line cut short by a crash is left out.
pub fn read(path: &Path) -> Result<Vec<Record>> {
    let text =
        fs::read_to_string(path).with_context(|| format!("reading results from {}", path.display()))?;
    let lines: Vec<_> = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()).collect();
    let mut records = Vec::with_capacity(lines.len());
    for (index, line) in &lines {
        match serde_json::from_str(line) {
            Ok(record) => records.push(record),
            Err(_) if *index + 1 == text.lines().count() && !text.ends_with('\n') => {}
            Err(error) => {
                return Err(error)
                    .with_context(|| format!("{}:{} is not a result record", path.display(), index + 1));
            }
        }
    }
    Ok(records)
}

/// The `.jsonl` files among `paths`, folders searched whole, in order of their names.
pub fn files(paths: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for path in paths {
        if path.is_dir() {
            let entries = fs::read_dir(path).with_context(|| format!("listing {}", path.display()))?;
            let inside = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
            let wanted: Vec<_> = inside
                .into_iter()
                .filter(|p| p.is_dir() || p.extension().is_some_and(|e| e == "jsonl"))
                .collect();
            found.extend(files(&wanted)?);
        } else {
            found.push(path.clone());
        }
    }
    found.sort();
    found.dedup();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(evidence: &str, passed: bool, listed: Option<&str>) -> Record {
        let expected_failure = listed.map(str::to_owned);
        Record { evidence: evidence.into(), passed, expected_failure, ..Record::default() }
    }

    #[test]
    fn a_known_failure_that_passes_is_a_failure() {
        assert_eq!(record("device", true, None).outcome(), Outcome::Passed);
        assert_eq!(record("failed", false, None).outcome(), Outcome::Failed);
        assert_eq!(record("failed", false, Some("no such op")).outcome(), Outcome::Known);
        assert_eq!(record("device", true, Some("no such op")).outcome(), Outcome::Failed);
        assert_eq!(record("untested", false, None).outcome(), Outcome::Skipped);
        insta::assert_snapshot!(record("device", true, Some("no such op")).explanation(), @"passes although listed as a known failure (no such op): take it off the list");
    }

    #[test]
    fn the_home_folder_is_hidden() {
        assert_eq!(
            tilde("starting /home/ada/target/hardware: gone", "/home/ada"),
            "starting ~/target/hardware: gone"
        );
        assert_eq!(tilde("/home/adam/x", "/home/ada"), "/home/adam/x");
        assert_eq!(tilde("a/b", ""), "a/b");
    }

    #[test]
    fn a_record_cut_short_by_a_crash_is_left_out_and_a_wrong_one_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.jsonl");
        fs::write(&path, "{\"model\":\"bert\",\"later\":1}\n{\"mod").unwrap();
        let records = read(&path).unwrap();
        assert_eq!(records.len(), 1);
        assert_eq!(records[0].other["later"], 1);
        fs::write(&path, "{\"mod\n{}\n").unwrap();
        assert!(read(&path).unwrap_err().to_string().ends_with("a.jsonl:1 is not a result record"));
    }

    #[test]
    fn result_files_are_found_in_folders() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("gpu")).unwrap();
        for name in ["b.jsonl", "a.jsonl", "note.md", "gpu/c.jsonl"] {
            fs::write(dir.path().join(name), "").unwrap();
        }
        let names: Vec<_> = files(&[dir.path().to_owned()])
            .unwrap()
            .iter()
            .map(|path| path.strip_prefix(dir.path()).unwrap().to_string_lossy().into_owned())
            .collect();
        assert_eq!(names, ["a.jsonl", "b.jsonl", "gpu/c.jsonl"]);
    }
}
