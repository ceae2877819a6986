//! The lines of a file, and what their columns are.

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub(super) const FORMAT: &str = "weft-results/4";

/// The forms before it: in the third every run had its versions and its machine, and what cases share was named in their line; before
/// that every case named its class, and its outputs.
pub(super) const FORMER: [&str; 3] = ["weft-results/1", "weft-results/2", "weft-results/3"];
/// What the cases below a line share, in the order of its columns.
pub(super) const SHARED: [&str; 12] = [
    "model",
    "precision",
    "evidence",
    "setting",
    "time",
    "count",
    "classes",
    "outputs",
    "tolerance",
    "reason",
    "expected_failure",
    "passed",
];
pub(super) const COLUMNS: [&str; 7] = ["case", "class", "outputs", "nodes", "ms", "memory_mb", "other"];
/// Those that every run has; others follow.
pub(super) const STAGES: [&str; 2] = ["load", "first"];

/// Parts of the time to load, which only a run's own records have.
pub(super) const PARTS: [&str; 2] = ["graph", "emit"];

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Line {
    File(Header),
    Environment(Environment),
    Setting(Setting),
    Text(Text),
    Cases(Value),
    End(String),
}

#[derive(Clone, Default, Serialize, Deserialize)]
pub(super) struct Header {
    pub(super) format: String,
    pub(super) backend: String,
    /// What values of a line of `cases` are, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) shared: Vec<String>,
    /// What a case's values are, in their order.
    pub(super) columns: Vec<String>,
    /// Where nodes ran: what `nodes` counts.
    pub(super) devices: Vec<String>,
    /// What `ms` are of.
    pub(super) stages: Vec<String>,
}

impl Header {
    /// What cases share by its names, which former files have in the line.
    pub(super) fn named(&self, shared: Value) -> Result<Value> {
        let Value::Array(values) = shared else { return Ok(shared) };
        if values.len() > self.shared.len() {
            bail!("it has {} columns, and the first line names {}", values.len(), self.shared.len());
        }
        let some = self.shared.iter().zip(values).filter(|(_, value)| !value.is_null());
        Ok(some.map(|(name, value)| (name.clone(), value)).collect::<serde_json::Map<_, _>>().into())
    }
}

/// What runs were made with, and where: that of many.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(super) struct Environment {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) id: String,
    pub(super) versions: BTreeMap<String, String>,
    pub(super) machine: BTreeMap<String, String>,
}

/// A run in an environment.
#[derive(Serialize, Deserialize)]
pub(super) struct Setting {
    pub(super) id: String,
    pub(super) run: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) environment: Option<String>,
    /// What former files have in its place.
    #[serde(flatten, skip_serializing)]
    pub(super) own: Option<Environment>,
}

/// A reason that many cases share.
#[derive(Serialize, Deserialize)]
pub(super) struct Text {
    pub(super) id: String,
    pub(super) is: String,
}

/// What the cases below it share.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Cases {
    pub(super) model: String,
    pub(super) precision: String,
    pub(super) evidence: String,
    /// Where it does not follow from the evidence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) passed: Option<bool>,
    pub(super) setting: String,
    /// The last of them, in seconds since 1970.
    pub(super) time: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) expected_failure: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) tolerance: Option<f64>,
    /// Their classes, which cases name by the place here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) classes: Vec<String>,
    /// Those outputs of theirs that are kept, which cases name by the place here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) outputs: Vec<String>,
    pub(super) count: usize,
}

pub(super) fn proves(evidence: &str) -> bool {
    matches!(evidence, "device" | "emulator" | "lowered")
}
