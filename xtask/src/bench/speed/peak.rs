//! What the machine does at most, and how near to it a model runs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The most that the machine did in the rounds of a model: float32 products, and reading memory.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Peak {
    /// Operations of a float32 matrix product in a second.
    pub flops: f64,
    /// Bytes of memory read in a second.
    pub bytes: f64,
}

/// What a measure takes at least.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Least {
    /// Operations of matrix products and convolutions.
    pub flops: f64,
    /// Bytes of weights that are read.
    pub bytes: f64,
}

impl Least {
    /// What a contender tells of a measure.
    pub fn of(told: &Value) -> Option<Self> {
        Some(Self { flops: told["flops"].as_f64()?, bytes: told["bytes"].as_f64()? })
    }
}

impl Peak {
    /// By the fastest of the rounds, of the work that each probe is.
    pub fn of(rounds_ms: &BTreeMap<String, Vec<f64>>, work: &Value) -> Self {
        let fastest = |probe: &str| rounds_ms.get(probe)?.iter().copied().reduce(f64::min);
        let rate = |probe: &str, of: &str| match (work[probe][of].as_f64(), fastest(probe)) {
            (Some(amount), Some(ms)) => amount / (ms / 1e3),
            _ => f64::NAN,
        };
        Self { flops: rate("products", "flops"), bytes: rate("reading", "bytes") }
    }

    /// The share of a time that the machine needs at least (its roofline): for the operations, or for reading the weights.
    pub fn share(&self, least: &Least, ms: f64) -> f64 {
        (least.flops / self.flops).max(least.bytes / self.bytes) * 1e3 / ms
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_share_is_of_what_takes_longer() {
        let work =
            json!({ "products": { "flops": 1e9, "bytes": 0 }, "reading": { "flops": 0, "bytes": 2e8 } });
        let rounds = [("products", vec![12.0, 10.0]), ("reading", vec![20.0, 25.0])];
        let peak = Peak::of(&rounds.map(|(name, ms)| (name.to_owned(), ms)).into(), &work);
        assert_eq!(peak, Peak { flops: 1e11, bytes: 1e10 });
        // 20 ms of products and 1 ms of reading, then the other way round.
        let least = Least { flops: 2e9, bytes: 1e7 };
        assert!((peak.share(&least, 40.0) - 0.5).abs() < 1e-12);
        let least = Least { flops: 1e8, bytes: 2e8 };
        assert!((peak.share(&least, 25.0) - 0.8).abs() < 1e-12);
        assert_eq!(Least::of(&json!({ "flops": 1 })), None);
    }
}
