//! The folder of a run: its plan, what was handed out, and the results, each written whole.

use std::collections::BTreeSet;
use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use weft_generator::spec::hardware::Hardware;

use crate::record::{self, Record};
use crate::terminal::Usage;
use crate::workspace::Member;

/// What a run consists of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The name that records carry.
    pub run: String,
    /// The precisions to test, with commas; each backend's own where there are none.
    pub precisions: String,
    /// Seconds that a single case may take.
    pub timeout: u64,
    /// The tasks, by their number.
    pub tasks: Vec<Task>,
}

/// A few models on one backend.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    pub backend: String,
    pub models: Vec<String>,
}

impl Plan {
    pub fn new(
        members: &[Member],
        hardware: &[Hardware],
        per_task: NonZeroUsize,
        precisions: String,
        timeout: u64,
    ) -> Self {
        let models: Vec<_> = members.iter().map(|member| member.model.clone()).collect();
        let task = |backend: &Hardware, models: &[String]| Task {
            backend: backend.name().to_owned(),
            models: models.to_vec(),
        };
        let of = |backend| models.chunks(per_task.get()).map(move |models| task(backend, models));
        Self {
            run: crate::test::run_id(hardware),
            precisions,
            timeout,
            tasks: hardware.iter().flat_map(of).collect(),
        }
    }

    /// Whether both are of the same tasks.
    fn same(&self, other: &Self) -> bool {
        (&self.precisions, self.timeout, &self.tasks) == (&other.precisions, other.timeout, &other.tasks)
    }
}

/// Tasks of one backend that were handed out together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Batch {
    /// Its place among the run's batches.
    pub number: usize,
    pub backend: String,
    pub tasks: Vec<usize>,
    /// Its id with the scheduler, once it is there.
    pub job: Option<String>,
}

impl Batch {
    /// The name that the scheduler knows it by.
    pub fn name(&self, run: &str) -> String {
        // Kubernetes allows lower-case letters, digits and dashes, and 63 of them.
        let run: String = run.to_lowercase().replace(['_', '+'], "-").chars().take(48).collect();
        format!("weft-{}-{}", run.trim_end_matches('-'), self.number)
    }
}

/// The folder, and the plan in it.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    plan: Plan,
}

impl Folder {
    /// A new folder, or that of a run of the same tasks; of any run, where it is only to be ended.
    pub fn open(path: &Path, wanted: &Plan, any: bool) -> Result<Self> {
        let file = path.join(PLAN);
        if !file.exists() && any {
            return Err(Usage(format!("{} holds no run", path.display())).into());
        }
        if !file.exists() {
            record::write(&file, &serde_json::to_string(wanted)?)?;
        }
        let folder = Self::read(path)?;
        if !any && !folder.plan.same(wanted) {
            let problem = format!(
                "{} holds a run of other tasks ({}): name another folder, or remove this one",
                path.display(),
                folder.plan.run
            );
            return Err(Usage(problem).into());
        }
        for part in [RESULTS, BATCHES, LOGS] {
            let part = path.join(part);
            fs::create_dir_all(&part).with_context(|| format!("creating {}", part.display()))?;
        }
        Ok(folder)
    }

    /// The folder of a run that exists.
    pub fn read(path: &Path) -> Result<Self> {
        let file = path.join(PLAN);
        let text = fs::read(&file).with_context(|| format!("reading {}", file.display()))?;
        let plan = serde_json::from_slice(&text).with_context(|| format!("{} is no plan", file.display()))?;
        Ok(Self { path: path.to_owned(), plan })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// What tasks need of this machine.
    pub fn pack(&self) -> PathBuf {
        self.path.join("pack")
    }

    /// Where a task's records go.
    pub fn result(&self, task: usize) -> PathBuf {
        self.path.join(RESULTS).join(format!("{task}.jsonl"))
    }

    pub fn logs(&self) -> PathBuf {
        self.path.join(LOGS)
    }

    /// The tasks whose records are here.
    pub fn done(&self) -> Result<BTreeSet<usize>> {
        let numbers = names(&self.path.join(RESULTS))?;
        Ok(numbers.filter_map(|name| name.strip_suffix(".jsonl")?.parse().ok()).collect())
    }

    /// What was handed out, in its order.
    pub fn batches(&self) -> Result<Vec<Batch>> {
        let dir = self.path.join(BATCHES);
        let mut batches = Vec::new();
        for name in names(&dir)?.filter(|name| name.ends_with(".json")) {
            let file = dir.join(name);
            let text = fs::read(&file).with_context(|| format!("reading {}", file.display()))?;
            let batch: Batch = serde_json::from_slice(&text)
                .with_context(|| format!("{} is no batch: remove it", file.display()))?;
            batches.push(batch);
        }
        batches.sort_by_key(|batch| batch.number);
        Ok(batches)
    }

    /// Writes what is handed out down, before and after.
    pub fn keep(&self, batch: &Batch) -> Result<()> {
        record::write(&self.batch(batch.number), &serde_json::to_string(batch)?)
    }

    /// Where a batch is written down.
    pub fn batch(&self, number: usize) -> PathBuf {
        self.path.join(BATCHES).join(format!("{number}.json"))
    }

    /// The records of all tasks that came back.
    pub fn gather(&self) -> Result<Vec<Record>> {
        let files: Vec<_> = self.done()?.into_iter().map(|task| self.result(task)).collect();
        let mut records = record::read_all(&files)?;
        records.sort_by(|a, b| (&a.model, &a.backend).cmp(&(&b.model, &b.backend)));
        Ok(records)
    }
}

const PLAN: &str = "plan.json";
const RESULTS: &str = "results";
const BATCHES: &str = "batches";
const LOGS: &str = "logs";

fn names(dir: &Path) -> Result<impl Iterator<Item = String> + use<>> {
    let entries = fs::read_dir(dir).with_context(|| format!("listing {}", dir.display()))?;
    Ok(entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()))
}
