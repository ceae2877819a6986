//! The reference's architectures by category: how many there are as models, how those do, and why the rest are none.

use indexmap::IndexSet;
use serde::Serialize;
use weft_generator::spec::not_yet::Entry;

use super::gather::Model;
use crate::specs::Catalog;

/// One category.
#[derive(Debug, Serialize)]
pub struct Covered {
    pub category: String,
    /// The reference's architectures.
    pub reference: usize,
    /// Models here; some are parts of the reference's, or are filed elsewhere than these.
    pub models: usize,
    /// Models that were observed to work on some backend and to fail on none.
    pub proven: usize,
    /// Models that fail on some backend.
    pub failing: usize,
    pub not_run: usize,
    pub reasons: Vec<Reason>,
}

/// Architectures that are no models here, for one reason.
#[derive(Debug, Serialize)]
pub struct Reason {
    pub names: Vec<String>,
    /// Their names in prose, where they have any.
    pub titles: Vec<String>,
    pub reason: String,
}

impl Covered {
    /// How many architectures are no models.
    pub fn not_yet(&self) -> usize {
        self.reasons.iter().map(|reason| reason.names.len()).sum()
    }
}

/// The categories of models in their order, then those that only the reference has.
pub(super) fn covered(catalog: &Catalog, models: &[Model]) -> Vec<Covered> {
    let list = &catalog.not_yet;
    let categories = catalog.architectures.categories.keys().chain(list.reference.keys());
    categories.collect::<IndexSet<_>>().into_iter().map(|name| category(catalog, name, models)).collect()
}

fn category(catalog: &Catalog, name: &str, models: &[Model]) -> Covered {
    let list = &catalog.not_yet;
    let own: Vec<_> = models.iter().filter(|model| model.category == name).collect();
    let count = |state| own.iter().filter(|model| self::state(model) == state).count();
    Covered {
        category: name.to_owned(),
        reference: list.reference.get(name).map_or(0, Vec::len),
        models: own.len(),
        proven: count(State::Proven),
        failing: count(State::Failing),
        not_run: count(State::NotRun),
        reasons: list
            .not_yet
            .get(name)
            .into_iter()
            .flatten()
            .filter_map(|entry| reason(catalog, entry))
            .collect(),
    }
}

/// What a reason is given for; none when all that it was given for are models by now.
fn reason(catalog: &Catalog, entry: &Entry) -> Option<Reason> {
    let names: Vec<_> =
        entry.names().filter(|name| catalog.of_type(name).is_none()).map(str::to_owned).collect();
    let titles = entry.title.iter().cloned().collect();
    (!names.is_empty()).then(|| Reason { names, titles, reason: entry.reason.clone() })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Proven,
    Failing,
    NotRun,
}

/// What all backends together show.
fn state(model: &Model) -> State {
    let any = |levels: &[&str]| model.cells.iter().any(|cell| levels.contains(&cell.evidence.as_str()));
    if any(&["failed"]) {
        State::Failing
    } else if any(&["device", "emulator", "lowered"]) {
        State::Proven
    } else {
        State::NotRun
    }
}
