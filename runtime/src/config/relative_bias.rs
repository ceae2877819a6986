//! Relative attention biases, as configurations list them.

use serde::{Deserialize, Serialize};

/// More than so far apart, and in more buckets, nothing is: tables of distances are made of what a file says.
const MOST: usize = 1 << 20;

/// A relative attention bias of an encoder, `{"type": "horizontal", "max_distance": 100}` (`relative_bias_args` of `UdopConfig`,
/// `RelativePositionBiasBase`).
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(try_from = "Given")]
pub struct RelativeBias {
    /// What distances are of.
    #[serde(rename = "type")]
    pub kind: RelativeBiasKind,
    /// Buckets of distances.
    pub relative_attention_num_buckets: usize,
    /// The largest distance that buckets distinguish.
    pub max_distance: usize,
    /// What distances are multiplied by.
    pub scaling_factor: f64,
    /// Whether there are buckets for distances forwards and backwards.
    pub bidirectional: bool,
}

/// What the distances of a [`RelativeBias`] are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RelativeBiasKind {
    /// Positions in the sequence (`RelativePositionBias1D`).
    #[serde(rename = "1d")]
    Sequence,
    /// The middles of boxes across the page (`RelativePositionBiasHorizontal`).
    Horizontal,
    /// The middles of boxes down the page (`RelativePositionBiasVertical`).
    Vertical,
}

/// As a file has it: what it leaves out is the class's default.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Given {
    #[serde(rename = "type")]
    kind: RelativeBiasKind,
    relative_attention_num_buckets: Option<usize>,
    max_distance: Option<usize>,
    scaling_factor: Option<f64>,
    bidirectional: Option<bool>,
}

impl RelativeBias {
    /// One with its class's defaults.
    pub fn new(kind: RelativeBiasKind) -> Self {
        let (max_distance, scaling_factor) = match kind {
            RelativeBiasKind::Sequence => (128, 1.0),
            RelativeBiasKind::Horizontal | RelativeBiasKind::Vertical => (100, 100.0),
        };
        Self { kind, relative_attention_num_buckets: 32, max_distance, scaling_factor, bidirectional: true }
    }

    /// Those that a configuration without a list has: in the sequence, across and down the page.
    pub fn defaults() -> Vec<Self> {
        let kinds = [RelativeBiasKind::Sequence, RelativeBiasKind::Horizontal, RelativeBiasKind::Vertical];
        kinds.map(Self::new).to_vec()
    }
}

impl TryFrom<Given> for RelativeBias {
    type Error = String;

    fn try_from(given: Given) -> Result<Self, String> {
        let default = Self::new(given.kind);
        let bias = Self {
            kind: given.kind,
            relative_attention_num_buckets: given
                .relative_attention_num_buckets
                .unwrap_or(default.relative_attention_num_buckets),
            max_distance: given.max_distance.unwrap_or(default.max_distance),
            scaling_factor: given.scaling_factor.unwrap_or(default.scaling_factor),
            bidirectional: given.bidirectional.unwrap_or(default.bidirectional),
        };
        for (name, value, least) in [
            ("relative_attention_num_buckets", bias.relative_attention_num_buckets, 4),
            ("max_distance", bias.max_distance, 2),
        ] {
            if !(least..=MOST).contains(&value) {
                return Err(format!("`{name}` is {value}, not {least} to {MOST}"));
            }
        }
        // As the reference has it: positions are whole numbers, and boxes are fractions of a page.
        let in_sequence = bias.kind == RelativeBiasKind::Sequence;
        match bias.scaling_factor {
            factor if in_sequence && factor != 1.0 => {
                Err(format!("`scaling_factor` is {factor}, but positions in the sequence are not scaled"))
            }
            factor if !in_sequence && (factor <= 1.0 || !factor.is_finite()) => {
                Err(format!("`scaling_factor` is {factor}, but distances on the page need more than 1"))
            }
            _ => Ok(bias),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_is_the_default_of_the_kind() {
        let read = |text: &str| serde_json::from_str::<RelativeBias>(text).map_err(|error| error.to_string());
        let [sequence, across, _] = RelativeBias::defaults().try_into().unwrap();
        assert_eq!(read(r#"{"type": "1d"}"#).unwrap(), sequence);
        assert_eq!((sequence.max_distance, across.max_distance, across.scaling_factor), (128, 100, 100.0));
        let given = read(r#"{"type": "vertical", "max_distance": 50, "bidirectional": false}"#).unwrap();
        let down = RelativeBias::new(RelativeBiasKind::Vertical);
        assert_eq!(given, RelativeBias { max_distance: 50, bidirectional: false, ..down });
        let written = serde_json::to_string(&given).unwrap();
        assert_eq!(read(&written).unwrap(), given);
    }

    #[test]
    fn what_the_reference_refuses_or_does_otherwise_is_refused() {
        let problem = |text: &str| serde_json::from_str::<RelativeBias>(text).unwrap_err().to_string();
        assert!(problem(r#"{"type": "2d"}"#).contains("2d"));
        assert!(problem(r#"{"type": "1d", "prefix_bucket": true}"#).contains("prefix_bucket"));
        assert!(problem(r#"{"type": "1d", "scaling_factor": 2}"#).contains("are not scaled"));
        assert!(problem(r#"{"type": "horizontal", "scaling_factor": 1}"#).contains("more than 1"));
        assert!(problem(r#"{"type": "vertical", "max_distance": 4000000000}"#).contains("4000000000"));
        assert!(problem(r#"{"type": "1d", "relative_attention_num_buckets": 0}"#).contains("num_buckets"));
    }
}
