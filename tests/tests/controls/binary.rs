//! A generated crate's test binary with suites of all kinds, and how it is started.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use serde_json::Value as Json;
use tempfile::TempDir;
use weft::Precision;
use weft::conformance::{self, BackendSuite, Suite, Tolerance};
use weft_bert::{DECLARED, Model};

/// The variable that names the suite.
pub const SUITE: &str = "WEFT_TESTS_SUITE";

const EXACT: Tolerance = Tolerance { precision: Precision::F32, relative: 1e-4, reason: "", asked: false };
const CPU: BackendSuite = BackendSuite { declared: DECLARED[0], precisions: &[EXACT], cpu_fallback_ops: &[] };
const LAX: Tolerance = Tolerance { precision: Precision::F32, relative: 0.5, reason: "", asked: false };

const HALF: Tolerance =
    Tolerance { precision: Precision::F16, relative: 0.02, reason: "11 bits of mantissa", asked: false };
const TIGHT: Tolerance = Tolerance { precision: Precision::F16, relative: 1e-6, reason: "", asked: false };
/// Lowered for it where there is none: half precision on the CPU.
const CUDA: BackendSuite = BackendSuite { declared: DECLARED[1], precisions: &[HALF], cpu_fallback_ops: &[] };

const PLAIN: Suite = Suite { goldens: "", backends: &[CPU], refused: &[] };
const HALVED: Suite = Suite { goldens: "", backends: &[CUDA], refused: &[] };
const TIGHTENED: Suite =
    Suite { goldens: "", backends: &[BackendSuite { precisions: &[TIGHT], ..CUDA }], refused: &[] };
const UNFOUNDED: Suite =
    Suite { goldens: "", backends: &[BackendSuite { precisions: &[LAX], ..CPU }], refused: &[] };

pub fn main(suite: &str) -> ExitCode {
    let suite = match suite {
        "plain" => &PLAIN,
        "unfounded" => &UNFOUNDED,
        "halved" => &HALVED,
        "tightened" => &TIGHTENED,
        other => panic!("{other} is no suite"),
    };
    conformance::main::<Model>(suite)
}

/// Cases of one's own, laid out as `tests/goldens` is.
pub struct Cases {
    folder: TempDir,
}

impl Cases {
    /// With a copy of one golden of BERT, `file` or `tasks/fill-mask`.
    pub fn of(case: &str) -> Self {
        let cases = Self { folder: tempfile::tempdir().unwrap() };
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("goldens/bert").join(case);
        let to = cases.path(case);
        fs::create_dir_all(&to).unwrap();
        for entry in fs::read_dir(from).unwrap() {
            let file = entry.unwrap().path();
            fs::copy(&file, to.join(file.file_name().unwrap())).unwrap();
        }
        cases
    }

    pub fn path(&self, case: &str) -> PathBuf {
        self.folder.path().join("goldens/bert").join(case)
    }

    /// Lists known failures on the CPU, a line each.
    pub fn known(&self, lines: &str) {
        let folder = self.folder.path().join("known_failures");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("cpu.jsonl"), lines).unwrap();
    }

    /// Runs the tests of a suite over the cases.
    pub fn test(&self, suite: &str, environment: &[(&str, OsString)]) -> Outcome {
        let results = self.folder.path().join("results.jsonl");
        _ = fs::remove_file(&results);
        let mut command = command(suite);
        // One golden is not one of every class that tasks promise; of sizes it has nothing to say.
        command.args(["--skip", "heads/", "--skip", "refusals/bert", "--skip", "sizes/bert"]);
        command.env("WEFT_GOLDENS", self.folder.path().join("goldens")).env("WEFT_RESULTS", &results);
        command.envs(environment.iter().map(|(name, value)| (name, value)));
        let mut outcome = Outcome::of(&mut command);
        let lines = fs::read_to_string(results).unwrap_or_default();
        outcome.records = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        outcome
    }
}

/// The binary with a suite, and nothing of this process's own settings.
pub fn command(suite: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    for name in ["WEFT_RUN", "WEFT_RESULTS", "WEFT_GOLDENS"] {
        command.env_remove(name);
    }
    command.env(SUITE, suite);
    command
}

/// How a run ended and what it said.
#[derive(Debug)]
pub struct Outcome {
    pub success: bool,
    pub stdout: String,
    pub stderr: String,
    pub records: Vec<Json>,
}

impl Outcome {
    pub fn of(command: &mut Command) -> Self {
        let output = command.output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Self {
            success: output.status.success(),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
            records: vec![],
        }
    }

    /// The one record there must be: its evidence, whether it passed, and the reason.
    pub fn record(&self) -> (&str, bool, &str) {
        let [record] = self.records.as_slice() else { panic!("one record is needed: {self:?}") };
        let text = |field: &str| record[field].as_str().unwrap_or_default();
        (text("evidence"), record["passed"] == true, text("reason"))
    }
}
