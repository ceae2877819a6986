//! How long a checkpoint takes to open, and the memory that it then has for itself.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::super::super::table::median;

/// The longest that opening may take, and the most private memory then, where weights are mapped as they are.
const OPEN_MS: f64 = 500.0;
const OPEN_BYTES: f64 = 200e6;
/// The same where they are brought into another form, in parts of the file.
const UNPACK_MS: f64 = 1500.0;
const UNPACK_SHARE: f64 = 1.1;

/// A checkpoint that is opened with its weights left in their mapped pages, or unpacked.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Opened {
    pub model: String,
    pub load_ms: f64,
    pub private_bytes: f64,
    pub weights_bytes: f64,
    /// Whether weights are brought into another form: what kernels take of a quantized file.
    #[serde(default)]
    pub unpacks: bool,
}

impl Opened {
    pub fn of(model: &str, unpacks: bool, reports: &[Value]) -> Self {
        let middle = |key: &str| {
            median(&reports.iter().map(|report| report[key].as_f64().unwrap_or(f64::NAN)).collect::<Vec<_>>())
        };
        Self {
            model: model.to_owned(),
            load_ms: middle("load_ms"),
            private_bytes: middle("loaded_bytes"),
            weights_bytes: middle("weights_bytes"),
            unpacks,
        }
    }

    /// The longest that it may take, and the most private memory.
    fn most(&self) -> (f64, f64) {
        if self.unpacks { (UNPACK_MS, UNPACK_SHARE * self.weights_bytes) } else { (OPEN_MS, OPEN_BYTES) }
    }

    pub(super) fn met(&self) -> bool {
        let (ms, bytes) = self.most();
        self.load_ms <= ms && self.private_bytes <= bytes
    }

    pub(super) fn text(&self) -> String {
        let (ms, bytes) = self.most();
        format!(
            "{} opens in {:.0} ms with {:.0} MB of private memory for {:.0} MB of weights (at most {ms:.0} ms and \
             {:.0} MB): {}",
            self.model,
            self.load_ms,
            self.private_bytes / 1e6,
            self.weights_bytes / 1e6,
            bytes / 1e6,
            if self.met() { "met" } else { "missed" }
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_unpacks_has_limits_of_its_own() {
        let report = serde_json::json!({"load_ms": 900.0, "loaded_bytes": 680e6, "weights_bytes": 636e6});
        assert!(Opened::of("Llama 1.1B", true, std::slice::from_ref(&report)).met());
        assert!(!Opened::of("Llama 1.1B", false, &[report]).met());
    }
}
