//! Bins of metric depth, as configurations list them.

use serde::{Deserialize, Serialize};

/// The bins of a head of metric depth, `{"name": "nyu", "n_bins": 64, "min_depth": 0.001, "max_depth": 10.0}`
/// (`bin_configurations` of `ZoeDepthConfig`).
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct DepthBins {
    /// The head's name, where there are several.
    #[serde(default)]
    pub name: Option<String>,
    /// How many bins there are.
    pub n_bins: usize,
    /// The least depth, metres.
    pub min_depth: f64,
    /// The greatest depth, metres.
    pub max_depth: f64,
}

impl Default for DepthBins {
    fn default() -> Self {
        Self { name: None, n_bins: 64, min_depth: 1e-3, max_depth: 10.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_may_be_left_out() {
        let read = |text: &str| serde_json::from_str::<DepthBins>(text).map_err(|error| error.to_string());
        let bins = read(r#"{"n_bins": 64, "min_depth": 0.001, "max_depth": 10.0}"#).unwrap();
        assert_eq!(bins, DepthBins::default());
        let named = read(r#"{"name": "kitti", "n_bins": 8, "min_depth": 1, "max_depth": 80}"#).unwrap();
        assert_eq!((named.name.as_deref(), named.n_bins, named.max_depth), (Some("kitti"), 8, 80.0));
        assert!(read(r#"{"n_bins": 64}"#).unwrap_err().contains("min_depth"));
    }
}
