//! The report as Markdown, to read in a repository.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::time::{Duration, UNIX_EPOCH};

use indexmap::IndexMap;

use super::gather::{Cell, Report};
use super::groups::Group;
use super::precisions;
use crate::table::{Table, difference};

pub fn text(report: &Report) -> String {
    let mut text = String::from("# What runs where\n\n");
    let _ = writeln!(text, "{}\n", provenance(report));
    text.push_str(
        "A cell is the evidence observed: **device** (ran on that hardware), **emulator** (the vendor's emulator or a \
         software device), **lowered** (no such hardware at hand: lowered for it, every operator in its published \
         table, right numbers on the CPU), **failed**, **unsupported**, or `-` (not tested).\n\n",
    );
    section(&mut text, "Models", &matrix(report));
    let quantized = precisions::table(report);
    if !quantized.is_empty() {
        text.push_str(
            "## Quantized weights\n\nDeclared, observed, and in brackets how near the reference's outputs: the relative error \
             (median of the cases' worst outputs), of logits the Kullback-Leibler divergence and how often the first choice is \
             the reference's. Goldens are small and random: a real model loses less.\n\n",
        );
        let _ = writeln!(text, "{}", quantized.dense_markdown());
    }
    section(&mut text, "Architecture types: declared, and observed", &groups(report, &report.architectures));
    section(&mut text, "Coverage by category: declared, and observed", &groups(report, &report.categories));
    section(&mut text, "The reference's architectures", &covered(report));
    section(&mut text, "Not yet", &not_yet(report));
    section(&mut text, "Asked for by name, and not the reference's", &elsewhere(report));
    section(&mut text, "Failures", &failures(report));
    section(&mut text, "Gaps", &gaps(report));
    section(&mut text, "Largest relative difference", &differences(report));
    section(&mut text, "Nodes", &nodes(report));
    let _ = writeln!(text, "{}\n", where_nodes_ran(report));
    section(&mut text, "Load ms, first run ms, memory MB", &times(report));
    text
}

/// When and where the records were made.
pub fn provenance(report: &Report) -> String {
    let Some(time) = report.as_of else { return "No records: declarations only.".into() };
    let time = humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_secs(time));
    let versions: Vec<_> = report
        .versions
        .iter()
        .map(|(name, versions)| format!("{name} {}", versions.iter().cloned().collect::<Vec<_>>().join(", ")))
        .collect();
    let mut text = format!(
        "{} run(s), the newest record of {time}, on {}.",
        report.runs.len(),
        report.machines.join("; ")
    );
    if !versions.is_empty() {
        let _ = write!(text, " Versions: {}.", versions.join("; "));
    }
    text
}

fn section(text: &mut String, title: &str, table: &Table) {
    if !table.is_empty() {
        let _ = writeln!(text, "## {title}\n\n{}", table.dense_markdown());
    }
}

fn columns(first: &[&str], report: &Report) -> Table {
    Table::with_columns(first.iter().chain(&report.backends).map(|&name| name.to_owned()).collect())
}

fn matrix(report: &Report) -> Table {
    let mut table = columns(&["model", "category", "architecture"], report);
    for model in &report.models {
        let names = [&model.model, &model.category, &model.architecture].map(Clone::clone);
        table.row(names.into_iter().chain(model.cells.iter().map(shown)));
    }
    table
}

fn shown(cell: &Cell) -> String {
    let ran = cell.passed + cell.failed + cell.known_failures;
    let main = match cell.evidence.as_str() {
        "untested" => return "-".into(),
        "unsupported" => return "unsupported".into(),
        level => format!("{level} {}/{ran}", cell.passed),
    };
    let others = cell.precisions.iter().filter(|(name, level)| {
        **name != cell.precision && *level != "untested" && !precisions::is_quantized(name)
    });
    others.fold(main, |text, (name, level)| format!("{text}, {name} {level}"))
}

fn groups(report: &Report, groups: &[Group]) -> Table {
    let mut table = columns(&["name", "models"], report);
    for group in groups {
        let cells = group.cells.iter().map(|cell| {
            let seen = observed(&cell.observed);
            match (cell.declared.is_empty(), seen.is_empty()) {
                (true, _) => seen,
                (false, true) => cell.declared.clone(),
                (false, false) => format!("{}: {seen}", cell.declared),
            }
        });
        table.row([group.name.clone(), group.models.to_string()].into_iter().chain(cells));
    }
    table
}

/// "2 device, 1 failed"; untested models are not mentioned.
fn observed(counts: &BTreeMap<String, usize>) -> String {
    let order = ["device", "emulator", "lowered", "failed"];
    let some = order.iter().filter_map(|level| counts.get(*level).map(|count| format!("{count} {level}")));
    some.collect::<Vec<_>>().join(", ")
}

fn covered(report: &Report) -> Table {
    let mut table =
        Table::new(["category", "reference", "models", "proven", "failing", "not run", "not yet"]);
    for row in &report.covered {
        let counts = [row.reference, row.models, row.proven, row.failing, row.not_run, row.not_yet()];
        table.row([row.category.clone()].into_iter().chain(counts.map(|count| count.to_string())));
    }
    table
}

fn not_yet(report: &Report) -> Table {
    let mut table = Table::new(["category", "architectures", "reason"]);
    for row in &report.covered {
        for entry in &row.reasons {
            table.row([row.category.clone(), entry.names.join(", "), entry.reason.clone()]);
        }
    }
    table
}

fn elsewhere(report: &Report) -> Table {
    let mut table = Table::new(["architecture", "published implementation", "reason"]);
    for entry in &report.elsewhere {
        let implementation = entry.implementation.clone().unwrap_or_else(|| "none".to_owned());
        table.row([entry.title.clone(), implementation, entry.reason.clone()]);
    }
    table
}

/// A row for each case and reason, with all backends that have it.
fn failures(report: &Report) -> Table {
    let mut table = Table::new(["model", "case", "where", "outcome", "reason"]);
    for model in &report.models {
        let mut rows: IndexMap<_, Vec<String>> = IndexMap::new();
        for cell in &model.cells {
            for case in cell.cases.iter().filter(|case| matches!(case.outcome, "failed" | "known failure")) {
                let key = (&case.case, case.outcome, case.reason.clone().unwrap_or_default());
                rows.entry(key).or_default().push(format!("{} {}", cell.backend, case.precision));
            }
        }
        for ((case, outcome, reason), places) in rows {
            table.row([model.model.clone(), case.clone(), places.join(", "), outcome.to_owned(), reason]);
        }
    }
    table
}

fn gaps(report: &Report) -> Table {
    let mut table = Table::new(["model", "backend", "gap"]);
    for gap in &report.gaps {
        table.row([gap.model.clone(), gap.backend.to_owned(), gap.what.clone()]);
    }
    table
}

/// A row a model of what its cells say; nothing where no case ran.
fn numbers(report: &Report, say: impl Fn(&Cell) -> String) -> Table {
    let mut table = columns(&["model"], report);
    let ran = |cell: &Cell| cell.passed + cell.failed + cell.known_failures > 0;
    for model in report.models.iter().filter(|model| model.cells.iter().any(ran)) {
        let cells = model.cells.iter().map(|cell| if ran(cell) { say(cell) } else { "-".into() });
        table.row([model.model.clone()].into_iter().chain(cells));
    }
    table
}

fn differences(report: &Report) -> Table {
    numbers(report, |cell| cell.max_rel.map_or_else(|| "-".into(), difference))
}

/// The devices that ran nodes of a backend's models, in the order in which its cells count them.
fn devices(report: &Report) -> BTreeMap<&'static str, BTreeSet<&str>> {
    let cells = || report.models.iter().flat_map(|model| &model.cells);
    let of = |backend: &'static str| {
        cells()
            .filter(move |cell| cell.backend == backend)
            .flat_map(|cell| cell.placement.keys())
            .map(String::as_str)
    };
    report.backends.iter().map(|backend| (*backend, of(backend).collect())).collect()
}

fn nodes(report: &Report) -> Table {
    let devices = devices(report);
    numbers(report, |cell| {
        let counts =
            devices[cell.backend].iter().map(|device| cell.placement.get(*device).copied().unwrap_or(0));
        let text = counts.map(|count| count.to_string()).collect::<Vec<_>>().join(" + ");
        if text.is_empty() { "-".into() } else { text }
    })
}

fn where_nodes_ran(report: &Report) -> String {
    let some = devices(report).into_iter().filter(|(_, devices)| !devices.is_empty());
    let named =
        some.map(|(backend, on)| format!("{backend} {}", on.into_iter().collect::<Vec<_>>().join(" + ")));
    format!(
        "Nodes of all cases by the device that the engine says ran them: {}.",
        named.collect::<Vec<_>>().join("; ")
    )
}

fn times(report: &Report) -> Table {
    numbers(report, |cell| {
        let ms = |value: Option<f64>| value.map_or_else(|| "-".into(), |value| format!("{value:.1}"));
        let memory = cell.memory_bytes.map_or_else(|| "-".into(), |bytes| (bytes / 1_000_000).to_string());
        format!("{} {} {memory}", ms(cell.load_ms), ms(cell.first_ms))
    })
}
