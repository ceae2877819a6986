//! One case on one backend: load, run, compare, and the record of it.

use std::path::Path;
use std::time::Instant;

use super::known::KnownFailure;
use super::subject::{Request, Subject};
use super::{Record, cached, lowered, machine, quantized};
use crate::golden::{Case, OutputReport, compare};
use crate::hub::Checkpoint;
use crate::session::{Lowering, millis};
use crate::weights::Weights;
use crate::{AnyModel, Error, Hardware, Precision, Result, engine};

/// What to run a case on.
#[derive(Clone, Copy)]
pub(super) struct Target<'a> {
    pub hardware: Hardware,
    pub precision: Precision,
    pub tolerance: f64,
    pub kind: &'a str,
    /// What is missing of a backend that is not here, whose form of the graph is run on the CPU instead.
    pub absent: Option<&'a str>,
    /// Operators that may run on the CPU.
    pub cpu_fallback: &'a [&'a str],
    /// What `config.json` may not say: fields by their paths, and values in JSON.
    pub refused: &'a [(&'a str, &'a str)],
}

impl Target<'_> {
    /// The hardware that runs the graph: the target, or the CPU in its place.
    pub(super) fn runs_on(&self) -> Hardware {
        if self.absent.is_some() { Hardware::Cpu } else { self.hardware }
    }

    /// How to open a case for it. What is noted about the backend's form of the graph while it runs on the CPU is kept
    /// in the request's `lowering`.
    pub(super) fn request<'r>(&'r self, dir: &'r str, weights: Option<Weights>) -> Request<'r> {
        let here = self.absent.is_none();
        Request {
            checkpoint: dir,
            hardware: Some(self.runs_on()),
            precision: self.precision,
            threads: Some(1),
            weights,
            cpu_fallback: if here { self.cpu_fallback } else { &[] },
            lowering: (!here).then(|| Lowering::to(self.hardware)),
            ..Request::default()
        }
    }
}

/// Runs a golden of a GGUF file by the kernels of its quantized weights.
pub(super) fn by_kernels(subject: Subject, dir: &Path, target: Target<'_>) -> Record {
    recorded(subject, dir, target, |subject, dir, target, record| {
        attempt_with(subject, dir, target, record, None)
    })
}

/// Runs a golden of a GGUF file by the values that its quantized weights stand for.
pub(super) fn by_values(subject: Subject, dir: &Path, target: Target<'_>) -> Record {
    recorded(subject, dir, target, |subject, dir, target, record| {
        let weights = match Weights::open(&Checkpoint::open(&dir.to_string_lossy())?)? {
            Weights::Gguf(tensors) => Weights::Gguf(tensors.dequantized()),
            others => others,
        };
        attempt_with(subject, dir, target, record, Some(weights))
    })
}

/// Runs a golden.
pub(super) fn golden(subject: Subject, dir: &Path, target: Target<'_>) -> Record {
    recorded(subject, dir, target, attempt)
}

/// The record of a case; one that cannot be run is a failed record, not an error.
pub(super) fn recorded(
    subject: Subject,
    dir: &Path,
    target: Target<'_>,
    attempt: fn(Subject, &Path, Target<'_>, &mut Record) -> Result<()>,
) -> Record {
    let name = dir.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let mut record = Record::new(subject.name, &name, target.kind, target.hardware, target.precision);
    let done = attempt(subject, dir, target, &mut record);
    ended(record, done)
}

/// The record of an attempt: a backend that is missing leaves it untested, anything else failed.
pub(super) fn ended(mut record: Record, done: Result<()>) -> Record {
    match done {
        Ok(()) => {}
        Err(Error::Unavailable { problem, help, .. }) => {
            record.evidence = "untested".to_owned();
            record.reason = Some(format!("{problem}; {help}"));
        }
        Err(error) => {
            record.evidence = "failed".to_owned();
            record.reason = Some(error.to_string());
        }
    }
    record
}

fn attempt(subject: Subject, dir: &Path, target: Target<'_>, record: &mut Record) -> Result<()> {
    let weights = Case::open(dir)?.weights()?;
    attempt_with(subject, dir, target, record, weights)
}

fn attempt_with(
    subject: Subject,
    dir: &Path,
    target: Target<'_>,
    record: &mut Record,
    weights: Option<Weights>,
) -> Result<()> {
    let case = Case::open(dir)?;
    record.class = case.meta.class.clone().unwrap_or_default();
    record.versions.extend(case.meta.reference.clone());
    let folder = dir.to_string_lossy();
    let interpolate = case.meta.forward.interpolate_pos_encoding;
    let request = Request { class: case.meta.class.clone(), interpolate, ..target.request(&folder, weights) };
    let lowering = request.lowering.clone();
    let start = Instant::now();
    let loaded = (subject.load)(request)?;
    let load = millis(start);
    record.versions.insert("engine".to_owned(), engine::available(target.runs_on())?);
    record.class = loaded.class().to_owned();
    let start = Instant::now();
    let mut outputs = loaded.run(case.inputs.clone())?;
    record.placement = loaded.placement().counts();
    let timings = loaded.timings();
    let steps =
        [("graph", timings.graph_ms), ("emit", timings.lower_ms), ("load", load), ("first", millis(start))];
    record.ms = steps.map(|(step, ms)| (step.to_owned(), ms)).into();
    record.memory_bytes = machine::private_bytes();
    let exact = match target.precision.is_quantized() {
        true => {
            let request =
                Request { class: case.meta.class.clone(), interpolate, ..quantized::exact(target, &folder) };
            record.accuracy = quantized::accuracy(&outputs, &case.outputs);
            Some(quantized::outputs(subject, Request { weights: case.weights()?, ..request }, &case)?)
        }
        false => None,
    };
    let wanted = exact.as_ref().unwrap_or(&case.outputs);
    record.outputs = compare(&outputs, wanted, case.meta.tolerance(target.tolerance));
    if let Some(cached::Steps { single, together }) = cached::steps(loaded.as_ref(), &case, wanted)? {
        let runs = [(Some(single), "cached"), (together, "cached, several tokens at a time")];
        for (mut outputs, how) in runs.into_iter().filter_map(|(outputs, how)| Some((outputs?, how))) {
            let wanted = wanted.iter().filter(|(name, _)| outputs.contains_key(*name));
            let mut wanted: crate::Values =
                wanted.map(|(name, value)| (name.clone(), value.clone())).collect();
            match exact {
                // What quantized weights leave is not the reference's.
                Some(_) => outputs.retain(|name, _| wanted.contains_key(name)),
                None => wanted.extend(cached::wanted_states(&case)),
            }
            let reports = compare(&outputs, &wanted, case.meta.tolerance(target.tolerance));
            let named =
                |report: OutputReport| OutputReport { name: format!("{} ({how})", report.name), ..report };
            record.outputs.extend(reports.into_iter().map(named));
        }
    }
    let close = record.outputs.iter().all(|output| output.passed);
    let typed = (subject.check_outputs)(loaded.class(), &mut outputs).err().map(|error| error.to_string());
    record.reason = ignored_weights(loaded.as_ref(), &case).or(typed);
    record.passed = close && record.reason.is_none();
    record.evidence = if record.passed { evidence(target.hardware) } else { "failed" }.to_owned();
    if let Some(lowering) = &lowering {
        lowered::conclude(record, target, lowering);
    }
    Ok(())
}

/// A golden lists all the reference's parameters: one that the graph leaves out is an error even where the
/// numbers agree.
fn ignored_weights(loaded: &dyn AnyModel, case: &Case) -> Option<String> {
    let ignored: Vec<_> =
        loaded.unused_weights().iter().filter(|name| case.meta.parameters.contains_key(*name)).collect();
    (!ignored.is_empty()).then(|| format!("the graph does not use the reference's parameters {ignored:?}"))
}

/// How far a pass on a backend counts here.
pub(super) fn evidence(hardware: Hardware) -> &'static str {
    match hardware {
        Hardware::Qnn if cfg!(not(target_arch = "aarch64")) => "emulator",
        // Whoever allows a software device gets no claim of a real one, nor does a headless browser.
        Hardware::Webgpu
            if std::env::var_os("ORT_WEBGPU_EP_ALLOW_SOFTWARE_ADAPTER").is_some()
                || engine::in_browser(hardware) =>
        {
            "emulator"
        }
        _ => "device",
    }
}

/// Known failures turn red when they pass.
pub(super) fn judge(
    mut record: Record,
    listed: &[KnownFailure],
) -> (Record, std::result::Result<(), String>) {
    let known = listed.iter().find(|known| known.is_of(&record.case, record.precision));
    record.expected_failure = known.map(|known| known.reason.clone());
    let verdict = match (known, record.passed) {
        (None, true) | (Some(_), false) => Ok(()),
        // What fails on the hardware may well pass in its place.
        (Some(_), true) if record.evidence == "lowered" => Ok(()),
        (None, false) => Err(record.failure()),
        (Some(known), true) => Err(format!(
            "passes although it is listed as a known failure ({}): take it off the list",
            known.reason
        )),
    };
    (record, verdict)
}
