//! The test binary of every generated crate: goldens and task cases on each backend, as libtest sees them,
//! and the modes that `cargo xtask verify`, `demo` and `bench` call.

mod arguments;
mod assisted;
mod bench;
mod bisect;
mod cached;
mod doctor;
mod forced;
mod heads;
mod known;
mod lowered;
mod machine;
mod published;
mod quantize;
mod quantized;
mod record;
mod refusals;
mod run;
mod sizes;
mod sparse;
mod subject;
mod tasks;
mod tolerances;
mod trials;
mod verify;

use std::process::ExitCode;

pub use record::Record;
use subject::Subject;

use crate::Architecture;
use crate::golden::TOLERANCE;
use crate::hardware::{Declared, Support};
use crate::{Error, Hardware, Precision, Result};

/// All that a generated crate knows about its tests.
#[derive(Clone, Copy, Debug)]
pub struct Suite {
    /// The folder of the model's cases.
    pub goldens: &'static str,
    /// One per backend.
    pub backends: &'static [BackendSuite],
    /// Fields of `config.json`, by their paths, of which one value is the only one supported, each with another one in JSON.
    pub refused: &'static [(&'static str, &'static str)],
}

/// A model's tests on one backend.
#[derive(Clone, Copy, Debug)]
pub struct BackendSuite {
    /// What the spec declares.
    pub declared: Declared,
    /// The precisions to run, with the differences they are allowed.
    pub precisions: &'static [Tolerance],
    /// Operators that may run on the CPU instead.
    pub cpu_fallback_ops: &'static [&'static str],
}

/// How far outputs may be off, relative to `max(1, max|want|)`.
#[derive(Clone, Copy, Debug)]
pub struct Tolerance {
    /// What is computed in.
    pub precision: Precision,
    /// The largest relative difference.
    pub relative: f64,
    /// Why it is not the backend's default; empty where it is.
    pub reason: &'static str,
    /// Whether tests run in it only where it is asked for (`cargo xtask test --precision`).
    pub asked: bool,
}

impl Suite {
    /// Refuses tolerances that nobody answers for.
    fn check(&self) -> Result<()> {
        for backend in self.backends {
            let hardware = backend.declared.hardware;
            let unfounded =
                backend.precisions.iter().find(|t| t.relative > TOLERANCE && t.reason.trim().is_empty());
            if let Some(Tolerance { precision, relative, .. }) = unfounded {
                let problem = format!("the tolerance {relative} of {precision} has no reason");
                return Err(Error::engine(hardware, problem));
            }
        }
        Ok(())
    }

    fn backend(&self, hardware: Hardware) -> Option<&'static BackendSuite> {
        self.backends.iter().find(|suite| suite.declared.hardware == hardware)
    }
}

impl BackendSuite {
    /// Within the backend's own tolerances, and with no operator on the CPU.
    pub const fn of(declared: Declared) -> Self {
        Self { declared, precisions: tolerances::tolerances(declared.hardware), cpu_fallback_ops: &[] }
    }

    fn tolerance(&self, precision: Precision) -> f64 {
        let own = self.precisions.iter().find(|tolerance| tolerance.precision == precision);
        own.map_or(TOLERANCE, |tolerance| tolerance.relative)
    }

    /// Whether its tests run: where the spec declares support, and wherever `$WEFT_UNDECLARED` asks for what declarations are worth.
    fn supported(&self) -> bool {
        self.declared.support != Support::No || std::env::var_os(UNDECLARED).is_some_and(|value| value == "1")
    }
}

/// What runs cells too that specs declare unsupported, where it is 1.
const UNDECLARED: &str = "WEFT_UNDECLARED";

/// The binary's `main`: libtest's arguments run the tests; `--verify`, `--task`, `--bench`, `--bisect`, `--sparse`, `--quantize` and
/// `--doctor` do those.
pub fn main<A: Architecture>(suite: &'static Suite) -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    run(Subject::of::<A>(), suite, &arguments)
}

fn run(subject: Subject, suite: &'static Suite, arguments: &[String]) -> ExitCode {
    let done = match arguments.first().map(String::as_str) {
        Some("--verify") => verify::main(subject, suite, &arguments[1..]),
        Some("--task") => tasks::main(subject, &arguments[1..]),
        Some("--doctor") => doctor::main(&arguments[1..]),
        Some("--bisect") => bisect::main(subject, suite, &arguments[1..]),
        Some("--quantize") => quantize::main(subject, &arguments[1..]),
        Some("--sparse") => sparse::main(subject, &arguments[1..]),
        Some("--bench") => bench::main(subject, &arguments[1..]),
        _ => return trials::main(subject, suite),
    };
    done.unwrap_or_else(|error| {
        eprintln!("error: {error}");
        ExitCode::from(2)
    })
}
