//! The form of a backend that is not here, run by another: proof of all but the hardware.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::Hardware;
use crate::lower::{Lowered, unsupported_ops};
use crate::onnx::Model;

/// Operators, how often each occurs, and why the backend would leave it to the CPU.
type UnsupportedOps = BTreeMap<String, (usize, String)>;

/// Which backend's form to give a graph, and what was found when it was held against the backend's operators.
#[derive(Clone, Debug)]
pub(crate) struct Lowering {
    pub hardware: Hardware,
    /// What holds a model against the tables of operators; programs that never ask for it are linked without them.
    compare: fn(&Model, Hardware) -> UnsupportedOps,
    unsupported_ops: Arc<Mutex<UnsupportedOps>>,
}

impl Lowering {
    pub(crate) fn to(hardware: Hardware) -> Self {
        Self { hardware, compare: unsupported_ops, unsupported_ops: Arc::default() }
    }

    /// Notes the operators that the backend would leave to the CPU.
    pub(super) fn check(&self, lowered: &Lowered) {
        let found = (self.compare)(&lowered.model, self.hardware);
        self.unsupported_ops.lock().unwrap_or_else(PoisonError::into_inner).extend(found);
    }

    #[cfg(test)]
    pub(crate) fn note(&self, operator: &str, count: usize, reason: &str) {
        let mut unsupported_ops = self.unsupported_ops.lock().unwrap_or_else(PoisonError::into_inner);
        unsupported_ops.insert(operator.to_owned(), (count, reason.to_owned()));
    }

    /// What was noted, but for operators that may run on the CPU: `Gather (3: not in its table)`.
    pub(crate) fn unsupported_ops(&self, allowed: &[&str]) -> Vec<String> {
        let unsupported_ops = self.unsupported_ops.lock().unwrap_or_else(PoisonError::into_inner);
        let unsupported_ops =
            unsupported_ops.iter().filter(|(operator, _)| !allowed.contains(&operator.as_str()));
        unsupported_ops.map(|(operator, (count, reason))| format!("{operator} ({count}: {reason})")).collect()
    }
}
