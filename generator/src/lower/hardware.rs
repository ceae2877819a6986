//! The hardware matrix of a model: its architecture type's, with the spec's own words in place.

use serde::Serialize;

use crate::spec::architectures::ArchitectureType;
use crate::spec::document::Problem;
use crate::spec::hardware::HardwareSpecs;
use crate::spec::load::Resolved;
use crate::spec::model::ModelHardware;
use crate::spec::vocabulary::{Hardware, Support};
use crate::spec::yaml::{Data, Node};

/// One backend as templates see it.
#[derive(Clone, Debug, Serialize)]
pub struct Backend {
    /// Its name in specs: `cpu`.
    pub name: String,
    /// Its place in the matrices.
    pub index: usize,
    /// Its name in the runtime: `Cpu`.
    #[serde(rename = "type")]
    pub type_name: String,
    /// Its name in prose.
    pub title: String,
    /// `full`, `limited` or `no`.
    pub support: String,
    /// The runtime's variant for that.
    pub support_type: String,
    /// Whether the model runs there at all.
    pub supported: bool,
    /// Why it is not fully supported; empty otherwise.
    pub reason: String,
    /// Expected speed.
    pub performance: String,
    /// Expected memory use.
    pub memory: String,
    /// What to know before using it.
    pub notes: String,
    /// Optimizations that apply.
    pub optimizations: Vec<String>,
    /// Number formats and their bounds, where one is the model's own.
    pub tolerances: Vec<Bound>,
    /// Operators that may run on the CPU.
    pub cpu_fallback_ops: Vec<String>,
}

/// How far results may be off.
#[derive(Clone, Debug, Serialize)]
pub struct Bound {
    /// The runtime's variant for the number format.
    pub precision: String,
    /// The bound as a Rust literal.
    pub relative: String,
    /// Why it is not the default one; empty otherwise.
    pub reason: String,
    /// Whether tests run in it only where it is asked for.
    pub asked: bool,
}

/// Lowers the matrix, in the order of the matrices.
pub fn lower(
    model: &Resolved,
    kind: &ArchitectureType,
    specs: &HardwareSpecs,
    problems: &mut Vec<Problem>,
) -> Vec<Backend> {
    let none = ModelHardware::default();
    let mut backends = vec![];
    for hardware in Hardware::ALL {
        let Some(declared) = kind.hardware.get(&hardware) else { continue };
        let own = model.spec.hardware.get(&hardware).unwrap_or(&none);
        let entry = declared.overridden(&own.matrix());
        if entry.support != Support::Full
            && entry.reason.as_ref().is_none_or(|reason| reason.trim().is_empty())
        {
            let node = model.node.get("hardware").and_then(|node| node.get(hardware.name()));
            let at = node.map_or(&model.node.at, |node| &node.at);
            let message =
                "support that is not full needs a `reason`: users read it when they ask for this backend";
            problems.push(at.problem(format!("hardware.{hardware}.reason"), message));
        }
        let spec = specs.get(hardware);
        let differs = spec.filter(|_| !own.tolerances.is_empty());
        let tolerances = differs.into_iter().flat_map(|spec| &spec.precisions).map(|(precision, bound)| {
            let (relative, reason) = match own.tolerances.get(precision) {
                Some(bound) => (bound.relative, bound.reason.clone()),
                None => (bound.relative, bound.reason.clone().unwrap_or_default()),
            };
            let (precision, relative) = (precision.type_name().to_owned(), format!("{relative:?}"));
            Bound { precision, relative, reason, asked: bound.asked }
        });
        backends.push(Backend {
            name: hardware.name().to_owned(),
            index: backends.len(),
            type_name: hardware.type_name().to_owned(),
            title: spec.map_or_else(|| hardware.name().to_owned(), |spec| spec.title.clone()),
            support: support(entry.support).to_lowercase(),
            support_type: support(entry.support).to_owned(),
            supported: entry.support != Support::No,
            reason: entry.reason.unwrap_or_default(),
            performance: entry.performance.unwrap_or_default(),
            memory: entry.memory.unwrap_or_default(),
            notes: entry.notes.unwrap_or_default(),
            optimizations: entry.optimizations,
            tolerances: tolerances.collect(),
            cpu_fallback_ops: own.cpu_fallback_ops.clone(),
        });
    }
    blank_texts(model, problems);
    backends
}

/// Reasons that say nothing.
fn blank_texts(model: &Resolved, problems: &mut Vec<Problem>) {
    let blank = |node: &Node| matches!(&node.data, Data::Text(text) if text.trim().is_empty());
    for entry in model.node.get("hardware").map_or(&[][..], Node::entries) {
        let bounds = entry.value.get("tolerances").map_or(&[][..], Node::entries);
        let reasons = bounds.iter().map(|entry| &entry.value);
        for reason in reasons.filter_map(|node| node.get("reason")).filter(|reason| blank(reason)) {
            problems
                .push(reason.at.problem(format!("hardware.{}", entry.key), "the `reason` is empty; say why"));
        }
    }
}

fn support(support: Support) -> &'static str {
    match support {
        Support::Full => "Full",
        Support::Limited => "Limited",
        Support::No => "No",
    }
}
