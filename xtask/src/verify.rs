//! `cargo xtask verify`: case folders and saved checkpoints, through the generated crate of their `model_type`.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::binaries::{self, Profile};
use crate::record::{self, Output, Record};
use crate::specs::Catalog;
use crate::table::{Table, difference};
use crate::terminal::{Usage, note, say};
use crate::workspace::{self, Member};

/// Run case folders and print how far each output is off.
///
/// A case is a folder with `config.json`, `io.safetensors` (the reference's inputs and outputs) and the weights, such as
/// `save_pretrained` writes; `case.json` may say more.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  cargo xtask verify tests/goldens/bert/masked-lm
  cargo xtask verify my-checkpoint --hw openvino --precision f32 --json")]
pub struct Args {
    /// Case folders.
    #[arg(required = true, value_name = "DIR")]
    dirs: Vec<PathBuf>,
    /// Backend to run on (repeatable).
    #[arg(long, value_name = "HW", value_parser = workspace::hw_parser(), default_value = "cpu")]
    hw: Vec<String>,
    /// What to compute in: f32 where not given, but f16 on qnn, which has nothing else.
    #[arg(long, value_parser = crate::test::PRECISIONS)]
    precision: Option<String>,
    /// Print one JSON record a line instead of the table.
    #[arg(long)]
    json: bool,
}

/// Runs the verb; whether every output of every case was close enough.
pub fn run(args: &Args) -> Result<bool> {
    let catalog = Catalog::load()?;
    let mut cases: BTreeMap<Member, Vec<PathBuf>> = BTreeMap::new();
    for dir in &args.dirs {
        if !dir.is_dir() {
            return Err(Usage(format!("{} is not a folder", dir.display())).into());
        }
        if !["io.safetensors", "task.json"].iter().any(|file| dir.join(file).is_file()) {
            bail!(
                "{} has neither io.safetensors nor task.json: put the reference's tensors there, named in.<argument> and out.<output>",
                dir.display()
            );
        }
        cases.entry(catalog.crate_for(dir)?).or_default().push(dir.canonicalize()?);
    }
    let hardware = workspace::backends(&args.hw);
    crate::setup::ensure(&hardware)?;
    let (large, small): (Vec<_>, Vec<_>) =
        cases.iter().partition(|(_, dirs)| dirs.iter().any(|dir| weights(dir) > LARGE));
    let mut built = BTreeMap::new();
    for (cases, profile, how) in [(small, Profile::Dev, ""), (large, Profile::Release, OPTIMIZED)] {
        let members: Vec<_> = cases.into_iter().map(|(member, _)| member.clone()).collect();
        if !members.is_empty() {
            let names: Vec<_> = members.iter().map(|member| member.package.as_str()).collect();
            note(format!("building {}{how} …", names.join(", ")));
            built.extend(binaries::build(&members, profile)?);
        }
    }
    let mut records = Vec::new();
    for (member, dirs) in &cases {
        let binary =
            built.get(&member.package).with_context(|| format!("{} does not compile", member.package))?;
        for hardware in &hardware {
            let mut command = binaries::command(binary);
            command.envs(crate::doctor::environment(*hardware));
            command.arg("--verify").args(dirs).args(["--hw", hardware.name()]);
            command.args(args.precision.iter().flat_map(|precision| ["--precision", precision]));
            records.extend(call(&mut command, dirs.len())?);
        }
    }
    if args.json {
        let lines = records.iter().map(serde_json::to_string).collect::<Result<Vec<_>, _>>()?;
        say(lines.join("\n"))?;
    } else {
        say(text(&records))?;
    }
    Ok(records.iter().all(|record| record.passed))
}

/// From so many bytes of weights on, what a build without optimization takes to run them outweighs an optimized build.
pub const LARGE: u64 = 100_000_000;

const OPTIMIZED: &str = ", optimized, for checkpoints of more than 100 MB";

/// The bytes of a folder's weights.
pub fn weights(dir: &Path) -> u64 {
    let files = fs::read_dir(dir).into_iter().flatten().flatten();
    let weights = files.filter(|file| file.path().extension().is_some_and(|ending| ending == "safetensors"));
    // The reference's inputs and outputs are not the model's.
    let weights = weights.filter(|file| file.file_name() != "io.safetensors");
    weights.filter_map(|file| Some(file.metadata().ok()?.len())).sum()
}

/// Runs a test binary that writes one record a line into a file of its own: vendors' libraries print what they like, and
/// this program's standard output is for records alone.
fn call(command: &mut Command, expected: usize) -> Result<Vec<Record>> {
    let folder = tempfile::tempdir().context("making a folder for records")?;
    let file = folder.path().join("records.jsonl");
    let status = command
        .arg("--records")
        .arg(&file)
        .stdin(Stdio::null())
        .stdout(io::stderr())
        .status()
        .with_context(|| format!("starting {}", command.get_program().display()))?;
    let records = if file.exists() { record::read_unfinished(&file)? } else { Vec::new() };
    if records.len() != expected {
        bail!(
            "the test binary gave {} of {expected} records and ended with {status}: what it said is above",
            records.len()
        );
    }
    Ok(records)
}

fn text(records: &[Record]) -> String {
    let mut table = Table::new([
        "case", "class", "backend", "output", "shape", "max abs", "max rel", "allowed", "verdict",
    ]);
    for record in records {
        let names = [&record.case, &record.class, &record.backend].map(Clone::clone);
        if record.outputs.is_empty() {
            let verdict = if record.evidence == "untested" { "not run" } else { "failed" };
            let blank = ["", "", "", "", ""].map(str::to_owned);
            table.row(names.clone().into_iter().chain(blank).chain([verdict.to_owned()]));
        }
        for output in &record.outputs {
            let number = |value: Option<f64>| value.map_or_else(|| "-".into(), difference);
            let cells = [
                output.name.clone(),
                shape(output),
                number(output.max_abs),
                number(output.max_rel),
                number(output.tolerance),
                if output.passed {
                    "ok".into()
                } else {
                    output.problem.clone().unwrap_or_else(|| "too far".into())
                },
            ];
            table.row(names.clone().into_iter().chain(cells));
        }
    }
    let mut text = table.text();
    for record in records {
        let placed: Vec<_> =
            record.placement.iter().map(|(device, nodes)| format!("{nodes} nodes on {device}")).collect();
        let ms: Vec<_> = record.ms.iter().map(|(step, ms)| format!("{step} {ms:.1}")).collect();
        if !placed.is_empty() {
            let _ = writeln!(text, "\n{}: {}; ms: {}", record.case, placed.join(", "), ms.join(", "));
        }
        if !record.passed {
            let _ = writeln!(text, "\n{}: {}", record.case, record.explanation().replace('\n', "\n  "));
        }
    }
    let passed = records.iter().filter(|record| record.passed).count();
    let _ = writeln!(text, "\n{passed} passed, {} failed", records.len() - passed);
    text
}

fn shape(output: &Output) -> String {
    let lengths: Vec<_> = output.shape.iter().map(ToString::to_string).collect();
    format!("[{}]", lengths.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn what_libraries_print_is_no_record() {
        let run = |script: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", script, "binary", "--verify"]);
            call(&mut command, 1)
        };
        let record = r#"{"model":"bert","backend":"qnn","passed":true}"#;
        let noisy = format!("echo '[QNN] hello'; echo '{{}}'; echo '{record}' >\"$3\"; echo bye");
        let records = run(&noisy).unwrap();
        assert!(records.len() == 1 && records[0].backend == "qnn" && records[0].passed, "{records:?}");
        let error = run(&format!("echo '{record}'")).unwrap_err().to_string();
        assert!(error.contains("gave 0 of 1 records and ended with exit status: 0"), "{error}");
    }

    #[test]
    fn a_checkpoint_is_as_large_as_its_shards() {
        let folder = tempfile::tempdir().unwrap();
        for (name, length) in [("model-1.safetensors", 70_000_000), ("model-2.safetensors", 40_000_000)] {
            fs::File::create(folder.path().join(name)).unwrap().set_len(length).unwrap();
            assert_eq!(weights(folder.path()) > LARGE, name == "model-2.safetensors");
        }
        for name in ["io.safetensors", "tokenizer.json"] {
            fs::File::create(folder.path().join(name)).unwrap().set_len(LARGE).unwrap();
        }
        assert_eq!(weights(folder.path()), 110_000_000);
    }

    #[test]
    fn outputs_are_shown_one_a_line_with_what_is_wrong() {
        let output = |name: &str, max_rel, problem: Option<&str>| Output {
            name: name.into(),
            shape: vec![2, 7, 99],
            max_abs: max_rel,
            max_rel,
            tolerance: Some(1e-4),
            passed: problem.is_none(),
            problem: problem.map(str::to_owned),
        };
        let good = Record {
            case: "masked-lm".into(),
            class: "BertForMaskedLM".into(),
            backend: "cpu".into(),
            evidence: "device".into(),
            passed: true,
            outputs: vec![output("logits", Some(2.5e-7), None)],
            placement: [("CPUExecutionProvider".to_owned(), 41)].into_iter().collect(),
            ms: [("load".to_owned(), 12.34), ("first".to_owned(), 1.0)].into_iter().collect(),
            ..Record::default()
        };
        let outputs =
            vec![output("logits", Some(0.25), Some("too far")), output("pooler", None, Some("is missing"))];
        let bad = Record {
            case: "broken".into(),
            passed: false,
            evidence: "failed".into(),
            outputs,
            ..good.clone()
        };
        insta::assert_snapshot!(text(&[good, bad]));
    }
}
