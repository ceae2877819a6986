//! Evidence without the hardware: the graph in the backend's form, held against the operators that the backend
//! publishes, and run on the CPU.

use super::Record;
use super::run::Target;
use crate::session::Lowering;
use crate::{Error, Hardware, engine, lower};

/// Whether a backend is here.
#[derive(Clone, Debug)]
pub(super) enum Presence {
    /// It is.
    Here,
    /// It is not, but publishes its operators; with what is missing.
    Published(String),
    /// It is not; with what is missing.
    Absent(String),
}

impl Presence {
    /// Looks for the backend's library and device.
    pub(super) fn of(hardware: Hardware) -> Self {
        let missing = match engine::available(hardware) {
            Ok(_) => return Self::Here,
            Err(Error::Unavailable { problem, help, .. }) => format!("{problem}; {help}"),
            Err(other) => other.to_string(),
        };
        match lower::source(hardware) {
            Some(_) => Self::Published(missing),
            None => Self::Absent(missing),
        }
    }

    /// What is missing of a backend that publishes its operators.
    pub(super) fn published(&self) -> Option<&str> {
        match self {
            Self::Published(missing) => Some(missing),
            _ => None,
        }
    }
}

/// What a run of the backend's form on the CPU says of the backend: never more than `lowered`.
pub(super) fn conclude(record: &mut Record, target: Target<'_>, lowering: &Lowering) {
    let hardware = target.hardware;
    let missing = target.absent.unwrap_or_default();
    let unsupported_ops = lowering.unsupported_ops(target.cpu_fallback);
    if !unsupported_ops.is_empty() {
        record.passed = false;
        let source = lower::source(hardware).unwrap_or_default();
        let unsupported_ops = unsupported_ops.join(", ");
        record.reason =
            Some(format!("no {hardware} here, which would leave {unsupported_ops} to the CPU, by {source}"));
    } else if record.passed {
        record.reason = Some(format!("no {hardware} here: {missing}"));
    } else if record.reason.is_none() {
        record.reason = Some(format!("no {hardware} here; its form of the graph was run on the CPU"));
    }
    record.evidence = if record.passed { "lowered" } else { "failed" }.to_owned();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Precision;

    fn target(cpu_fallback: &'static [&'static str]) -> Target<'static> {
        Target {
            hardware: Hardware::Cuda,
            precision: Precision::F32,
            tolerance: 1e-3,
            kind: "golden",
            absent: Some("there is no driver"),
            cpu_fallback,
            refused: &[],
        }
    }

    fn record(passed: bool) -> Record {
        let record = Record::new("bert", "base", "golden", Hardware::Cuda, Precision::F32);
        Record { passed, evidence: "device".to_owned(), ..record }
    }

    #[test]
    fn a_pass_on_the_cpu_is_no_more_than_lowered() {
        let mut record = record(true);
        conclude(&mut record, target(&[]), &Lowering::to(Hardware::Cuda));
        assert_eq!((record.evidence.as_str(), record.passed), ("lowered", true));
        assert_eq!(record.reason.as_deref(), Some("no cuda here: there is no driver"));
    }

    #[test]
    fn wrong_numbers_fail() {
        let mut record = record(false);
        conclude(&mut record, target(&[]), &Lowering::to(Hardware::Cuda));
        assert_eq!((record.evidence.as_str(), record.passed), ("failed", false));
    }

    #[test]
    fn an_operator_that_falls_back_fails_unless_the_spec_allows_it() {
        let lowering = Lowering::to(Hardware::Cuda);
        lowering.note("Identity", 2, "no kernel for version 23 of it");
        let mut refused = record(true);
        conclude(&mut refused, target(&[]), &lowering);
        assert_eq!((refused.evidence.as_str(), refused.passed), ("failed", false));
        let reason = refused.reason.unwrap_or_default();
        assert!(reason.contains("Identity (2: no kernel for version 23 of it)"), "{reason}");
        let mut allowed = record(true);
        conclude(&mut allowed, target(&["Identity"]), &lowering);
        assert_eq!(allowed.evidence, "lowered");
    }
}
