//! From files to a first result: a fresh process each time, the median of some.

use std::path::Path;

use anyhow::Result;
use serde::Serialize;
use serde_json::Value;

use super::Shape;
use super::peer::Served;
use super::table::median;

/// Processes that open the checkpoint. The first may read it from the disk, the others find it in memory.
const OPENINGS: usize = 7;

/// What a process that opens a checkpoint and runs it once takes.
#[derive(Debug, Default, Serialize)]
pub struct Opening {
    pub graph_ms: f64,
    pub emit_ms: f64,
    pub load_ms: f64,
    pub first_ms: f64,
    pub private_bytes: f64,
    pub weights_bytes: f64,
    /// Each process's time to its first result, in their order.
    pub each_first_ms: Vec<f64>,
}

/// Opens the checkpoint again and again.
pub fn measure(binary: &Path, checkpoint: &Path, shape: Shape, threads: usize) -> Result<Opening> {
    let mut reports = Vec::with_capacity(OPENINGS);
    for _ in 0..OPENINGS {
        reports.push(Served::opened(binary, checkpoint, shape, threads)?.report.clone());
    }
    Ok(of(&reports))
}

fn of(reports: &[Value]) -> Opening {
    let all = |key: &str| -> Vec<f64> {
        reports.iter().map(|report| report[key].as_f64().unwrap_or(f64::NAN)).collect()
    };
    let middle = |key: &str| median(&all(key));
    Opening {
        graph_ms: middle("graph_ms"),
        emit_ms: middle("emit_ms"),
        load_ms: middle("load_ms"),
        first_ms: middle("first_ms"),
        private_bytes: middle("private_bytes"),
        weights_bytes: middle("weights_bytes"),
        each_first_ms: all("first_ms"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_are_shown_with_what_they_are_of() {
        let report = |first: f64| serde_json::json!({"first_ms": first, "load_ms": 1.0});
        let opening = of(&[report(900.0), report(500.0), report(600.0)]);
        assert_eq!(opening.each_first_ms, [900.0, 500.0, 600.0]);
        assert!((opening.first_ms - 600.0).abs() < 1e-9);
        assert!(opening.private_bytes.is_nan(), "what was not measured keeps no limit");
    }
}
