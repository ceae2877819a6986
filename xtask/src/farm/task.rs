//! Tasks on a node: their models' test binaries, out of the pack, and their records.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use weft_generator::spec::hardware::Hardware;

use super::folder::Folder;
use crate::record;
use crate::test::job::{self, Job, Settings};
use crate::workspace::{self, Member};

/// One task of a farm's run, which the scheduler starts; or all that have no result yet.
#[derive(clap::Args, Debug)]
pub struct TaskArgs {
    /// The folder of the run, as this machine sees it.
    folder: PathBuf,
    /// The batch that the task was handed out in; without it, every task that has no result yet.
    #[arg(requires = "place")]
    batch: Option<usize>,
    /// The place in the batch.
    place: Option<usize>,
    /// Only tasks of this backend (repeatable).
    #[arg(long, value_name = "HW", value_parser = workspace::hw_parser(), conflicts_with = "batch")]
    hw: Vec<String>,
}

/// Runs the verb. A task whose records are there already is done.
pub fn run(args: &TaskArgs) -> Result<bool> {
    let path = std::path::absolute(&args.folder).context("resolving the folder of the run")?;
    let folder = Folder::read(&path)?;
    let (Some(batch), Some(place)) = (args.batch, args.place) else {
        return all(&folder, &args.hw);
    };
    let file = folder.batch(batch);
    let batch: super::folder::Batch = serde_json::from_slice(&std::fs::read(&file)?)
        .with_context(|| format!("{} is no batch", file.display()))?;
    one(&folder, *batch.tasks.get(place).with_context(|| format!("the batch has no task {place}"))?)?;
    Ok(true)
}

/// Runs what has no result yet, of these backends where some are named.
fn all(folder: &Folder, backends: &[String]) -> Result<bool> {
    let named = workspace::backends(backends);
    for (number, task) in folder.plan().tasks.iter().enumerate() {
        if named.is_empty() || named.iter().any(|backend| backend.name() == task.backend) {
            one(folder, number)?;
        }
    }
    Ok(true)
}

/// Runs one task.
fn one(folder: &Folder, number: usize) -> Result<()> {
    if folder.result(number).exists() {
        return Ok(());
    }
    let plan = folder.plan();
    let task = plan.tasks.get(number).with_context(|| format!("the plan has no task {number}"))?;
    let scratch = tempfile::tempdir().context("making a folder for unfinished records")?;
    let settings = Settings {
        run: plan.run.clone(),
        limit: Duration::from_secs(plan.timeout.max(1)),
        scratch: scratch.path().to_owned(),
        precisions: plan.precisions.clone(),
        // A farm's machines say so in their environment (`WEFT_UNDECLARED=1`), which the tests inherit.
        undeclared: false,
    };
    let hardware = Hardware::ALL.into_iter().find(|hardware| hardware.name() == task.backend);
    let hardware = hardware.with_context(|| format!("unknown backend {}", task.backend))?;
    let bin = folder.pack().join("bin");
    let mut records = Vec::new();
    for model in &task.models {
        let binary = bin.join(format!("{model}{}", std::env::consts::EXE_SUFFIX));
        let member = Member {
            category: String::new(),
            model: model.clone(),
            package: model.clone(),
            dir: bin.clone(),
        };
        if !binary.exists() {
            let job = Job { member, binary, hardware, tests: vec![], all: vec![] };
            records.push(job.record(&settings, "::f32::build", "failed", "its tests do not compile"));
            continue;
        }
        let all = job::list(&binary, &plan.precisions)?;
        let tests = all.iter().filter(|name| name.starts_with(&format!("{hardware}::"))).cloned().collect();
        let job = Job { member, binary, hardware, tests, all };
        records.extend(job.run(&settings, &|name| println!("{model} {name}"))?);
    }
    if crate::terminal::interrupted() {
        anyhow::bail!("interrupted: the task is handed out again");
    }
    record::write(&folder.result(number), &record::lines(&records)?)
}
