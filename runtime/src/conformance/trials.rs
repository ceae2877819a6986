//! The tests as libtest sees them: `cpu::f32::masked-lm`, `cpu::f32::tasks/fill-mask`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use libtest_mimic::{Arguments, Completion, Failed, Trial};

use super::run::{Target, golden, judge};
use super::{BackendSuite, Record, Suite, Tolerance, tasks};
use crate::model::Architecture;
use crate::{Error, Hardware, engine};

/// Runs the tests that the arguments select.
pub(super) fn main<A: Architecture>(suite: &'static Suite) -> ExitCode {
    let mut arguments = Arguments::from_args();
    // Sessions have threads of their own; tests side by side would only compete.
    arguments.test_threads.get_or_insert(1);
    let goldens = goldens::<A>(suite);
    let cases = cases(&goldens, "io.safetensors");
    let task_cases = cases_of_tasks(&goldens);
    if cases.is_empty() {
        eprintln!("error: {} holds no cases\n  help: make them with `cargo xtask reference`", goldens.display());
        return ExitCode::FAILURE;
    }
    let mut trials = vec![];
    for backend in suite.backends {
        for tolerance in backend.precisions {
            trials.extend(cases.iter().map(|dir| trial::<A>(backend, tolerance, dir, "", golden::<A>)));
            let task = tasks::golden::<A>;
            trials.extend(task_cases.iter().map(|dir| trial::<A>(backend, tolerance, dir, "tasks/", task)));
        }
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// The model's cases: those of `$WEFT_GOLDENS`, for binaries that run on another machine than they were built on.
fn goldens<A: Architecture>(suite: &Suite) -> PathBuf {
    match std::env::var_os("WEFT_GOLDENS").filter(|path| !path.is_empty()) {
        Some(folder) => Path::new(&folder).join(A::NAME),
        None => PathBuf::from(suite.goldens),
    }
}

fn trial<A: Architecture>(
    backend: &'static BackendSuite,
    tolerance: &'static Tolerance,
    dir: &Path,
    prefix: &str,
    run: fn(&Path, Target<'_>) -> Record,
) -> Trial {
    let hardware = backend.declared.hardware;
    let case = dir.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let case = format!("{prefix}{case}");
    let name = format!("{hardware}::{}::{case}", tolerance.precision);
    let kind = if prefix.is_empty() { "golden" } else { "task" };
    let dir: PathBuf = dir.to_path_buf();
    Trial::ignorable_test(name, move || {
        let blank = || Record::new(A::NAME, &case, kind, hardware, tolerance.precision);
        if let Some((evidence, reason)) = not_run(backend, hardware) {
            let record = Record { evidence: evidence.to_owned(), reason: Some(reason.clone()), ..blank() };
            append(&record)?;
            return Ok(Completion::ignored_with(reason));
        }
        let target =
            Target { hardware, precision: tolerance.precision, tolerance: tolerance.relative, kind };
        let record = Record { case, ..run(&dir, target) };
        let (record, verdict) = judge(record, backend);
        append(&record)?;
        verdict.map(|()| Completion::Completed).map_err(Failed::from)
    })
}

/// The evidence and the reason where a backend is not run: not supported, or not here.
fn not_run(backend: &BackendSuite, hardware: Hardware) -> Option<(&'static str, String)> {
    if !backend.supported() {
        return Some(("unsupported", backend.declared.reason.to_owned()));
    }
    match engine::available(hardware) {
        Ok(_) => None,
        Err(Error::Unavailable { problem, help, .. }) => Some(("untested", format!("{problem}; {help}"))),
        Err(other) => Some(("untested", other.to_string())),
    }
}

fn append(record: &Record) -> Result<(), Failed> {
    record.append().map_err(|e| Failed::from(format!("the result cannot be recorded: {e}")))
}

/// The folders below `dir` that hold a file of this name, in order.
fn cases(dir: &Path, file: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut found: Vec<_> = entries.filter(|path| path.join(file).is_file()).collect();
    found.sort();
    found
}

fn cases_of_tasks(goldens: &Path) -> Vec<PathBuf> {
    cases(&goldens.join("tasks"), "task.json")
}
