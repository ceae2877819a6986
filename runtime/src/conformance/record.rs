//! A result: what one case of one model did on one backend; result files hold one a line.

use std::collections::BTreeMap;
use std::io::Write;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::machine;
use crate::golden::OutputReport;
use crate::{Hardware, Precision};

/// What was observed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Record {
    /// The run it belongs to, `$WEFT_RUN`.
    pub run: String,
    /// Seconds since 1970, UTC.
    pub time: String,
    /// The model's name in the specs.
    pub model: String,
    /// The case.
    pub case: String,
    /// The reference's class.
    pub class: String,
    /// `golden`, `task`, `head`, `refusal`, `size` or `verify`.
    pub kind: String,
    /// The backend.
    pub backend: Hardware,
    /// What was computed in.
    pub precision: Precision,
    /// `device`, `emulator`, `lowered`, `failed`, `unsupported` or `untested`.
    pub evidence: String,
    /// Whether every output was close enough.
    pub passed: bool,
    /// The reason of a known failure.
    pub expected_failure: Option<String>,
    /// Why it failed or was not run.
    pub reason: Option<String>,
    /// How each output compared.
    pub outputs: Vec<OutputReport>,
    /// How near quantized weights are to the reference: `logits relative`, `logits kl`, `logits top1`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub accuracy: BTreeMap<String, f64>,
    /// Nodes by the device that ran them.
    pub placement: BTreeMap<String, usize>,
    /// Milliseconds by step: `graph`, `emit`, `load`, `first`.
    pub ms: BTreeMap<String, f64>,
    /// The process's private memory after the run.
    pub memory_bytes: Option<u64>,
    /// Weft, engine and reference.
    pub versions: BTreeMap<String, String>,
    /// Where it ran.
    pub machine: BTreeMap<String, String>,
}

impl Record {
    pub(super) fn new(model: &str, case: &str, kind: &str, backend: Hardware, precision: Precision) -> Self {
        let time = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        Self {
            run: std::env::var("WEFT_RUN").unwrap_or_default(),
            time: time.to_string(),
            model: model.to_owned(),
            case: case.to_owned(),
            class: String::new(),
            kind: kind.to_owned(),
            backend,
            precision,
            evidence: "untested".to_owned(),
            passed: false,
            expected_failure: None,
            reason: None,
            outputs: vec![],
            accuracy: BTreeMap::new(),
            placement: BTreeMap::new(),
            ms: BTreeMap::new(),
            memory_bytes: None,
            versions: BTreeMap::from([("weft".to_owned(), env!("CARGO_PKG_VERSION").to_owned())]),
            machine: machine::describe(),
        }
    }

    /// Appends it to `$WEFT_RESULTS`, where that is set; whole lines, so that a crash costs none before.
    pub(super) fn append(&self) -> std::io::Result<()> {
        let Some(path) = std::env::var_os("WEFT_RESULTS").filter(|path| !path.is_empty()) else {
            return Ok(());
        };
        let mut record = serde_json::to_value(self)?;
        machine::hide_home(&mut record);
        let mut line = serde_json::to_vec(&record)?;
        line.push(b'\n');
        let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path)?;
        let before = file.metadata()?.len();
        // On a full disk the next record must not follow a half one.
        file.write_all(&line).inspect_err(|_| drop(file.set_len(before)))
    }

    /// Why it does not pass, for people.
    pub(super) fn failure(&self) -> String {
        let of = |output: &OutputReport| match (&output.problem, output.max_rel) {
            (Some(problem), _) => format!("{}: {problem}", output.name),
            (None, Some(off)) => {
                format!("{}: off by {off:.2e}, allowed {:.0e}", output.name, output.tolerance)
            }
            (None, None) => output.name.clone(),
        };
        let outputs = self.outputs.iter().filter(|output| !output.passed).map(of);
        self.reason.iter().cloned().chain(outputs).collect::<Vec<_>>().join("\n")
    }
}
