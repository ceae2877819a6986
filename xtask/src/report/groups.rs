//! Models by kind: how many are declared and observed on each backend, and where the two differ.

use std::collections::BTreeMap;

use serde::Serialize;
use weft_generator::spec::architectures::{ArchitectureType, Category};
use weft_generator::spec::hardware::Hardware;

use super::gather::{Model, support};
use crate::specs::Catalog;

/// Models of one kind: how many there are, and for each backend how many are declared and observed.
#[derive(Debug, Serialize)]
pub struct Group {
    pub name: String,
    pub title: String,
    pub models: usize,
    pub cells: Vec<GroupCell>,
}

#[derive(Debug, Serialize)]
pub struct GroupCell {
    pub backend: &'static str,
    /// What the architecture type declares, or the share of models that seeds declare for a category.
    pub declared: String,
    /// Models by the evidence they reached.
    pub observed: BTreeMap<String, usize>,
}

/// Something declared that was not observed so.
#[derive(Debug, Serialize)]
pub struct Gap {
    pub model: String,
    pub backend: &'static str,
    pub what: String,
}

pub(super) fn architectures(catalog: &Catalog, models: &[Model]) -> Vec<Group> {
    let kinds = &catalog.architectures.architectures;
    let row = |(name, kind): (&String, &ArchitectureType)| {
        let declared = |hardware: Hardware| {
            kind.hardware.get(&hardware).map_or_else(String::new, |entry| support(entry.support).to_owned())
        };
        group(name, &kind.title, models, |model| model.architecture == *name, declared)
    };
    kinds.iter().map(row).collect()
}

pub(super) fn categories(catalog: &Catalog, models: &[Model]) -> Vec<Group> {
    let kinds = &catalog.architectures.categories;
    let row = |(name, kind): (&String, &Category)| {
        let declared = |hardware: Hardware| {
            kind.declared_coverage.get(&hardware).map_or_else(String::new, |share| format!("{share} %"))
        };
        group(name, &kind.title, models, |model| model.category == *name, declared)
    };
    kinds.iter().map(row).collect()
}

fn group(
    name: &str,
    title: &str,
    models: &[Model],
    belongs: impl Fn(&Model) -> bool,
    declared: impl Fn(Hardware) -> String,
) -> Group {
    let own: Vec<_> = models.iter().filter(|model| belongs(model)).collect();
    let cells = Hardware::ALL.into_iter().enumerate().map(|(index, hardware)| {
        let mut observed = BTreeMap::new();
        for model in &own {
            *observed.entry(model.cells[index].evidence.clone()).or_default() += 1;
        }
        GroupCell { backend: hardware.name(), declared: declared(hardware), observed }
    });
    Group { name: name.into(), title: title.into(), models: own.len(), cells: cells.collect() }
}

pub(super) fn gaps(models: &[Model]) -> Vec<Gap> {
    let mut gaps = Vec::new();
    for model in models {
        for cell in &model.cells {
            let seen = matches!(cell.evidence.as_str(), "device" | "emulator" | "lowered");
            let what = match (cell.declared.support, cell.evidence.as_str()) {
                ("no", _) if seen => {
                    "declared unsupported, but observed to work: correct the spec".to_owned()
                }
                ("full" | "limited", "untested") if cell.cases.is_empty() => "declared, never run".to_owned(),
                ("full" | "limited", "untested") => {
                    format!(
                        "declared, not run: {}",
                        cell.reasons.first().map_or("no reason given", String::as_str)
                    )
                }
                ("full" | "limited", "failed") => format!("declared {}, but fails", cell.declared.support),
                _ => String::new(),
            };
            let others =
                cell.precisions.iter().filter(|(name, level)| **name != cell.precision && *level == "failed");
            let others = others.map(|(name, _)| format!("{} works, but {name} fails", cell.precision));
            for what in Some(what).filter(|what| !what.is_empty()).into_iter().chain(others) {
                gaps.push(Gap { model: model.model.clone(), backend: cell.backend, what });
            }
        }
    }
    gaps
}
