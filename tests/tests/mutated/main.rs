//! Files that nobody made on purpose: those of the goldens, mutated, given to all that reads files. None may panic or end the
//! program, or take more time or memory than bounded.
//!
//! `cargo test -p weft-tests --test mutated` tries some hundreds for each target. Many:
//! `cargo test -p weft-tests --release --test mutated -- --inputs 1000000`, one target alone with `--target jpeg`. What fails
//! is named by its number: `--target jpeg --from 4711 --inputs 1 --save FILE` writes the input and tries it again.

#![allow(clippy::unwrap_used, reason = "all of it is tests")]

mod mutate;
mod targets;

use std::fs;
use std::io::{Seek, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use targets::Target;

/// What one input may take. Without optimization everything takes several times as long.
const TIME: Duration = Duration::from_secs(if cfg!(debug_assertions) { 15 } else { 2 });
const BYTES: u64 = 1 << 30;

/// Failures of a target after which it is left.
const MOST: usize = 5;

struct Arguments {
    target: Option<String>,
    from: u64,
    inputs: u64,
    save: Option<PathBuf>,
    /// Where a process of this program notes the number of its input.
    note: Option<PathBuf>,
}

fn main() -> ExitCode {
    let arguments = arguments();
    if let (Some(note), Some(target)) = (&arguments.note, &arguments.target) {
        work(&targets::named(target), &arguments, note);
        return ExitCode::SUCCESS;
    }
    let names =
        targets::NAMES.into_iter().filter(|name| arguments.target.as_deref().is_none_or(|t| t == *name));
    let mut failures = vec![];
    for name in names {
        let start = Instant::now();
        let found = supervise(name, &arguments);
        println!(
            "{name}: {} inputs in {:.1} s, {} failures",
            arguments.inputs,
            start.elapsed().as_secs_f64(),
            found.len()
        );
        failures.extend(found);
    }
    for (name, number, what) in &failures {
        println!("{name} {number}: {what}\n  again: --target {name} --from {number} --inputs 1 --save FILE");
    }
    if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn arguments() -> Arguments {
    let mut found = Arguments { target: None, from: 0, inputs: 300, save: None, note: None };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().unwrap_or_else(|| panic!("{word} needs a value"));
        match word.as_str() {
            "--target" => found.target = Some(value()),
            "--from" => found.from = value().parse().unwrap(),
            "--inputs" => found.inputs = value().parse().unwrap(),
            "--save" => found.save = Some(value().into()),
            "--note" => found.note = Some(value().into()),
            // What `cargo test` tells harnesses that this is none of.
            _ => {}
        }
    }
    found
}

/// Runs a target in processes of its own: one that ends early, or is silent for too long, has failed at the input it noted.
fn supervise(name: &str, arguments: &Arguments) -> Vec<(String, u64, String)> {
    let scratch = tempfile::tempdir().unwrap();
    let note = scratch.path().join("note");
    let (mut from, end) = (arguments.from, arguments.from + arguments.inputs);
    let mut failures = vec![];
    while from < end && failures.len() < MOST {
        fs::write(&note, format!("{from} ")).unwrap();
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--target", name, "--from", &from.to_string(), "--inputs", &(end - from).to_string()]);
        command
            .arg("--note")
            .arg(&note)
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .env("RUST_BACKTRACE", "0");
        if let Some(save) = &arguments.save {
            command.arg("--save").arg(save);
        }
        let mut child = command.spawn().unwrap();
        let mut said = child.stderr.take().unwrap();
        let said = std::thread::spawn(move || {
            let mut text = String::new();
            let _ = std::io::Read::read_to_string(&mut said, &mut text);
            text
        });
        let mut seen = (noted(&note), Instant::now());
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break Some(status);
            }
            let now = noted(&note);
            if now != seen.0 {
                seen = (now, Instant::now());
            } else if seen.1.elapsed() > 2 * TIME {
                child.kill().unwrap();
                child.wait().unwrap();
                break None;
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        let at = noted(&note);
        let said = said.join().unwrap();
        let last = || said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default().to_owned();
        match status {
            Some(status) if status.success() => break,
            Some(status) => failures.push((name.to_owned(), at, format!("{} ({status})", last()))),
            None => {
                failures.push((name.to_owned(), at, format!("does not end within {} s", 2 * TIME.as_secs())));
            }
        }
        from = at + 1;
    }
    failures
}

fn noted(note: &Path) -> u64 {
    let text = fs::read_to_string(note).unwrap_or_default();
    text.split_whitespace().next().and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// Tries inputs until one fails.
fn work(target: &Target, arguments: &Arguments, note: &Path) {
    let mut note = fs::File::options().write(true).open(note).unwrap();
    for number in arguments.from..arguments.from + arguments.inputs {
        // A fixed width: what was noted before is overwritten whole.
        note.rewind().unwrap();
        note.write_all(format!("{number:<20} ").as_bytes()).unwrap();
        let input = mutate::input(&target.corpus, target.kind, number);
        if let Some(save) = &arguments.save {
            fs::write(save, &input).unwrap();
        }
        let (start, before) = (Instant::now(), peak());
        let done = catch_unwind(AssertUnwindSafe(|| (target.run)(&input)));
        let (took, after) = (start.elapsed(), peak());
        let problem = match done {
            Err(panic) => format!("panics: {}", told(&*panic)),
            Ok(()) if took > TIME => format!("takes {:.1} s", took.as_secs_f64()),
            Ok(()) if after > BYTES.max(before) => format!("takes {} MB", after >> 20),
            Ok(()) => continue,
        };
        eprintln!("{}", problem.replace('\n', " "));
        std::process::exit(1);
    }
}

fn told(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default()
}

/// The most memory that the process has had, bytes; 0 where the system does not say.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok()).unwrap_or(0) << 10
}
