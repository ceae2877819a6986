//! The tests as libtest sees them: `cpu::f32::masked-lm`, `cpu::f32::tasks/fill-mask`, `cpu::f32::gguf/q4_0`,
//! `cpu::f32::heads/bert`, `cpu::f32::refusals/fill-mask`, `cpu::f32::refusals/bert`, `cpu::f32::sizes/bert`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, OnceLock};

use libtest_mimic::{Arguments, Completion, Failed, Trial};

use super::known::{self, KnownFailure};
use super::lowered::Presence;
use super::run::{Target, by_kernels, by_values, golden, judge};
use super::subject::Subject;
use super::{BackendSuite, Record, Suite, Tolerance, heads, published, quantized, refusals, sizes, tasks};
use crate::{Hardware, Precision, lower};

/// Runs the tests that the arguments select.
pub(super) fn main(subject: Subject, suite: &'static Suite) -> ExitCode {
    let mut arguments = Arguments::from_args();
    // Sessions have threads of their own; tests side by side would only compete.
    arguments.test_threads.get_or_insert(1);
    if let Err(error) = suite.check() {
        eprintln!("error: {error}\n  help: write the reason into the spec and generate the crate again");
        return ExitCode::FAILURE;
    }
    let goldens = goldens(subject, suite);
    let folder = goldens.as_path();
    let cases = cases(folder, "io.safetensors");
    let task_cases = cases_of_tasks(folder);
    let ggufs = self::cases(&folder.with_file_name("gguf").join(subject.name), "model.gguf");
    if cases.is_empty() {
        eprintln!(
            "error: {} holds no cases\n  help: make them with `cargo xtask reference`",
            folder.display()
        );
        return ExitCode::FAILURE;
    }
    let named =
        |dirs: &[PathBuf], case: &str| dirs.iter().any(|dir| dir.file_name().is_some_and(|n| n == case));
    let has = |case: &str| match case.split_once('/') {
        Some(("tasks", task)) => named(&task_cases, task),
        Some(("gguf" | "gguf-kernels", file)) => named(&ggufs, file),
        _ => named(&cases, case),
    };
    let mut trials = vec![];
    for backend in suite.backends {
        let hardware = backend.declared.hardware;
        let known = match known::read(folder, subject.name, backend, &has) {
            Ok(known) => known,
            Err(error) => {
                eprintln!("error: {error}");
                return ExitCode::FAILURE;
            }
        };
        let plan = Arc::new(Plan { backend, known, refused: suite.refused, presence: OnceLock::new() });
        for tolerance in quantized::precisions(backend) {
            let goldens = cases.iter().map(|dir| trial(subject, &plan, tolerance, dir, "", golden));
            // Other numbers may give another answer: quantized weights are held to what they stand for.
            let asked = task_cases.iter().filter(|_| !tolerance.precision.is_quantized());
            let answers = asked.map(|dir| trial(subject, &plan, tolerance, dir, "tasks/", tasks::golden));
            // Pipelines are the same code everywhere: what they refuse is asked once.
            let once = hardware == Hardware::Cpu && tolerance.precision == Precision::F32;
            let refused = task_cases.iter().filter(|_| once);
            let refused =
                refused.map(|dir| trial(subject, &plan, tolerance, dir, "refusals/", refusals::golden));
            // So is how a task finds its class.
            let promised = once && !(subject.promises)().is_empty();
            let promised =
                promised.then(|| trial(subject, &plan, tolerance, folder, "heads/", heads::golden));
            let sized = once.then(|| trial(subject, &plan, tolerance, folder, "refusals/", sizes::golden));
            // Files of another format hold the same weights: how they are read is asked once.
            let quantized = |prefix, run: Run| {
                let files = ggufs.iter().filter(|_| once);
                files.map(|dir| trial(subject, &plan, tolerance, dir, prefix, run)).collect::<Vec<_>>()
            };
            let quantized = [("gguf/", by_values as Run), ("gguf-kernels/", by_kernels)]
                .map(|(prefix, run)| quantized(prefix, run))
                .into_iter()
                .flatten();
            let full = once.then(|| trial(subject, &plan, tolerance, folder, "sizes/", published::golden));
            let all = goldens
                .chain(answers)
                .chain(quantized)
                .chain(promised)
                .chain(refused)
                .chain(sized)
                .chain(full);
            trials.extend(all.map(|trial| {
                // A pass without the hardware says so beside its name.
                let told = lower::source(hardware).is_some()
                    && backend.supported()
                    && selected(&arguments, trial.name());
                if told && plan.presence().published().is_some() { trial.with_kind("lowered") } else { trial }
            }));
        }
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// The model's cases: those of `$WEFT_GOLDENS`, for binaries that run on another machine than they were built on.
fn goldens(subject: Subject, suite: &Suite) -> PathBuf {
    match std::env::var_os("WEFT_GOLDENS").filter(|path| !path.is_empty()) {
        Some(folder) => Path::new(&folder).join(subject.name),
        None => PathBuf::from(suite.goldens),
    }
}

/// A backend's tests, and whether it is here: looked for once, when it matters.
struct Plan {
    backend: &'static BackendSuite,
    known: Vec<KnownFailure>,
    refused: &'static [(&'static str, &'static str)],
    presence: OnceLock<Presence>,
}

impl Plan {
    fn presence(&self) -> &Presence {
        self.presence.get_or_init(|| Presence::of(self.backend.declared.hardware))
    }

    /// The evidence and the reason where nothing is run: not supported, or neither here nor told of.
    fn not_run(&self) -> Option<(&'static str, String)> {
        if !self.backend.supported() {
            return Some(("unsupported", self.backend.declared.reason.to_owned()));
        }
        match self.presence() {
            Presence::Absent(missing) => Some(("untested", missing.clone())),
            Presence::Here | Presence::Published(_) => None,
        }
    }
}

/// Whether libtest's arguments run a test of this name.
fn selected(arguments: &Arguments, name: &str) -> bool {
    let fits =
        |filter: &String| if arguments.exact { name == filter } else { name.contains(filter.as_str()) };
    !arguments.list && arguments.filter.iter().all(fits) && !arguments.skip.iter().any(fits)
}

/// What runs a case.
type Run = fn(Subject, &Path, Target<'_>) -> Record;

fn trial(
    subject: Subject,
    plan: &Arc<Plan>,
    tolerance: &'static Tolerance,
    dir: &Path,
    prefix: &str,
    run: Run,
) -> Trial {
    let (plan, backend) = (Arc::clone(plan), plan.backend);
    let hardware = backend.declared.hardware;
    let case = dir.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let case = format!("{prefix}{case}");
    let name = format!("{hardware}::{}::{case}", tolerance.precision);
    let kind = match prefix {
        "" | "gguf/" | "gguf-kernels/" => "golden",
        "tasks/" => "task",
        "heads/" => "head",
        "sizes/" => "size",
        _ => "refusal",
    };
    let dir: PathBuf = dir.to_path_buf();
    Trial::ignorable_test(name, move || {
        let blank = || Record::new(subject.name, &case, kind, hardware, tolerance.precision);
        if let Some((evidence, reason)) = plan.not_run() {
            let record = Record { evidence: evidence.to_owned(), reason: Some(reason.clone()), ..blank() };
            append(&record)?;
            return Ok(Completion::ignored_with(reason));
        }
        let target = Target {
            hardware,
            precision: tolerance.precision,
            tolerance: tolerance.relative,
            kind,
            absent: plan.presence().published(),
            cpu_fallback: backend.cpu_fallback_ops,
            refused: plan.refused,
        };
        let record = Record { case: case.clone(), ..run(subject, &dir, target) };
        if let Some(reason) = record.reason.as_ref().filter(|_| record.evidence == "untested") {
            append(&record)?;
            return Ok(Completion::ignored_with(reason));
        }
        let (record, verdict) = judge(record, &plan.known);
        append(&record)?;
        verdict.map(|()| Completion::Completed).map_err(Failed::from)
    })
}

fn append(record: &Record) -> Result<(), Failed> {
    record.append().map_err(|e| Failed::from(format!("the result cannot be recorded: {e}")))
}

/// The folders below `dir` that hold a file of this name, in order.
pub(super) fn cases(dir: &Path, file: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut found: Vec<_> = entries.filter(|path| path.join(file).is_file()).collect();
    found.sort();
    found
}

fn cases_of_tasks(goldens: &Path) -> Vec<PathBuf> {
    cases(&goldens.join("tasks"), "task.json")
}
