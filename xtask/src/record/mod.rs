//! One record of a result: what one case of one model did on one backend.

mod compact;
mod files;
mod merge;

use std::collections::BTreeMap;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

pub use files::{PARTS, append, files, lines, read_all, read_unfinished, write};
pub use merge::{merge_into, newest};

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
    /// `golden`, `task`, `head`, `refusal`, `size` or `verify`.
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

    /// The machine it comes from, in words.
    pub fn machine(&self) -> String {
        let part = |key: &str| self.machine.get(key).map_or("", String::as_str);
        let parts = ["os", "arch", "cpu", "device"].map(part);
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
    }

    /// Seconds since 1970; 0 where the record does not say.
    pub fn seconds(&self) -> u64 {
        self.time.parse().unwrap_or_default()
    }

    /// The largest relative difference of its outputs.
    pub fn max_rel(&self) -> Option<f64> {
        self.outputs.iter().filter_map(|output| output.max_rel).reduce(f64::max)
    }

    /// How near the reference quantized weights came: the worst `relative` of all outputs, `kl` and `top1` of logits.
    pub fn accuracy(&self) -> Option<BTreeMap<&'static str, f64>> {
        let all = self.other.get("accuracy")?.as_object()?;
        let worst = |key: &str, worse: fn(f64, f64) -> f64| {
            let is =
                |name: &str| name == key || name.strip_suffix(key).is_some_and(|rest| rest.ends_with(' '));
            all.iter().filter(|(name, _)| is(name)).filter_map(|(_, value)| value.as_f64()).reduce(worse)
        };
        let found = [
            ("relative", worst("relative", f64::max)),
            ("kl", worst("kl", f64::max)),
            ("top1", worst("top1", f64::min)),
        ];
        let found: BTreeMap<_, _> =
            found.into_iter().filter_map(|(key, value)| Some((key, value?))).collect();
        (!found.is_empty()).then_some(found)
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
}
