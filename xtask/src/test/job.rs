//! One model on one backend: a test process, run again without the case that crashed or hung it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, bail};
use indexmap::IndexMap;
use weft_generator::spec::hardware::Hardware;

use crate::binaries;
use crate::process::{End, watch};
use crate::record::{self, Record};
use crate::workspace::Member;

/// Processes started again after a crash or a hang, for one model on one backend.
const RESTARTS: usize = 5;

/// The cases of one model on one backend.
pub struct Job {
    pub member: Member,
    pub binary: PathBuf,
    pub hardware: Hardware,
    /// The tests to run, in the binary's order.
    pub tests: Vec<String>,
    /// Every test of the binary: the ones not to run are skipped by name.
    pub all: Vec<String>,
}

/// What holds for a whole run.
pub struct Settings {
    pub run: String,
    /// Longest time without a finished case.
    pub limit: Duration,
    /// Where a process writes its records before they are merged.
    pub scratch: PathBuf,
    /// The precisions to test, with commas; each backend's own where none are named.
    pub precisions: String,
    /// Whether cells run too that specs declare unsupported.
    pub undeclared: bool,
}

/// Tells a test binary which precisions to test.
const PRECISIONS: &str = "WEFT_PRECISION";

/// Tells it to run what the spec declares unsupported, where it is 1.
const UNDECLARED: &str = "WEFT_UNDECLARED";

/// The tests a binary has of these precisions, in its order.
pub fn list(binary: &Path, precisions: &str) -> Result<Vec<String>> {
    let output = binaries::command(binary)
        .arg("--list")
        .env(PRECISIONS, precisions)
        .output()
        .with_context(|| format!("starting {}", binary.display()))?;
    if !output.status.success() {
        bail!(
            "{} --list failed ({}): {}",
            binary.display(),
            output.status,
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(text.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect())
}

impl Job {
    /// Runs every case; `step` hears of each that is finished.
    pub fn run(&self, settings: &Settings, step: &dyn Fn(&str)) -> Result<Vec<Record>> {
        let mut done = BTreeMap::new();
        let mut left: Vec<_> = self.tests.clone();
        for attempt in 0..=RESTARTS {
            let file =
                settings.scratch.join(format!("{}-{}-{attempt}.jsonl", self.member.model, self.hardware));
            let mut output = Output::default();
            let outcome = watch(self.command(&left, settings, &file), settings.limit, |line| {
                let finished = output.line(line);
                if let Some(name) = &finished {
                    step(name);
                }
                finished.is_some()
            })?;
            let records = if file.exists() { record::read_unfinished(&file)? } else { Vec::new() };
            done.extend(records.into_iter().map(|record| (record.test_name(), record)));
            for (name, seen) in &output.seen {
                done.entry(name.clone()).or_insert_with(|| self.unrecorded(settings, name, seen, &output));
            }
            left.retain(|name| !done.contains_key(name));
            if left.is_empty() || outcome.end == End::Interrupted {
                break;
            }
            let reason = match outcome.stderr.last() {
                Some(last) => format!("{}: {last}", outcome.end.describe()),
                None => outcome.end.describe(),
            };
            let at =
                output.running.as_ref().and_then(|name| left.iter().position(|l| l == name)).unwrap_or(0);
            let culprit = left.remove(at);
            step(&culprit);
            done.insert(culprit.clone(), self.record(settings, &culprit, "failed", &reason));
            if attempt == RESTARTS {
                for name in left.drain(..) {
                    let reason = format!("not run, because too many cases before it failed so: {reason}");
                    step(&name);
                    done.insert(name.clone(), self.record(settings, &name, "failed", &reason));
                }
            }
            if left.is_empty() {
                break;
            }
        }
        Ok(self.tests.iter().filter_map(|name| done.remove(name)).collect())
    }

    fn command(&self, tests: &[String], settings: &Settings, records: &Path) -> Command {
        let wanted: BTreeSet<_> = tests.iter().collect();
        let mut command = binaries::command(&self.binary);
        command.current_dir(&self.member.dir);
        command.args(["--test-threads=1", "--color=never", "--exact"]);
        for other in self.all.iter().filter(|name| !wanted.contains(name)) {
            command.args(["--skip", other]);
        }
        command.env("WEFT_RESULTS", records).env("WEFT_RUN", &settings.run);
        command.env(PRECISIONS, &settings.precisions);
        if settings.undeclared {
            command.env(UNDECLARED, "1");
        }
        command.envs(crate::doctor::environment(self.hardware));
        command
    }

    fn unrecorded(&self, settings: &Settings, name: &str, seen: &Seen, output: &Output) -> Record {
        let evidence = if *seen == Seen::Ignored { "untested" } else { "failed" };
        let reason = match (output.messages.get(name), seen) {
            (Some(message), _) => message.trim().to_owned(),
            (None, Seen::Ignored) => "ignored without a reason".into(),
            (None, Seen::Failed) => "failed without a message".into(),
            (None, Seen::Passed) => "the test passed but wrote no record: nothing proves it".into(),
        };
        self.record(settings, name, evidence, &reason)
    }

    /// A record for a case that could not write its own.
    pub fn record(&self, settings: &Settings, test: &str, evidence: &str, reason: &str) -> Record {
        let mut parts = test.splitn(3, "::").skip(1);
        let precision = parts.next().unwrap_or_default().to_owned();
        let case = parts.next().unwrap_or_default();
        let kind = match case.split_once('/') {
            Some(("tasks", _)) => "task",
            Some(("heads", _)) => "head",
            Some(("sizes", _)) => "size",
            Some(("refusals", _)) => "refusal",
            _ => "golden",
        };
        Record {
            run: settings.run.clone(),
            time: seconds(),
            model: self.member.model.clone(),
            case: case.to_owned(),
            kind: kind.into(),
            backend: self.hardware.name().into(),
            precision,
            evidence: evidence.into(),
            reason: Some(record::without_home(reason)),
            machine: machine(),
            ..Record::default()
        }
    }
}

/// Seconds since 1970, UTC, as test binaries write them.
fn seconds() -> String {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs()).to_string()
}

/// The time for people, to the second.
pub fn now() -> String {
    humantime::format_rfc3339_seconds(SystemTime::now()).to_string()
}

pub fn machine() -> IndexMap<String, String> {
    let parts = [("os", std::env::consts::OS), ("arch", std::env::consts::ARCH)];
    let mut machine: IndexMap<_, _> =
        parts.map(|(key, value)| (key.to_owned(), value.to_owned())).into_iter().collect();
    // As test binaries describe it: a newer record of theirs takes the place of this one.
    let cpus = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let cpu = cpus.lines().find(|line| line.starts_with("model name")).and_then(|line| line.split_once(':'));
    machine.extend(cpu.map(|(_, name)| ("cpu".to_owned(), name.trim().to_owned())));
    machine
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    Passed,
    Failed,
    Ignored,
}

/// What a test process has printed so far.
#[derive(Default)]
struct Output {
    seen: BTreeMap<String, Seen>,
    /// The test whose line has begun and not ended.
    running: Option<String>,
    /// The messages of failed tests, printed after the last one.
    messages: BTreeMap<String, String>,
    current: Option<String>,
}

impl Output {
    /// Takes one line; the name of the test that it says is finished.
    fn line(&mut self, line: &str) -> Option<String> {
        if let Some(name) = line.strip_prefix("---- ").and_then(|rest| rest.strip_suffix(" ----")) {
            self.current = Some(name.to_owned());
            return None;
        }
        if line == "failures:" || line.starts_with("test result:") {
            self.current = None;
        }
        if let Some(name) = &self.current {
            let message = self.messages.entry(name.clone()).or_default();
            message.push_str(line);
            message.push('\n');
            return None;
        }
        let (name, rest) = line.strip_prefix("test ")?.split_once(" ...")?;
        let name = name.trim_end().to_owned();
        let rest = rest.trim();
        let seen = match rest.rsplit(' ').next() {
            _ if rest.starts_with("ignored") => Seen::Ignored,
            Some("ok") => Seen::Passed,
            Some("FAILED") => Seen::Failed,
            _ => {
                self.running = Some(name);
                return None;
            }
        };
        self.running = None;
        if let Some(reason) = rest.strip_prefix("ignored,") {
            self.messages.insert(name.clone(), reason.trim().to_owned());
        }
        self.seen.insert(name.clone(), seen);
        Some(name)
    }
}
