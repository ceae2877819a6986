//! `cargo xtask bench`: a generated crate against PyTorch and its ONNX export, in turns, in one run; with `--speed`, a
//! table of models against PyTorch, llama.cpp and candle; with `--against`, the same models as another commit has them; with
//! `--auto`, what `Hardware::Auto` takes against the CPU; with `--similarity`, what quantized weights make of a real model's
//! similarities.

mod against;
mod auto;
mod building;
mod opening;
mod peer;
mod similarity;
mod speed;
mod table;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use serde::Serialize;
use weft_generator::spec::hardware::Hardware;
use weft_generator::spec::model::ModelSpec;

use self::building::Building;
use self::opening::Opening;
use self::peer::Served;
pub use self::speed::figures;
use crate::binaries::{self, Profile};
use crate::terminal::{Progress, Usage, interrupted, note, say};
use crate::workspace::{self, Member};
use crate::{reference, setup};

/// Measure a crate against PyTorch and ONNX Runtime on the exported model, at the base shape with random weights.
///
/// All of them stay loaded and take turns, so that whatever else the machine does hits all alike; ratios are of medians.
/// Needs the reference's Python (`cargo xtask reference --help`).
///
/// With --speed, a table of vision, audio and text models at the shapes of published checkpoints: each in PyTorch too, and
/// a Llama of 1.1 billion parameters in llama.cpp and candle. Its checkpoints take 11 GB in target/weft-bench and are made
/// once, as candle is built; measuring takes some ten minutes and 16 GB of memory.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  cargo xtask bench
  cargo xtask bench --rounds 100 --json
  cargo xtask bench --speed
  cargo xtask bench --speed --model llama --model vit --rounds 10
  cargo xtask bench --speed --write
  cargo xtask bench --against HEAD~10 --model vit --model t5
  cargo xtask bench --auto
  cargo xtask bench --similarity")]
pub struct Args {
    /// The model: its base class and default configuration, bert where none is given; with --speed the rows to measure,
    /// by model or by title ("Llama 1.1B in bfloat16"), all where none is given; several may be.
    #[arg(long = "model", value_name = "M")]
    models: Vec<String>,
    /// The table of models against PyTorch, llama.cpp and candle.
    #[arg(long, conflicts_with = "checkpoint")]
    speed: bool,
    /// The models of that table as they are here against those of another commit, which is built beside these: fails where the
    /// median of the rounds' ratios is above 1.10.
    #[arg(long, value_name = "COMMIT", conflicts_with_all = ["speed", "auto", "similarity", "checkpoint"])]
    against: Option<String>,
    /// With --against: builds without optimisation, which says little of speed but tries the command.
    #[arg(long, requires = "against")]
    dev: bool,
    /// What `Hardware::Auto` takes with each set of packages that is set up, and its times against the CPU's.
    #[arg(long, conflicts_with_all = ["speed", "checkpoint"])]
    auto: bool,
    /// How near the similarities of sentences by all-MiniLM-L6-v2 stay to float32's, by the precision of its weights, rounded
    /// and calibrated.
    #[arg(long, conflicts_with_all = ["speed", "auto", "checkpoint"])]
    similarity: bool,
    /// Also write the table: with --speed to results/bench.json and docs/speed.md, where named models' rows
    /// take the place of the committed ones, with --auto to docs/auto.md.
    #[arg(long)]
    write: bool,
    /// Runs of each; 40 where not given, 5 with --speed and 10 with --against; with --auto processes, 5 where not given.
    #[arg(long, value_parser = clap::value_parser!(u32).range(3..))]
    rounds: Option<u32>,
    /// Threads of each.
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// A checkpoint to measure instead of random weights at the base shape.
    #[arg(long, value_name = "DIR")]
    checkpoint: Option<PathBuf>,
    /// Print one JSON document instead of the tables.
    #[arg(long)]
    json: bool,
}

/// Batch and sequence length, and the most that the time may be of PyTorch's.
const SHAPES: [Shape; 2] =
    [Shape { batch: 1, sequence: 128, limit: 0.75 }, Shape { batch: 8, sequence: 128, limit: 0.9 }];

/// Runs in a turn before the next one's.
const TURN: u32 = 5;

#[derive(Clone, Copy, Debug, Serialize)]
struct Shape {
    batch: usize,
    sequence: usize,
    limit: f64,
}

impl Shape {
    fn name(self) -> String {
        format!("{}x{}", self.batch, self.sequence)
    }
}

/// Everything measured.
#[derive(Debug, Serialize)]
struct Measured {
    model: String,
    threads: usize,
    rounds: u32,
    /// Milliseconds by shape and contender.
    runs_ms: BTreeMap<String, BTreeMap<String, Vec<f64>>>,
    opening: Opening,
    generator: Generator,
    building: Building,
    /// What each contender said of itself.
    contenders: Vec<serde_json::Value>,
}

/// What `cargo xtask generate` takes.
#[derive(Debug, Serialize)]
struct Generator {
    /// In this repository.
    models: usize,
    /// Of one model among twenty, from its spec to files.
    model_ms: f64,
    /// The whole command, when nothing has changed.
    nothing_ms: f64,
}

/// Runs the verb; whether every limit is kept.
pub fn run(args: &Args) -> Result<bool> {
    if args.speed {
        return speed::run(args);
    }
    if let Some(commit) = &args.against {
        return against::run(args, commit);
    }
    if args.auto {
        return auto::run(args);
    }
    if args.similarity {
        return similarity::run(args);
    }
    if args.write {
        return Err(Usage("--write goes with --speed or --auto".into()).into());
    }
    let model = match args.models.as_slice() {
        [] => "bert".to_owned(),
        [model] => model.clone(),
        _ => return Err(Usage("one model at a time; several are for --speed".into()).into()),
    };
    let all_rounds = args.rounds.unwrap_or(40);
    let members = workspace::select(workspace::root(), &[], std::slice::from_ref(&model))?;
    let member = members.first().context("no such crate")?;
    setup::ensure(&[Hardware::Cpu])?;
    let python = reference::python(None)?;
    let checkpoint = match &args.checkpoint {
        Some(dir) => dir.canonicalize().with_context(|| format!("--checkpoint {}", dir.display()))?,
        None => base_checkpoint(&python, &model)?,
    };
    note(format!("building {} in release", member.package));
    let binary = binaries::build_one(member, Profile::Release)?;
    let generator = generator(member)?;
    note("building the crate's tests some times over");
    let building = building::measure(member)?;
    let opening = opening::measure(&binary, &checkpoint, SHAPES[0], args.threads)?;

    let mut own = Vec::new();
    for shape in SHAPES {
        own.push(Served::own(&binary, &checkpoint, shape, args.threads)?);
    }
    note("loading PyTorch and exporting to ONNX: some ten seconds");
    let mut peers = Served::peers(&python, &checkpoint, &SHAPES, args.threads)?;
    let names = peers.names();
    let mut runs_ms: BTreeMap<String, BTreeMap<String, Vec<f64>>> = BTreeMap::new();
    let turns = all_rounds.div_ceil(TURN);
    let progress = Progress::new(turns as usize * SHAPES.len());
    for turn in 0..turns {
        for (shape, own) in SHAPES.iter().zip(&mut own) {
            let name = shape.name();
            let rounds = TURN.min(all_rounds - turn * TURN);
            let times = runs_ms.entry(name.clone()).or_default();
            times.entry("weft".into()).or_default().extend(own.run_own(rounds)?);
            for peer in &names {
                times.entry(peer.clone()).or_default().extend(peers.run_peer(rounds, peer, *shape)?);
            }
            progress.step(&name);
            if interrupted() {
                bail!("interrupted before there was enough to compare");
            }
        }
    }
    progress.finish();
    let contenders = own.iter().map(|served| served.report.clone()).chain(peers.ready.clone()).collect();
    let (threads, rounds) = (args.threads, all_rounds);
    let measured = Measured { model, threads, rounds, runs_ms, opening, generator, building, contenders };
    let verdicts = table::verdicts(&measured, &SHAPES);
    say(if args.json {
        table::json(&measured, &verdicts)?
    } else {
        table::text(&measured, &SHAPES, &verdicts)
    })?;
    Ok(verdicts.iter().all(|verdict| verdict.kept))
}

/// A checkpoint of the base class at its default shape, random weights; made once.
fn base_checkpoint(python: &Path, model: &str) -> Result<PathBuf> {
    let catalog = crate::specs::Catalog::load()?;
    let prefix = catalog.models.get(model).map(ModelSpec::class_prefix);
    let prefix = prefix.with_context(|| format!("there is no spec `{model}`"))?;
    let dir = workspace::target_dir().join("weft-bench").join(model);
    if !dir.join("model.safetensors").is_file() {
        note(format!("making {prefix}Model at its default shape, with random weights, in {}", dir.display()));
        // Made beside and moved, so that a half-written one is never taken for whole.
        let work = dir.with_extension("partial");
        if work.exists() {
            fs::remove_dir_all(&work)?;
        }
        fs::create_dir_all(&work)?;
        let made = reference::command(python)
            .args(["make_checkpoint.py", "--model-class", &format!("{prefix}Model"), "--out"])
            .arg(&work)
            .stdout(std::process::Stdio::null())
            .status()
            .context("starting the reference's Python")?;
        if !made.success() {
            bail!("the checkpoint could not be made ({made}): what Python says is above");
        }
        fs::rename(&work, &dir)?;
    }
    Ok(dir)
}

/// Specs that extend the model, generated at once to time one.
const COPIES: usize = 20;

/// Times `cargo xtask generate`: a model generated afresh, and the whole command when there is nothing to do.
fn generator(member: &Member) -> Result<Generator> {
    let program = std::env::current_exe().context("finding this program")?;
    let call = |arguments: &[&str]| -> Result<(serde_json::Value, f64)> {
        let start = Instant::now();
        let output = std::process::Command::new(&program)
            .arg("generate")
            .args(arguments)
            .arg("--json")
            .current_dir(workspace::root())
            .output()?;
        let ms = start.elapsed().as_secs_f64() * 1e3;
        let report: serde_json::Value =
            serde_json::from_slice(&output.stdout).context("the generator gave no report")?;
        if report.get("problems").is_some() {
            bail!("the specs have problems: run `cargo xtask generate`");
        }
        Ok((report, ms))
    };
    let work = tempfile::tempdir().context("making a folder for specs")?;
    let (specs, out) = (work.path().join("specs"), work.path().join("out"));
    let folder = specs.join(&member.category);
    fs::create_dir_all(&folder)?;
    for index in 0..COPIES {
        let text = format!("model: copy-{index}\ntitle: Copy{index}\nextends: {}\n", member.model);
        fs::write(folder.join(format!("copy-{index}.yaml")), text)?;
    }
    let folders = [specs.to_string_lossy(), out.to_string_lossy()];
    let (report, _) = call(&["--specs", &folders[0], "--out", &folders[1]])?;
    let model_ms = report["ms"].as_f64().unwrap_or(f64::NAN) / COPIES as f64;
    call(&[])?;
    let (report, nothing_ms) = call(&[])?;
    let models = report["models"].as_array().map_or(0, Vec::len);
    Ok(Generator { models, model_ms, nothing_ms })
}
