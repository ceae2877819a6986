//! What a run of tests comes to: a table of models by backends, the failures, one closing line.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use indexmap::IndexMap;
use weft_generator::spec::hardware::Hardware;

use crate::record::{Outcome, Record};
use crate::table::{Table, difference};

/// How many records came out how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub passed: usize,
    pub failed: usize,
    pub skipped: usize,
    pub known: usize,
}

impl Counts {
    pub fn of<'a>(records: impl IntoIterator<Item = &'a Record>) -> Self {
        let mut counts = Self::default();
        for record in records {
            match record.outcome() {
                Outcome::Passed => counts.passed += 1,
                Outcome::Failed => counts.failed += 1,
                Outcome::Skipped => counts.skipped += 1,
                Outcome::Known => counts.known += 1,
            }
        }
        counts
    }
}

/// One finished process, as a line of progress.
pub fn line(model: &str, hardware: Hardware, records: &[Record], time: Duration) -> String {
    let Counts { passed, failed, skipped, known } = Counts::of(records);
    let mut text = format!("{model} {hardware}: {passed} passed");
    for (count, what) in [(failed, "failed"), (skipped, "skipped"), (known, "known failures")] {
        if count > 0 {
            let _ = write!(text, ", {count} {what}");
        }
    }
    let _ = write!(text, " in {:.1} s", time.as_secs_f64());
    text
}

/// The records of a run and what holds for all of them.
pub struct Summary<'a> {
    records: &'a [Record],
    run: &'a str,
    file: &'a Path,
    built: Duration,
    total: Duration,
    interrupted: bool,
}

type Cells<'a> = BTreeMap<(&'a str, &'a str, &'a str), Vec<&'a Record>>;

impl<'a> Summary<'a> {
    pub fn new(
        records: &'a [Record],
        run: &'a str,
        file: &'a Path,
        built: Duration,
        total: Duration,
        interrupted: bool,
    ) -> Self {
        Self { records, run, file, built, total, interrupted }
    }

    /// Whether nothing failed and nothing was cut off.
    pub fn good(&self) -> bool {
        !self.interrupted && Counts::of(self.records).failed == 0
    }

    fn cells(&self) -> Cells<'a> {
        let mut cells = Cells::new();
        for record in self.records {
            cells.entry((&record.model, &record.backend, &record.precision)).or_default().push(record);
        }
        cells
    }

    pub fn text(&self) -> String {
        let mut table = Table::new([
            "model",
            "backend",
            "precision",
            "evidence",
            "passed",
            "failed",
            "skipped",
            "known",
            "max rel. error",
        ]);
        for ((model, backend, precision), records) in self.cells() {
            let Counts { passed, failed, skipped, known } = Counts::of(records.iter().copied());
            let counts = [passed, failed, skipped, known].map(|count| count.to_string());
            let names = [model, backend, precision, &evidence(&records)].map(str::to_owned);
            let worst = max_rel(&records).map_or_else(|| "-".into(), difference);
            table.row(names.into_iter().chain(counts).chain([worst]));
        }
        let mut text = format!("\n{}", table.text());
        self.list(&mut text, Outcome::Failed, "Failed");
        self.list(&mut text, Outcome::Known, "Known failures");
        self.list(&mut text, Outcome::Skipped, "Not run");
        let _ = writeln!(
            text,
            "\nbuilt in {:.1} s, ran in {:.1} s; records: {}",
            self.built.as_secs_f64(),
            self.total.saturating_sub(self.built).as_secs_f64(),
            self.file.display()
        );
        if self.interrupted {
            text.push_str("interrupted: only what was finished is counted\n");
        }
        let Counts { passed, failed, skipped, known } = Counts::of(self.records);
        let _ = writeln!(text, "{passed} passed, {failed} failed, {} skipped", skipped + known);
        text
    }

    /// The records with one outcome and their reasons: a line for each reason that a model has on a backend.
    fn list(&self, text: &mut String, outcome: Outcome, title: &str) {
        let mut reasons: IndexMap<_, Vec<&Record>> = IndexMap::new();
        for record in self.records.iter().filter(|record| record.outcome() == outcome) {
            let key = (&record.model, &record.backend, &record.precision, record.summary());
            reasons.entry(key).or_default().push(record);
        }
        if reasons.is_empty() {
            return;
        }
        let _ = writeln!(text, "\n{title}:");
        for ((model, backend, precision, reason), records) in reasons {
            let which = match records.as_slice() {
                [one] => one.test_name(),
                several => format!("{backend}::{precision} ({} cases, {} …)", several.len(), several[0].case),
            };
            let _ = writeln!(text, "  {model} {which}: {reason}");
        }
    }

    pub fn json(&self) -> Result<String> {
        let Counts { passed, failed, skipped, known } = Counts::of(self.records);
        let cells: Vec<_> = self
            .cells()
            .into_iter()
            .map(|((model, backend, precision), records)| {
                let counts = Counts::of(records.iter().copied());
                serde_json::json!({
                    "model": model, "backend": backend, "precision": precision, "evidence": evidence(&records),
                    "passed": counts.passed, "failed": counts.failed, "skipped": counts.skipped,
                    "known_failures": counts.known, "max_rel": max_rel(&records),
                })
            })
            .collect();
        let failures: Vec<_> = self
            .records
            .iter()
            .filter(|record| record.outcome() == Outcome::Failed)
            .map(|r| serde_json::json!({"model": r.model, "test": r.test_name(), "reason": r.explanation()}))
            .collect();
        Ok(serde_json::to_string_pretty(&serde_json::json!({
            "run": self.run, "records": self.file, "interrupted": self.interrupted,
            "passed": passed, "failed": failed, "skipped": skipped, "known_failures": known,
            "build_seconds": self.built.as_secs_f64(), "seconds": self.total.as_secs_f64(),
            "cells": cells, "failures": failures,
        }))?)
    }
}

fn max_rel(records: &[&Record]) -> Option<f64> {
    records.iter().filter_map(|record| record.max_rel()).reduce(f64::max)
}

/// The evidence that all of them reached: the weakest of what was run, or why nothing was.
fn evidence(records: &[&Record]) -> String {
    let order = ["failed", "lowered", "emulator", "device", "unsupported", "untested"];
    let failed = records.iter().any(|record| record.outcome() == Outcome::Failed);
    let rank = |record: &&&Record| order.iter().position(|name| *name == record.evidence).unwrap_or(0);
    let counted = records.iter().filter(|record| record.outcome() != Outcome::Known);
    match counted.min_by_key(rank) {
        _ if failed => "failed".into(),
        Some(record) => record.evidence.clone(),
        None => "failed".into(),
    }
}
