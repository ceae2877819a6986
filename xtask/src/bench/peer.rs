//! Processes that stay loaded and run when told to: the crate's own binary, and the reference's peers.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::Shape;
use crate::{binaries, reference, workspace};

/// Worker threads of whoever ran before still spin for a while; they must not take the next one's cores.
const SETTLE: Duration = Duration::from_millis(300);
/// Runs that are not counted.
const WARM_UP: u32 = 3;

/// A process that reads commands and answers in JSON, one object a line.
pub struct Served {
    child: Child,
    answers: BufReader<ChildStdout>,
    /// What the crate's binary said when it had loaded.
    pub report: Value,
    /// What each peer said when it was ready.
    pub ready: Vec<Value>,
}

impl Served {
    /// The crate's test binary with a checkpoint, run once.
    pub fn opened(binary: &Path, checkpoint: &Path, shape: Shape, threads: usize) -> Result<Self> {
        let mut command = binaries::command(binary);
        command.arg("--bench").arg(checkpoint).args(["--serve", "stdin", "--hw", "cpu", "--json"]);
        for (name, value) in [("batch", shape.batch), ("sequence", shape.sequence), ("threads", threads)] {
            command.args([format!("--{name}"), value.to_string()]);
        }
        let mut served = Self::start(command)?;
        served.report = served.answer()?;
        Ok(served)
    }

    /// The crate's test binary with a checkpoint, warmed up.
    pub fn own(binary: &Path, checkpoint: &Path, shape: Shape, threads: usize) -> Result<Self> {
        let mut served = Self::opened(binary, checkpoint, shape, threads)?;
        served.run_own(WARM_UP)?;
        Ok(served)
    }

    /// PyTorch and its export; warms up by itself.
    pub fn peers(python: &Path, checkpoint: &Path, shapes: &[Shape], threads: usize) -> Result<Self> {
        let mut command = reference::command(python);
        command.arg("bench_peers.py").arg(checkpoint).args(["--threads", &threads.to_string()]);
        for shape in shapes {
            command.args(["--shape", &shape.name()]);
        }
        // Exporting says a lot that only matters when it fails.
        let said = workspace::target_dir().join("weft-bench").join("peers.log");
        fs::create_dir_all(said.parent().unwrap_or(&said))?;
        command.stderr(fs::File::create(&said).with_context(|| format!("writing {}", said.display()))?);
        let mut served = Self::start(command)?;
        loop {
            let line =
                served.answer().with_context(|| format!("the peers' own words are in {}", said.display()))?;
            if line.get("peer").is_none() {
                return Ok(served);
            }
            served.ready.push(line);
        }
    }

    /// The peers' names.
    pub fn names(&self) -> Vec<String> {
        self.ready.iter().filter_map(|line| line["peer"].as_str().map(str::to_owned)).collect()
    }

    /// Whoever says that it is ready and then runs what it was started with.
    pub fn ready(command: Command) -> Result<Self> {
        let mut served = Self::start(command)?;
        served.report = served.answer()?;
        Ok(served)
    }

    /// The times of some runs of the crate.
    pub fn run_own(&mut self, rounds: u32) -> Result<Vec<f64>> {
        Ok(self.measured(rounds)?.remove("run").unwrap_or_default())
    }

    /// The times of some runs, by what was measured.
    pub fn measured(&mut self, rounds: u32) -> Result<BTreeMap<String, Vec<f64>>> {
        thread::sleep(SETTLE);
        self.tell(&format!("run {rounds}"))?;
        let answer = self.answer()?;
        serde_json::from_value(answer["ms"].clone()).with_context(|| format!("no times in {answer}"))
    }

    /// The times of some runs of a peer.
    pub fn run_peer(&mut self, rounds: u32, peer: &str, shape: Shape) -> Result<Vec<f64>> {
        self.tell(&format!("run {rounds} {peer} {}", shape.name()))?;
        let mut found = Vec::new();
        loop {
            let line = self.answer()?;
            if line.get("done").is_some() {
                return Ok(found);
            }
            found.extend(times(&line)?);
        }
    }

    /// The most memory that the process had in use so far, in megabytes; mapped pages count while they are resident.
    /// None where the system does not tell.
    pub fn peak_memory_mb(&self) -> Option<f64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).ok()?;
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
        let kibibytes: f64 = peak.trim().strip_suffix("kB")?.trim().parse().ok()?;
        Some(kibibytes * 1024.0 / 1e6)
    }

    fn start(mut command: Command) -> Result<Self> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("starting {}", command.get_program().display()))?;
        let answers = BufReader::new(child.stdout.take().context("no standard output")?);
        Ok(Self { child, answers, report: Value::Null, ready: Vec::new() })
    }

    fn tell(&mut self, line: &str) -> Result<()> {
        let input = self.child.stdin.as_mut().context("no standard input")?;
        writeln!(input, "{line}").and_then(|()| input.flush()).context("a contender has ended")
    }

    fn answer(&mut self) -> Result<Value> {
        let mut line = String::new();
        if self.answers.read_line(&mut line)? == 0 {
            bail!("a contender ended ({})", self.child.wait()?);
        }
        let value: Value = serde_json::from_str(&line).with_context(|| format!("not an answer: {line}"))?;
        match value.get("error") {
            Some(error) => bail!("a contender answered: {error}"),
            None => Ok(value),
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn times(answer: &Value) -> Result<Vec<f64>> {
    serde_json::from_value(answer["ms"].clone()).with_context(|| format!("no times in {answer}"))
}
