//! `cargo xtask bench --auto`: what `Hardware::Auto` takes with each set of packages, against the CPU alone, in turns.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use serde::Serialize;
use serde_json::Value;

use super::Args;
use super::speed::machine;
use crate::binaries::{self, Profile};
use crate::process::watch;
use crate::setup::cache_folder;
use crate::table::Table;
use crate::terminal::{Progress, note, say};
use crate::workspace::{self, Member, root};

/// The models of the report on models of high priority (`sources` in `model_specs/architectures.yaml`).
const MODELS: [&str; 13] = [
    "bert",
    "clap",
    "clip",
    "detr",
    "llama",
    "llava",
    "llava_next",
    "qwen2",
    "t5",
    "vit",
    "wav2vec2",
    "whisper",
    "xclip",
];

/// Sets of packages beside ONNX Runtime, by the beginnings of their folders' names.
const SETS: [(&str, &[&str]); 5] = [
    ("cpu", &[]),
    ("cpu, qnn", &["onnxruntime-qnn-"]),
    ("cpu, openvino", &["openvino-"]),
    ("cpu, webgpu, webnn", &["onnxruntime-ep-webgpu-", "onnxruntime-web-", "sparticuz-chromium-"]),
    ("all", &[""]),
];

/// The most that Auto's times may be of the CPU's.
const LIMIT: f64 = 1.1;

/// Runs of a process that are timed; its time to a first result is one.
const RUNS: &str = "30";

const DOCUMENT: &str = "docs/auto.md";

/// The shortest times of some processes: whatever else the machine does makes them longer.
#[derive(Clone, Debug, Serialize)]
struct Times {
    hardware: String,
    first_ms: f64,
    run_ms: f64,
}

/// A model with a set of packages.
#[derive(Debug, Serialize)]
struct Row {
    model: String,
    packages: &'static str,
    cpu: Times,
    auto: Times,
}

impl Row {
    fn ratios(&self) -> [f64; 2] {
        [self.auto.first_ms / self.cpu.first_ms, self.auto.run_ms / self.cpu.run_ms]
    }

    fn kept(&self) -> bool {
        self.ratios().iter().all(|ratio| *ratio <= LIMIT)
    }
}

#[derive(Debug, Serialize)]
struct Measured {
    machine: String,
    rounds: u32,
    rows: Vec<Row>,
    /// What Auto says where no package is set up.
    without_packages: String,
}

/// Runs the verb; whether the limit is kept by every model with every set.
pub fn run(args: &Args) -> Result<bool> {
    let models =
        if args.models.is_empty() { MODELS.map(str::to_owned).to_vec() } else { args.models.clone() };
    let members = workspace::select(root(), &[], &models)?;
    note(format!("building the tests of {} crates", members.len()));
    let binaries = binaries::build(&members, Profile::Dev)?;
    let rounds = args.rounds.unwrap_or(5);
    let caches =
        SETS.iter().map(|(name, packages)| Ok((*name, cache(packages)?))).collect::<Result<Vec<_>>>()?;
    let progress = Progress::new(members.len() * caches.len());
    let mut rows = vec![];
    let mut without_packages = String::new();
    for member in &members {
        let binary =
            binaries.get(&member.package).with_context(|| format!("{} does not build", member.package))?;
        let case = case(member)?;
        if without_packages.is_empty() {
            let empty = tempfile::tempdir().context("making a folder")?;
            let answer = once(binary, &case, "auto", empty.path());
            let said = answer.err().map(|error| format!("{error:#}")).unwrap_or_default();
            without_packages = said.replace(&*empty.path().to_string_lossy(), "$WEFT_CACHE");
        }
        for (packages, cache) in &caches {
            let (mut cpu, mut auto) = (None, None);
            for _ in 0..rounds {
                cpu = Some(shortest(cpu, once(binary, &case, "cpu", caches[0].1.path())?));
                auto = Some(shortest(auto, once(binary, &case, "auto", cache.path())?));
            }
            if let (Some(cpu), Some(auto)) = (cpu, auto) {
                rows.push(Row { model: member.model.clone(), packages, cpu, auto });
            }
            progress.step(&format!("{} with {packages}", member.model));
        }
    }
    progress.finish();
    let measured = Measured { machine: machine(), rounds, rows, without_packages };
    if args.write {
        fs::write(root().join(DOCUMENT), measured.markdown())
            .with_context(|| format!("writing {DOCUMENT}"))?;
    }
    say(if args.json { serde_json::to_string_pretty(&measured)? } else { measured.table().text() })?;
    Ok(measured.rows.iter().all(Row::kept))
}

/// A cache folder with ONNX Runtime and these packages, linked.
fn cache(packages: &[&str]) -> Result<tempfile::TempDir> {
    let dir = tempfile::tempdir().context("making a folder")?;
    let folder = dir.path().join("packages");
    fs::create_dir(&folder)?;
    let all = cache_folder()?.join("packages");
    let plain =
        |name: &str| name.strip_prefix("onnxruntime-").is_some_and(|rest| rest.starts_with(char::is_numeric));
    for entry in fs::read_dir(&all).with_context(|| format!("reading {}", all.display()))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if plain(&name) || packages.iter().any(|package| name.starts_with(package)) {
            link(&path, &folder.join(name))?;
        }
    }
    Ok(dir)
}

fn link(from: &Path, to: &Path) -> Result<()> {
    #[cfg(unix)]
    let linked = std::os::unix::fs::symlink(from, to);
    #[cfg(windows)]
    let linked = std::os::windows::fs::symlink_dir(from, to);
    linked.with_context(|| format!("linking {}", to.display()))
}

/// The first of a model's goldens that has inputs: tiny, so that what Auto itself takes weighs most.
fn case(member: &Member) -> Result<PathBuf> {
    let folder = root().join("tests/goldens").join(&member.model);
    let mut cases: Vec<PathBuf> = fs::read_dir(&folder)
        .with_context(|| folder.display().to_string())?
        .flatten()
        .map(|case| case.path())
        .collect();
    cases.sort();
    let found = cases
        .into_iter()
        .find(|case| case.join("io.safetensors").is_file() && case.join("config.json").is_file());
    found.with_context(|| format!("{} has no golden", member.model))
}

/// A process that opens the case and runs it.
fn once(binary: &Path, case: &Path, hardware: &str, cache: &Path) -> Result<Times> {
    let mut command = binaries::command(binary);
    command.arg("--bench").arg(case).arg("--inputs").arg(case.join("io.safetensors"));
    command.args(["--hw", hardware, "--rounds", RUNS, "--json"]);
    command.env("WEFT_CACHE", cache).env_remove("ORT_DYLIB_PATH");
    let mut report: Option<Value> = None;
    let outcome = watch(command, Duration::from_secs(120), |line| {
        report = report
            .take()
            .or_else(|| serde_json::from_str(line).ok().filter(|value: &Value| value["first_ms"].is_f64()));
        true
    })?;
    let report = report.with_context(|| outcome.stderr.join("\n"))?;
    let runs = report["runs_ms"]["run"].as_array().into_iter().flatten().filter_map(Value::as_f64);
    Ok(Times {
        hardware: report["hardware"].as_str().unwrap_or_default().to_owned(),
        first_ms: report["first_ms"].as_f64().unwrap_or(f64::NAN),
        run_ms: runs.fold(f64::INFINITY, f64::min),
    })
}

fn shortest(before: Option<Times>, now: Times) -> Times {
    let Some(before) = before else { return now };
    Times {
        first_ms: before.first_ms.min(now.first_ms),
        run_ms: before.run_ms.min(now.run_ms),
        hardware: now.hardware,
    }
}

impl Measured {
    fn table(&self) -> Table {
        let header = [
            "model",
            "packages",
            "Auto takes",
            "CPU first ms",
            "Auto first",
            "CPU run ms",
            "Auto run",
            "within 1.1",
        ];
        let mut table = Table::new(header);
        for row in &self.rows {
            let [first, run] = row.ratios();
            table.row([
                row.model.clone(),
                row.packages.to_owned(),
                row.auto.hardware.clone(),
                format!("{:.1}", row.cpu.first_ms),
                format!("{first:.2}x"),
                format!("{:.2}", row.cpu.run_ms),
                format!("{run:.2}x"),
                if row.kept() { "yes" } else { "no" }.to_owned(),
            ]);
        }
        table
    }

    fn markdown(&self) -> String {
        format!(
            "# What `Hardware::Auto` takes\n\nWritten by `cargo xtask bench --auto --write`; not edited by hand. The table that \
             decides is `RULES` in `runtime/src/auto/mod.rs`; `cargo xtask doctor --load` shows what it makes of a machine.\n\n\
             Measured on {}: one golden of each model, so small that what Auto itself takes weighs most, with each set of \
             packages set up. Times are the shortest of {} processes in turns, to the first result and of {RUNS} runs each; \
             Auto's are multiples of those with `Hardware::Cpu` and ONNX Runtime alone.\n\n{}\nWithout any package: {}\n",
            self.machine,
            self.rounds,
            self.table().markdown(),
            self.without_packages.replace(['\n', '\r'], " ").trim()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(first: f64, run: f64) -> Row {
        let times =
            |hardware: &str, first_ms, run_ms| Times { hardware: hardware.to_owned(), first_ms, run_ms };
        Row {
            model: "bert".into(),
            packages: "all",
            cpu: times("cpu", 30.0, 2.0),
            auto: times("qnn", first, run),
        }
    }

    #[test]
    fn both_times_are_held_to_the_limit_and_an_unknown_one_is_not_kept() {
        assert!(row(32.0, 2.1).kept());
        assert!(!row(40.0, 2.0).kept() && !row(30.0, 500.0).kept() && !row(30.0, f64::NAN).kept());
    }

    #[test]
    fn processes_are_taken_at_their_best() {
        let best = shortest(Some(row(9.0, 3.0).auto), row(8.0, 4.0).auto);
        assert!((best.first_ms - 8.0).abs() < 1e-9 && (best.run_ms - 3.0).abs() < 1e-9);
    }

    #[test]
    fn the_page_names_the_machine_and_what_was_not_kept() {
        let rows = vec![row(30.0, 2.0), row(3000.0, 532.0)];
        let measured = Measured {
            machine: "a processor with 2 cores".into(),
            rounds: 5,
            rows,
            without_packages: "none".into(),
        };
        insta::assert_snapshot!(measured.markdown());
    }
}
