//! Records and specs, put together: for each model and backend what is declared and what was observed.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use weft_generator::spec::hardware::{Hardware, Support};
use weft_generator::spec::model::{ModelHardware, ModelSpec};
use weft_generator::spec::not_yet::Elsewhere;

use super::covered::{Covered, covered};
use super::groups::{Gap, Group, architectures, categories, gaps};
use super::precisions::{self, Accuracy};
use crate::record::{Outcome, Record, newest};
use crate::specs::Catalog;

/// Everything that the formats print.
#[derive(Debug, Serialize)]
pub struct Report {
    /// The newest record's time, in seconds since 1970; none without records.
    pub as_of: Option<u64>,
    pub runs: Vec<String>,
    pub machines: Vec<String>,
    pub versions: BTreeMap<String, BTreeSet<String>>,
    pub backends: Vec<&'static str>,
    pub models: Vec<Model>,
    pub architectures: Vec<Group>,
    pub categories: Vec<Group>,
    pub gaps: Vec<Gap>,
    pub covered: Vec<Covered>,
    pub elsewhere: Vec<Elsewhere>,
}

/// A row of the matrix.
#[derive(Debug, Serialize)]
pub struct Model {
    pub model: String,
    pub title: String,
    pub category: String,
    pub architecture: String,
    /// One per backend, in their order.
    pub cells: Vec<Cell>,
}

/// One model on one backend.
#[derive(Debug, Serialize)]
pub struct Cell {
    pub backend: &'static str,
    pub declared: Declared,
    /// `device`, `emulator`, `lowered`, `failed`, `unsupported` or `untested`.
    pub evidence: String,
    /// The number format that evidence and counts are of: single precision where it was tried.
    pub precision: String,
    /// The evidence for each number format that was tried.
    pub precisions: BTreeMap<String, String>,
    /// How near the reference each format of quantized weights came.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub accuracy: BTreeMap<String, Accuracy>,
    pub passed: usize,
    pub failed: usize,
    pub known_failures: usize,
    pub not_run: usize,
    pub max_rel: Option<f64>,
    /// Nodes by device, of all cases together.
    pub placement: BTreeMap<String, u64>,
    /// Medians over the cases.
    pub load_ms: Option<f64>,
    pub first_ms: Option<f64>,
    /// The largest of the cases.
    pub memory_bytes: Option<u64>,
    pub reasons: Vec<String>,
    pub cases: Vec<Case>,
}

/// What a spec says of a backend.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Declared {
    pub support: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub performance: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notes: Option<String>,
    /// By number format, in the sources' words.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub precision: BTreeMap<String, String>,
}

/// One case, as it was observed last on one machine.
#[derive(Debug, Serialize)]
pub struct Case {
    pub case: String,
    pub class: String,
    pub precision: String,
    pub evidence: String,
    pub outcome: &'static str,
    pub max_rel: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    pub machine: String,
}

impl Report {
    pub fn new(catalog: &Catalog, records: Vec<Record>) -> Self {
        let as_of = records.iter().filter_map(|record| record.time.parse().ok()).max();
        let mut runs: Vec<_> = records.iter().map(|record| record.run.clone()).collect();
        runs.sort();
        runs.dedup();
        let machines: BTreeSet<_> = records.iter().map(Record::machine).collect();
        let mut versions: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
        for (name, version) in records.iter().flat_map(|record| &record.versions) {
            versions.entry(name.clone()).or_default().insert(version.clone());
        }
        let latest = newest(records);
        let unknown: BTreeSet<_> = latest.iter().map(|record| &record.model).collect();
        let unknown = unknown.into_iter().filter(|name| !catalog.models.contains_key(*name));
        let unknown: Vec<_> =
            unknown.map(|name| ModelSpec { model: name.clone(), ..ModelSpec::default() }).collect();
        let specs = catalog.models.values().chain(&unknown);
        let mut observed = Observed::new();
        for record in &latest {
            observed.entry((&record.model, &record.backend)).or_default().push(record);
        }
        let mut models: Vec<_> = specs.map(|spec| model(catalog, spec, &observed)).collect();
        models.sort_by(|a, b| (&a.category, &a.model).cmp(&(&b.category, &b.model)));
        Self {
            as_of,
            runs,
            machines: machines.into_iter().collect(),
            versions,
            backends: Hardware::ALL.map(Hardware::name).to_vec(),
            architectures: architectures(catalog, &models),
            categories: categories(catalog, &models),
            gaps: gaps(&models),
            covered: covered(catalog, &models),
            elsewhere: catalog.not_yet.elsewhere.clone(),
            models,
        }
    }
}

/// Records by model and backend.
type Observed<'a> = BTreeMap<(&'a str, &'a str), Vec<&'a Record>>;

fn model(catalog: &Catalog, spec: &ModelSpec, observed: &Observed<'_>) -> Model {
    let cell = |hardware: Hardware| {
        let own = observed.get(&(spec.model.as_str(), hardware.name())).map_or(&[][..], Vec::as_slice);
        cell(hardware.name(), declared(catalog, spec, hardware), own)
    };
    Model {
        model: spec.model.clone(),
        title: spec.title.clone().unwrap_or_else(|| spec.model.clone()),
        category: spec.category.clone().unwrap_or_default(),
        architecture: spec.architecture.clone().unwrap_or_default(),
        cells: Hardware::ALL.into_iter().map(cell).collect(),
    }
}

fn declared(catalog: &Catalog, spec: &ModelSpec, hardware: Hardware) -> Declared {
    let kind = spec.architecture.as_ref().and_then(|name| catalog.architectures.get(name));
    let Some(entry) = kind.and_then(|kind| kind.hardware.get(&hardware)) else {
        return Declared { support: "unknown", ..Declared::default() };
    };
    let own = spec.hardware.get(&hardware).map(ModelHardware::matrix).unwrap_or_default();
    let entry = entry.overridden(&own);
    Declared {
        support: support(entry.support),
        reason: entry.reason,
        performance: entry.performance,
        memory: entry.memory,
        notes: entry.notes,
        precision: precisions::declared(&entry.precision),
    }
}

pub(super) fn support(support: Support) -> &'static str {
    match support {
        Support::Full => "full",
        Support::Limited => "limited",
        Support::No => "no",
    }
}

fn cell(backend: &'static str, declared: Declared, all: &[&Record]) -> Cell {
    let mut by_precision: BTreeMap<&str, Vec<&Record>> = BTreeMap::new();
    for record in all {
        by_precision.entry(&record.precision).or_default().push(record);
    }
    let precisions: BTreeMap<_, _> =
        by_precision.iter().map(|(precision, own)| ((*precision).to_owned(), evidence(own))).collect();
    let accuracy = by_precision
        .iter()
        .filter_map(|(name, own)| Some(((*name).to_owned(), Accuracy::of(own)?)))
        .collect();
    let precision = main_precision(&precisions);
    let shown = by_precision.get(precision.as_str()).map_or(&[][..], Vec::as_slice);
    let records = decisive(shown);
    let count = |outcome| records.iter().filter(|record| record.outcome() == outcome).count();
    let mut placement = BTreeMap::new();
    for (device, nodes) in records.iter().flat_map(|record| &record.placement) {
        *placement.entry(device.clone()).or_default() += nodes;
    }
    let mut reasons: Vec<_> =
        records.iter().filter(|r| r.outcome() != Outcome::Passed).map(|record| record.summary()).collect();
    reasons.sort();
    reasons.dedup();
    let ms = |step: &str| median(records.iter().filter_map(|record| record.ms.get(step).copied()).collect());
    Cell {
        backend,
        evidence: match evidence(shown) {
            none if none == "untested" && declared.support == "no" => "unsupported".into(),
            seen => seen,
        },
        declared,
        precision,
        precisions,
        accuracy,
        passed: count(Outcome::Passed),
        failed: count(Outcome::Failed),
        known_failures: count(Outcome::Known),
        not_run: count(Outcome::Skipped),
        max_rel: records.iter().filter_map(|record| record.max_rel()).reduce(f64::max),
        placement,
        load_ms: ms("load"),
        first_ms: ms("first"),
        memory_bytes: records.iter().filter_map(|record| record.memory_bytes).max(),
        reasons,
        cases: all.iter().map(|record| case(record)).collect(),
    }
}

/// The first of the formats that ran at all, single precision first.
fn main_precision(precisions: &BTreeMap<String, String>) -> String {
    let order = crate::test::PRECISIONS;
    let ran = |name: &&str| {
        precisions.get(*name).is_some_and(|level| level != "untested" && level != "unsupported")
    };
    let tried = |name: &&str| precisions.contains_key(*name);
    let found = order.iter().copied().find(ran).or_else(|| order.iter().copied().find(tried));
    found.map(str::to_owned).or_else(|| precisions.keys().next().cloned()).unwrap_or_default()
}

fn case(record: &Record) -> Case {
    let (outcome, reason) = match record.outcome() {
        Outcome::Passed => ("passed", None),
        Outcome::Failed => ("failed", Some(record.summary())),
        // What it failed with differs by machine, why it does not.
        Outcome::Known => ("known failure", record.expected_failure.clone()),
        Outcome::Skipped => ("not run", Some(record.summary())),
    };
    Case {
        case: record.case.clone(),
        class: record.class.clone(),
        precision: record.precision.clone(),
        evidence: record.evidence.clone(),
        outcome,
        max_rel: record.max_rel(),
        reason,
        machine: record.machine(),
    }
}

const LEVELS: [&str; 5] = ["untested", "unsupported", "lowered", "emulator", "device"];

/// What all cases together prove: on each machine no more than its weakest case, over the machines the strongest;
/// one failure anywhere is a failure.
pub fn evidence(records: &[&Record]) -> String {
    if records.iter().any(|record| record.outcome() == Outcome::Failed) {
        return "failed".into();
    }
    match ranks(records).into_values().max() {
        Some(rank) => LEVELS[rank].into(),
        None if records.is_empty() => "untested".into(),
        None => "failed".into(),
    }
}

/// The weakest level of each machine's cases, known failures aside.
fn ranks(records: &[&Record]) -> BTreeMap<String, usize> {
    let mut machines: BTreeMap<String, usize> = BTreeMap::new();
    for record in records.iter().filter(|record| record.outcome() != Outcome::Known) {
        let rank = LEVELS.iter().position(|level| *level == record.evidence).unwrap_or(0);
        machines.entry(record.machine()).and_modify(|weakest| *weakest = rank.min(*weakest)).or_insert(rank);
    }
    machines
}

/// The records that the evidence rests on: the strongest machines' ones, and every failure.
fn decisive<'a>(records: &[&'a Record]) -> Vec<&'a Record> {
    let ranks = ranks(records);
    let best = ranks.values().max();
    let rests_on = |record: &&&Record| {
        record.outcome() == Outcome::Failed || best.is_none() || ranks.get(&record.machine()) == best
    };
    records.iter().filter(rests_on).copied().collect()
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}
