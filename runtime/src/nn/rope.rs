//! `rope_parameters`: base and scaling of rotary position embeddings (Su et al., 2021, arXiv:2104.09864).
//!
//! The reference is `transformers`, `modeling_rope_utils.py`.

mod frequencies;
mod legacy;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

pub use frequencies::Frequencies;
pub use legacy::{prepare, prepare_layers, prepare_partial, prepare_scaling};

/// Rope parameters of one layer type (`transformers.modeling_rope_utils.RopeParameters`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RopeParameters {
    /// The base of the wavelengths.
    pub rope_theta: f64,
    /// The fraction of each head that is rotated.
    #[serde(default = "whole")]
    pub partial_rotary_factor: f64,
    /// M-RoPE: pairs that rotate by time, height and width.
    #[serde(default, alias = "xdrope_section", skip_serializing_if = "Option::is_none")]
    pub mrope_section: Option<Vec<usize>>,
    /// Llama 4's attention temperature: the factor of `ln(1 + ⌊position / original length⌋)` in the scale of queries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub llama_4_scaling_beta: Option<f64>,
    /// The scaling to sequences longer than those of pre-training.
    #[serde(flatten)]
    pub scaling: RopeScaling,
}

/// Rope scaling, by `rope_type`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "rope_type", rename_all = "lowercase")]
pub enum RopeScaling {
    /// None.
    #[default]
    Default,
    /// No rotation at all: the base is null.
    None,
    /// Linear position interpolation (arXiv:2306.15595): all wavelengths by one factor.
    Linear {
        /// The factor.
        factor: f64,
    },
    /// Dynamic NTK: the base grows with sequences longer than `max_position_embeddings`.
    Dynamic {
        /// How much longer texts may get.
        factor: f64,
        /// A stretch of the base for texts of any length, in place of one by the length.
        #[serde(default)]
        alpha: Option<f64>,
    },
    /// Long ones by a factor, short ones not, with a ramp between (YaRN, arXiv:2309.00071).
    Yarn {
        /// The factor; `max_position_embeddings` over the original where absent.
        #[serde(default)]
        factor: Option<f64>,
        /// The longest text of the training before.
        #[serde(default)]
        original_max_position_embeddings: Option<usize>,
        /// Multiplies cosines and sines; follows from the factor where absent.
        #[serde(default)]
        attention_factor: Option<f64>,
        /// Rotations within the original length from which on wavelengths stay; 32 where absent.
        #[serde(default)]
        beta_fast: Option<f64>,
        /// Rotations within the original length up to which wavelengths are stretched; 1 where absent.
        #[serde(default)]
        beta_slow: Option<f64>,
        /// With `mscale_all_dim`, what `attention_factor` follows from.
        #[serde(default)]
        mscale: Option<f64>,
        /// With `mscale`, what `attention_factor` follows from.
        #[serde(default)]
        mscale_all_dim: Option<f64>,
        /// Whether the ramp begins and ends at whole pairs; it does where absent.
        #[serde(default)]
        truncate: Option<bool>,
    },
    /// Each by a factor of its own; other factors for long texts (LongRoPE, arXiv:2402.13753).
    Longrope {
        /// The factors of texts up to the original length.
        short_factor: Vec<f64>,
        /// The factors of longer texts.
        long_factor: Vec<f64>,
        /// How much longer texts get; `max_position_embeddings` over the original where absent.
        #[serde(default)]
        factor: Option<f64>,
        /// The longest text of the training before.
        #[serde(default)]
        original_max_position_embeddings: Option<usize>,
        /// Multiplies cosines and sines; follows from the factor where absent.
        #[serde(default)]
        attention_factor: Option<f64>,
        /// In place of that, for texts up to the original length.
        #[serde(default)]
        short_mscale: Option<f64>,
        /// In place of that, for longer texts.
        #[serde(default)]
        long_mscale: Option<f64>,
    },
    /// Long ones by a factor, short ones not, and smoothly between.
    Llama3 {
        /// The factor.
        factor: f64,
        /// Wavelengths longer than the original length over this are stretched.
        low_freq_factor: f64,
        /// Wavelengths shorter than the original length over this stay.
        high_freq_factor: f64,
        /// The longest text of the training before.
        #[serde(default)]
        original_max_position_embeddings: Option<usize>,
    },
    /// All by one factor; the pairs beyond `partial_rotary_factor` do not turn.
    Proportional {
        /// The factor; 1 where absent.
        #[serde(default)]
        factor: Option<f64>,
    },
}

fn whole() -> f64 {
    1.0
}

impl RopeParameters {
    /// Plain rotary embeddings of this base.
    pub fn of(rope_theta: f64) -> Self {
        Self {
            rope_theta,
            partial_rotary_factor: 1.0,
            mrope_section: None,
            llama_4_scaling_beta: None,
            scaling: RopeScaling::Default,
        }
    }

    /// As an architecture's standard stretches them: the fields of `rope_parameters` and their values.
    pub fn scaled<const N: usize>(self, standard: [(&str, Json); N]) -> Self {
        let Ok(Json::Object(mut rope)) = serde_json::to_value(&self) else { return self };
        rope.extend(standard.into_iter().map(|(name, value)| (name.to_owned(), value)));
        serde_json::from_value(Json::Object(rope)).unwrap_or(self)
    }

    /// What of a head of this size is rotated.
    pub fn width(&self, head_size: usize) -> usize {
        match self.scaling {
            RopeScaling::Proportional { .. } => head_size,
            _ => (head_size as f64 * self.partial_rotary_factor) as usize,
        }
    }

    /// What cannot be computed with; `head_size` is the size of the heads.
    ///
    /// # Errors
    /// The problem, starting with the field's name.
    pub fn check(&self, head_size: usize) -> Result<(), String> {
        let width = self.width(head_size);
        let pairs = width / 2;
        let wrong = |name: &str, problem: String| Err(format!("rope_parameters.{name}: {problem}"));
        if !(self.rope_theta > 0.0 && self.rope_theta.is_finite()) {
            return wrong("rope_theta", format!("{} is not a positive number", self.rope_theta));
        }
        if !(self.partial_rotary_factor > 0.0 && self.partial_rotary_factor <= 1.0) {
            let problem = format!("{} is not above 0 and at most 1", self.partial_rotary_factor);
            return wrong("partial_rotary_factor", problem);
        }
        if width == 0 || width % 2 == 1 {
            let problem = format!(
                "{} leaves {width} of a head's {head_size} dimensions to turn, and they turn in pairs: expected a \
                 share that is an even number of them",
                self.partial_rotary_factor
            );
            return wrong("partial_rotary_factor", problem);
        }
        if let RopeScaling::Longrope { short_factor, long_factor, .. } = &self.scaling {
            for (name, factors) in [("short_factor", short_factor), ("long_factor", long_factor)] {
                if factors.len() != pairs {
                    let problem =
                        format!("has {} factors, but heads of {head_size} have {pairs} pairs", factors.len());
                    return wrong(name, problem);
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
