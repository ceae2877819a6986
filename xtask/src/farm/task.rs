//! One task on a node: its models' test binaries, out of the pack, and their records.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use weft_generator::spec::hardware::Hardware;

use super::folder::Folder;
use crate::record;
use crate::test::job::{self, Job, Settings};
use crate::workspace::Member;

/// One task of a farm's run; the scheduler starts it.
#[derive(clap::Args, Debug)]
pub struct TaskArgs {
    /// The folder of the run, as this machine sees it.
    folder: PathBuf,
    /// The batch and the place in it.
    batch: usize,
    /// The place in the batch.
    place: usize,
}

/// Runs the verb. A task whose records are there already is done.
pub fn run(args: &TaskArgs) -> Result<bool> {
    let path = std::path::absolute(&args.folder).context("resolving the folder of the run")?;
    let folder = Folder::read(&path)?;
    let file = folder.batch(args.batch);
    let batch: super::folder::Batch = serde_json::from_slice(&std::fs::read(&file)?)
        .with_context(|| format!("{} is no batch", file.display()))?;
    let number =
        *batch.tasks.get(args.place).with_context(|| format!("the batch has no task {}", args.place))?;
    if folder.result(number).exists() {
        return Ok(true);
    }
    let plan = folder.plan();
    let task = plan.tasks.get(number).with_context(|| format!("the plan has no task {number}"))?;
    let scratch = tempfile::tempdir().context("making a folder for unfinished records")?;
    let settings = Settings {
        run: plan.run.clone(),
        limit: Duration::from_secs(plan.timeout.max(1)),
        scratch: scratch.path().to_owned(),
        precisions: plan.precisions.clone(),
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
    record::write(&folder.result(number), &record::lines(&records)?)?;
    Ok(true)
}
