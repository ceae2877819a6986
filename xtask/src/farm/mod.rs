//! `cargo xtask farm`: the generated tests as tasks of an existing scheduler, followed until every result is here.

mod folder;
mod follow;
mod kubernetes;
mod pack;
mod slurm;
mod ssh;
mod task;

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use weft_generator::spec::hardware::Hardware;

use self::folder::{Folder, Plan};
use self::follow::{Engine, Limits};
use crate::record;
use crate::terminal::{Usage, note, say};
use crate::test::{PRECISIONS, summary::Summary};
use crate::workspace;

pub use task::{TaskArgs, run as run_task};

/// Run the generated tests on other machines, by Slurm, Kubernetes, ssh or hand, and gather their records.
///
/// The tests are built here, and packed with what they need: goldens, the runtime and its packages. A task is a few
/// models on one backend. What is lost with a node is handed out again; what a killed `farm` has left goes on where
/// the same command is given again.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  cargo xtask farm --on slurm --in /shared/weft --hw cpu --hw qnn --constraint qnn=snapdragon
  cargo xtask farm --on ssh --in ~/weft-farm --hw qnn --hw cpu --host lab@laptop=qnn --host lab@tower=cpu,openvino
  cargo xtask farm --on kubernetes --in /shared/weft --hw cuda --image debian:12 --claim shared
  cargo xtask farm --on folder --in weft-tests --hw cuda
  cargo xtask farm --on slurm --in /shared/weft --cancel")]
pub struct Args {
    /// The scheduler.
    #[arg(long, value_enum)]
    on: On,
    /// The folder of the run, which Slurm's nodes see under the same path; given again, the run goes on.
    #[arg(long = "in", value_name = "DIR")]
    folder: PathBuf,
    /// Backend to test on (repeatable).
    #[arg(long, value_name = "HW", value_parser = workspace::hw_parser(), default_value = "cpu")]
    hw: Vec<String>,
    /// Precision to test in place of the backends' own (repeatable).
    #[arg(long, value_name = "P", value_parser = PRECISIONS)]
    precision: Vec<String>,
    /// Only models of this category (repeatable).
    #[arg(long, value_name = "CATEGORY")]
    category: Vec<String>,
    /// Only this model (repeatable).
    #[arg(long, value_name = "MODEL")]
    model: Vec<String>,
    /// Models in one task.
    #[arg(long, value_name = "N", default_value = "8")]
    per_task: NonZeroUsize,
    /// How often a task that was lost is handed out again.
    #[arg(long, value_name = "N", default_value_t = 3)]
    retries: usize,
    /// Seconds that a single case may take.
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    timeout: u64,
    /// Seconds between two looks at the scheduler.
    #[arg(long, value_name = "SECONDS", default_value_t = 5.0)]
    poll: f64,
    /// Slurm: the feature that nodes of a backend have, where it is not the backend's name (repeatable).
    /// Kubernetes: the value of their label `weft/backend`.
    #[arg(long = "constraint", value_name = "HW=FEATURE")]
    constraints: Vec<Constraint>,
    /// ssh: a machine, and the backends that it has (repeatable).
    #[arg(long = "host", value_name = "HOST=HW,HW")]
    hosts: Vec<Host>,
    /// Kubernetes: the image that tasks run in; glibc 2.28 or newer is all that it needs.
    #[arg(long, value_name = "IMAGE", required_if_eq("on", "kubernetes"))]
    image: Option<String>,
    /// Kubernetes: the persistent volume claim that `--in` is the root of.
    #[arg(long, value_name = "CLAIM", required_if_eq("on", "kubernetes"))]
    claim: Option<String>,
    /// Also take the newest record of each cell into this folder's compact files, one a backend.
    #[arg(long, value_name = "DIR")]
    results: Option<PathBuf>,
    /// End what the run has left with the scheduler.
    #[arg(long)]
    cancel: bool,
    /// Print one JSON document instead of the tables.
    #[arg(long)]
    json: bool,
}

/// A scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum On {
    /// Slurm: job arrays, a constraint for each backend.
    Slurm,
    /// Kubernetes: Indexed Jobs, a node selector for each backend.
    Kubernetes,
    /// Machines that ssh reaches, each with the backends that it has.
    Ssh,
    /// None: the folder is carried to a machine, `sh task.sh .` runs there what has no result yet, and the same command
    /// gathers what came back.
    Folder,
}

/// What nodes of a backend are called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Constraint {
    backend: Hardware,
    feature: String,
}

impl FromStr for Constraint {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (backend, feature) = text.split_once('=').ok_or("expected HW=FEATURE, as qnn=snapdragon")?;
        Ok(Self { backend: hardware(backend)?, feature: feature.to_owned() })
    }
}

/// A machine and its backends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    address: String,
    backends: Vec<Hardware>,
}

impl FromStr for Host {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (address, backends) =
            text.rsplit_once('=').ok_or("expected HOST=HW,HW, as lab@laptop=qnn,cpu")?;
        let backends = backends.split(',').map(hardware).collect::<Result<_, _>>()?;
        Ok(Self { address: address.to_owned(), backends })
    }
}

fn hardware(name: &str) -> Result<Hardware, String> {
    let known = || Hardware::ALL.map(Hardware::name).join(", ");
    let found = Hardware::ALL.into_iter().find(|hardware| hardware.name() == name);
    found.ok_or_else(|| format!("unknown backend `{name}`; there are: {}", known()))
}

/// The feature of a backend's nodes.
fn feature(constraints: &[Constraint], backend: &str) -> String {
    let own = constraints.iter().find(|constraint| constraint.backend.name() == backend);
    own.map_or_else(|| backend.to_owned(), |constraint| constraint.feature.clone())
}

/// Runs the verb; whether every task came back and everything passed.
pub fn run(args: &Args) -> Result<bool> {
    let start = Instant::now();
    let folder =
        std::path::absolute(&args.folder).with_context(|| format!("resolving {}", args.folder.display()))?;
    let wanted = plan(args)?;
    let folder = Folder::open(&folder, &wanted, args.cancel)?;
    let engine = engine(args, &folder)?;
    if args.cancel {
        let Some(engine) = engine else {
            return Err(Usage("`--on folder` has nothing to end: stop `task.sh` where it runs".into()).into());
        };
        engine.cancel(&folder.batches()?)?;
        say(format!("{}: what was left of it has been ended", folder.path().display()))?;
        return Ok(true);
    }
    pack::pack(&folder)?;
    let built = start.elapsed();
    let limits = Limits { retries: args.retries, poll: Duration::from_secs_f64(args.poll.max(0.05)) };
    let lost = match &engine {
        Some(engine) => follow::follow(&folder, &**engine, limits)?,
        None => follow::Lost::default(),
    };

    let records = folder.gather()?;
    let open = folder.plan().tasks.len() - folder.done()?.len();
    if engine.is_none() && open > 0 {
        note(format!(
            "{open} task(s) have no result: `sh task.sh .` in {} runs them, here or on a machine that it was copied to; this command then gathers `results/`",
            folder.path().display()
        ));
        if records.is_empty() {
            return Ok(true);
        }
    }
    let plan = folder.plan();
    let file = results_file(&plan.run)?;
    record::write(&file, &record::lines(&records)?)?;
    if let Some(dir) = &args.results {
        record::merge_into(dir, records.clone(), &[])?;
    }
    let summary = Summary::new(&records, &plan.run, &file, built, start.elapsed(), lost.interrupted);
    say(if args.json { summary.json()? } else { summary.text() })?;
    for (task, reason) in &lost.given_up {
        let models = plan.tasks[*task].models.join(", ");
        note(format!("error: task {task} ({models}) never came back: {reason}"));
    }
    Ok(summary.good() && lost.given_up.is_empty())
}

/// What the options ask for.
fn plan(args: &Args) -> Result<Plan> {
    let members = workspace::select(workspace::root(), &args.category, &args.model)?;
    let hardware = workspace::backends(&args.hw);
    Ok(Plan::new(&members, &hardware, args.per_task, args.precision.join(","), args.timeout))
}

/// The scheduler, where there is one.
fn engine(args: &Args, folder: &Folder) -> Result<Option<Box<dyn Engine>>> {
    Ok(match args.on {
        On::Folder => None,
        On::Slurm => Some(Box::new(slurm::Slurm::new(folder, args.constraints.clone()))),
        On::Kubernetes => Some(Box::new(kubernetes::Kubernetes {
            run: folder.plan().run.clone(),
            image: args.image.clone().unwrap_or_default(),
            claim: args.claim.clone().unwrap_or_default(),
            constraints: args.constraints.clone(),
        })),
        On::Ssh => {
            let backends = &folder.plan().tasks;
            let has = |backend: &str| {
                args.hosts.iter().any(|host| host.backends.iter().any(|own| own.name() == backend))
            };
            if let Some(task) = backends.iter().find(|task| !has(&task.backend)) {
                return Err(Usage(format!("no --host has {0}: add --host HOST={0}", task.backend)).into());
            }
            Some(Box::new(ssh::Ssh::new(folder, &args.hosts)))
        }
    })
}

fn results_file(run: &str) -> Result<PathBuf> {
    let dir = workspace::target_dir().join("weft-results");
    std::path::absolute(dir.join(format!("{run}.jsonl"))).context("resolving the folder of records")
}

/// The worker beside the test binaries of a pack.
fn worker(pack: &Path) -> PathBuf {
    pack.join("bin").join(format!("xtask{}", std::env::consts::EXE_SUFFIX))
}
