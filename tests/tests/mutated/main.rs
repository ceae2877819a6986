//! Files that nobody made on purpose: those of the goldens, mutated, given to all that reads files. None may panic or end the
//! program, or take more time or memory than bounded.
//!
//! `cargo test -p weft-tests --test mutated` tries some hundreds for each target. Many:
//! `cargo test -p weft-tests --release --test mutated -- --inputs 1000000`, one target alone with `--target jpeg`. What fails
//! is named by its number: `--target jpeg --from 4711 --inputs 1 --save FILE` writes the input and tries it again.

#![allow(clippy::unwrap_used, reason = "all of it is tests")]

mod measure;
mod mutate;
mod targets;

use std::fs;
use std::io::{Seek, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use measure::{Most, Watch};
use targets::Target;

/// The processor time that one input may take. Without optimization everything takes several times as long.
const TIME: Duration = Duration::from_secs(if cfg!(debug_assertions) { 15 } else { 2 });
const BYTES: u64 = 1 << 30;

/// How long a process may be at one input, on a machine that does other things as well.
const SILENCE: Duration = Duration::from_secs(60);

/// Failures of a target after which it is left.
const FAILURES: usize = 20;

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
            "{name}: {} inputs in {:.1} s, {} failures; {}",
            found.tried,
            start.elapsed().as_secs_f64(),
            found.failures.len(),
            found.most
        );
        failures.extend(found.failures.into_iter().map(|(number, what)| (name, number, what)));
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

/// What a target's inputs came to.
#[derive(Default)]
struct Found {
    tried: u64,
    failures: Vec<(u64, String)>,
    most: Most,
}

/// Runs a target in processes of its own: one that ends early, or is silent for too long, has failed at the input it noted.
fn supervise(name: &str, arguments: &Arguments) -> Found {
    let scratch = tempfile::tempdir().unwrap();
    let note = scratch.path().join("note");
    let (mut from, end) = (arguments.from, arguments.from + arguments.inputs);
    let mut found = Found::default();
    while from < end && found.failures.len() < FAILURES {
        fs::write(&note, noted(from, &Most::default())).unwrap();
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
        let mut seen = (read(&note).0, Instant::now());
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break Some(status);
            }
            let (now, _) = read(&note);
            if now != seen.0 {
                seen = (now, Instant::now());
            } else if seen.1.elapsed() > SILENCE {
                child.kill().unwrap();
                child.wait().unwrap();
                break None;
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        let (at, most) = read(&note);
        found.most.join(most);
        let said = said.join().unwrap();
        let last = || said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default().to_owned();
        let failure = match status {
            Some(status) if status.success() => {
                found.tried += end - from;
                break;
            }
            Some(status) => format!("{} ({status})", last()),
            None => format!("does not end within {} s", SILENCE.as_secs()),
        };
        found.failures.push((at, failure));
        found.tried += at + 1 - from;
        from = at + 1;
    }
    found
}

/// What a process notes: the number of its input and the most that the ones before took, of a fixed width, so that what
/// was noted before is overwritten whole.
fn noted(number: u64, most: &Most) -> String {
    format!("{number:<20} {}", most.noted())
}

fn read(note: &Path) -> (u64, Most) {
    let text = fs::read_to_string(note).unwrap_or_default();
    let numbers: Vec<u64> = text.split_whitespace().filter_map(|number| number.parse().ok()).collect();
    let (number, most) = numbers.split_first().unwrap_or((&0, &[]));
    (*number, Most::read(most))
}

/// Tries inputs until one fails.
fn work(target: &Target, arguments: &Arguments, note: &Path) {
    let mut note = fs::File::options().write(true).open(note).unwrap();
    let mut most = Most::default();
    let end = arguments.from + arguments.inputs;
    for number in arguments.from..=end {
        note.rewind().unwrap();
        note.write_all(noted(number, &most).as_bytes()).unwrap();
        if number == end {
            break;
        }
        let input = mutate::input(&target.corpus, target.kind, number);
        if let Some(save) = &arguments.save {
            fs::write(save, &input).unwrap();
        }
        let watch = Watch::start();
        let done = catch_unwind(AssertUnwindSafe(|| (target.run)(&input)));
        let (time, bytes) = watch.stop();
        most.see(number, time, bytes);
        let problem = match done {
            Err(panic) => format!("panics: {}", told(&*panic)),
            Ok(()) if time > TIME => format!("takes {:.1} s", time.as_secs_f64()),
            Ok(()) if bytes > BYTES => format!("takes {} MB", bytes >> 20),
            Ok(()) => continue,
        };
        note.rewind().unwrap();
        note.write_all(noted(number, &most).as_bytes()).unwrap();
        eprintln!("{}", problem.replace('\n', " "));
        std::process::exit(1);
    }
}

fn told(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default()
}
