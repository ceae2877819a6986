//! The form of a backend that is not here, run by another: proof of all but the hardware.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::Hardware;
use crate::lower::{Lowered, fallen};

/// Which backend's form to give a graph, and what was found when it was held against the backend's operators.
#[derive(Clone, Debug)]
pub(crate) struct Lowering {
    pub hardware: Hardware,
    fallen: Arc<Mutex<BTreeMap<String, (usize, String)>>>,
}

impl Lowering {
    pub(crate) fn to(hardware: Hardware) -> Self {
        Self { hardware, fallen: Arc::default() }
    }

    /// Notes the operators that the backend would leave to the CPU.
    pub(super) fn check(&self, lowered: &Lowered) {
        let found = fallen(&lowered.model, self.hardware);
        self.fallen.lock().unwrap_or_else(PoisonError::into_inner).extend(found);
    }

    #[cfg(test)]
    pub(crate) fn note(&self, operator: &str, count: usize, reason: &str) {
        let mut fallen = self.fallen.lock().unwrap_or_else(PoisonError::into_inner);
        fallen.insert(operator.to_owned(), (count, reason.to_owned()));
    }

    /// What was noted, but for operators that may run on the CPU: `Gather (3: not in its table)`.
    pub(crate) fn fallen(&self, allowed: &[&str]) -> Vec<String> {
        let fallen = self.fallen.lock().unwrap_or_else(PoisonError::into_inner);
        let fallen = fallen.iter().filter(|(operator, _)| !allowed.contains(&operator.as_str()));
        fallen.map(|(operator, (count, reason))| format!("{operator} ({count}: {reason})")).collect()
    }
}
