//! `cargo xtask test`: builds the generated tests, runs each crate's in a process of its own, reports what was seen.

mod bisect;
mod changed;
pub mod cover;
pub mod job;
mod junit;
pub mod summary;

use std::collections::BTreeMap;
use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use weft_generator::spec::hardware::Hardware;

use self::changed::Passed;
use self::job::{Job, Settings};
use self::summary::Summary;
use crate::binaries::{self, Profile};
use crate::record::{self, Record, append};
use crate::terminal::{Progress, Usage, interrupted, note, say};
use crate::workspace::{self, Member};

/// Build and run the generated tests, record results, print a table.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  cargo xtask test                                  every model on the CPU
  cargo xtask test --hw cpu --hw openvino --model bert
  cargo xtask test --hw all --category text-encoders --shard 1/4 --junit tests.xml
  cargo xtask test --changed                        only what is not known to pass as it is
  cargo xtask test --model llama --precision int4   quantized weights, and how accurate they are
  cargo xtask test --cover --hw qnn                 a sample that has every template and part in it
  cargo xtask test --bisect bert masked-lm          where a graph departs from the reference
  cargo xtask test masked-lm                        only tests whose name contains this")]
pub struct Args {
    /// Backend to test on (repeatable).
    #[arg(long, value_name = "HW", value_parser = workspace::hw_parser(), default_value = "cpu")]
    hw: Vec<String>,
    /// Precision to test in place of the backends' own (repeatable). Quantized ones are held to the CPU's run of what their
    /// weights stand for, and their accuracy against the reference is recorded.
    #[arg(long, value_name = "P", value_parser = PRECISIONS)]
    precision: Vec<String>,
    /// Only models of this category (repeatable).
    #[arg(long, value_name = "CATEGORY")]
    category: Vec<String>,
    /// Only this model (repeatable).
    #[arg(long, value_name = "MODEL")]
    model: Vec<String>,
    /// Only as many of the models as use every template and part between them.
    #[arg(long)]
    cover: bool,
    /// Only the i-th of n equal shares of the models.
    #[arg(long, value_name = "I/N")]
    shard: Option<Shard>,
    /// Test processes at a time; by default as many as there are cores.
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
    /// Seconds that a single case may take.
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    timeout: u64,
    /// Print one JSON document instead of the tables.
    #[arg(long)]
    json: bool,
    /// Also write the outcome as JUnit XML.
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Also take the newest record of each cell into this folder's compact files, one a backend. The run's own records
    /// are in weft-results in cargo's target folder.
    #[arg(long, value_name = "DIR")]
    results: Option<PathBuf>,
    /// Leave out models that passed on a backend before, when neither their tests' binary nor a golden nor a runtime
    /// package has changed since.
    #[arg(long)]
    changed: bool,
    /// Also run what specs declare unsupported: what is observed then stands in the report in place of the declaration.
    #[arg(long)]
    undeclared: bool,
    /// Instead of testing, show the first module of the reference that this model's graph departs from, in each golden
    /// whose name contains the filter.
    #[arg(long, value_name = "MODEL", conflicts_with_all = ["category", "model", "cover", "shard"])]
    bisect: Option<String>,
    /// Only tests whose name, `<model>::<hw>::<precision>::<case>`, contains this.
    filter: Option<String>,
}

/// The names of all precisions.
pub const PRECISIONS: [&str; 8] = ["f32", "f16", "bf16", "int8", "int4", "int4-mixed", "int3", "int2"];

/// The i-th of n shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    index: usize,
    count: usize,
}

impl std::str::FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parsed = text.split_once('/').and_then(|(i, n)| Some((i.parse().ok()?, n.parse().ok()?)));
        match parsed {
            Some((index, count)) if 1 <= index && index <= count => Ok(Self { index, count }),
            _ => Err("expected I/N with 1 ≤ I ≤ N, for example 2/4".into()),
        }
    }
}

impl Shard {
    fn has(self, position: usize) -> bool {
        position % self.count == self.index - 1
    }
}

/// Runs the verb; whether everything passed.
pub fn run(args: &Args) -> Result<bool> {
    let start = Instant::now();
    let hardware = workspace::backends(&args.hw);
    if let Some(model) = &args.bisect {
        prepare(&hardware);
        return bisect::run(
            model,
            args.filter.as_deref(),
            &hardware,
            args.precision.first().map(String::as_str),
        );
    }
    let mut members = workspace::select(workspace::root(), &args.category, &args.model)?;
    if args.cover {
        cover::reduce(&mut members, &crate::generate::parts()?);
        let names: Vec<_> = members.iter().map(|member| member.model.as_str()).collect();
        note(format!("{} model(s) use every template and part: {}", names.len(), names.join(", ")));
    }
    if let Some(shard) = args.shard {
        let mut position = 0..;
        members.retain(|_| position.next().is_some_and(|position| shard.has(position)));
    }
    if members.is_empty() {
        note("this shard has no models");
        say("0 passed, 0 failed, 0 skipped")?;
        return Ok(true);
    }
    prepare(&hardware);
    note(format!("building the tests of {} model(s) …", members.len()));
    let binaries = binaries::build(&members, Profile::Dev)?;
    let built = start.elapsed();

    let dir = workspace::target_dir().join("weft-results");
    let run = run_id(&hardware);
    // Test binaries run in their crate's folder.
    let dir = std::path::absolute(&dir).with_context(|| format!("resolving {}", dir.display()))?;
    let scratch = dir.join(format!("{run}.{}", record::PARTS));
    fs::create_dir_all(&scratch).with_context(|| format!("creating {}", scratch.display()))?;
    let limit = Duration::from_secs(args.timeout.max(1));
    let precisions = args.precision.join(",");
    let settings = Settings { run: run.clone(), limit, scratch, precisions, undeclared: args.undeclared };
    let (mut jobs, mut records) = plan(&members, &binaries, &hardware, args.filter.as_deref(), &settings);
    let file = dir.join(format!("{run}.jsonl"));
    append(&file, &records)?;
    if jobs.is_empty() && records.is_empty() {
        fs::remove_dir_all(&settings.scratch)?;
        return Err(Usage("no test matches; `--help` says how names are made".into()).into());
    }
    let goldens = workspace::root().join("tests/goldens");
    let mut passed = Passed::load();
    if args.changed {
        let before = jobs.len();
        let mut kept = Vec::new();
        for job in jobs {
            if !passed.has(&job, &goldens)? {
                kept.push(job);
            }
        }
        jobs = kept;
        note(format!("{} of {before} passed before and have not changed", before - jobs.len()));
    }
    let at_once = args.jobs.or(thread::available_parallelism().ok()).map_or(1, NonZeroUsize::get);
    records.extend(run_all(&jobs, &settings, at_once, &file)?);
    fs::remove_dir_all(&settings.scratch)?;
    if args.filter.is_none() && !interrupted() {
        passed.keep(&jobs, &records, &goldens)?;
    }

    if let Some(dir) = &args.results {
        record::merge_into(dir, records.clone(), &[])?;
    }
    let summary = Summary::new(&records, &run, &file, built, start.elapsed(), interrupted());
    if let Some(path) = &args.junit {
        fs::write(path, junit::xml(&records)).with_context(|| format!("writing {}", path.display()))?;
    }
    say(if args.json { summary.json()? } else { summary.text() })?;
    Ok(summary.good())
}

/// Makes sure of the runtime libraries; where one cannot be had, its tests say so themselves.
fn prepare(hardware: &[Hardware]) {
    for hardware in hardware {
        if let Err(error) = crate::setup::ensure(&[*hardware]) {
            note(format!("{hardware}: {error:#}; its tests will be reported as not run"));
        }
    }
}

/// The processes to run, and a record for each crate that has none because it does not build.
fn plan(
    members: &[Member],
    binaries: &BTreeMap<String, PathBuf>,
    hardware: &[Hardware],
    filter: Option<&str>,
    settings: &Settings,
) -> (Vec<Job>, Vec<Record>) {
    let mut jobs = Vec::new();
    let mut failed = Vec::new();
    for member in members {
        let listed = match binaries.get(&member.package) {
            Some(binary) => job::list(binary, &settings.precisions).map(|all| (binary.clone(), all)),
            None => Err(anyhow::anyhow!("{} does not compile: cargo's messages say why", member.package)),
        };
        for &hardware in hardware {
            let job = |binary, tests, all| Job { member: member.clone(), binary, hardware, tests, all };
            match &listed {
                Ok((binary, all)) => {
                    let wanted = |name: &&String| {
                        name.starts_with(&format!("{hardware}::"))
                            && filter
                                .is_none_or(|filter| format!("{}::{name}", member.model).contains(filter))
                    };
                    let tests: Vec<_> = all.iter().filter(wanted).cloned().collect();
                    if !tests.is_empty() {
                        jobs.push(job(binary.clone(), tests, all.clone()));
                    }
                }
                Err(error) => {
                    let job = job(PathBuf::new(), Vec::new(), Vec::new());
                    failed.push(job.record(settings, "::f32::build", "failed", &format!("{error:#}")));
                }
            }
        }
    }
    (jobs, failed)
}

/// Runs the processes, `at_once` at a time, and appends each one's records to `file` when it ends.
fn run_all(jobs: &[Job], settings: &Settings, at_once: usize, file: &Path) -> Result<Vec<Record>> {
    let progress = Progress::new(jobs.iter().map(|job| job.tests.len()).sum());
    let next = AtomicUsize::new(0);
    let collected: Mutex<Result<Vec<Record>>> = Mutex::new(Ok(Vec::new()));
    let worker = || {
        while let Some(job) = jobs.get(next.fetch_add(1, Ordering::SeqCst)) {
            if interrupted() {
                return;
            }
            let start = Instant::now();
            let model = &job.member.model;
            let records = job.run(settings, &|name| progress.step(&format!("{model} {name}")));
            let Ok(mut collected) = collected.lock() else { return };
            let merged = records.and_then(|records| {
                append(file, &records)?;
                progress.line(&summary::line(model, job.hardware, &records, start.elapsed()));
                Ok(records)
            });
            match (&mut *collected, merged) {
                (Ok(all), Ok(records)) => all.extend(records),
                (Ok(_), Err(error)) => {
                    *collected = Err(error.context(format!("{model} on {}", job.hardware)));
                }
                (Err(_), _) => return,
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..at_once.min(jobs.len()) {
            scope.spawn(worker);
        }
    });
    progress.finish();
    let mut records = collected.into_inner().unwrap_or_else(PoisonError::into_inner)?;
    records.sort_by(|a, b| (&a.model, &a.backend).cmp(&(&b.model, &b.backend)));
    Ok(records)
}

/// When, where and on what: `2026-01-31T12-00-00Z-linux-x86_64-cpu`; a second run in the same second differs.
pub fn run_id(hardware: &[Hardware]) -> String {
    let time = job::now().replace(':', "-");
    let names: Vec<_> = hardware.iter().map(|hardware| hardware.name()).collect();
    let names = if hardware.len() == Hardware::ALL.len() { "all".into() } else { names.join("+") };
    let process = std::process::id();
    format!("{time}-{}-{}-{names}-{process}", std::env::consts::OS, std::env::consts::ARCH)
}

#[cfg(test)]
#[cfg(unix)]
mod tests;
