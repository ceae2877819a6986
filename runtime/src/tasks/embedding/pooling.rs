//! Pooling of token embeddings to one sentence embedding (`sentence_transformers.models.Pooling`).
//!
//! Reference: `sentence_transformers.models.Pooling`.

use ndarray::{Array1, ArrayView2, Axis, concatenate, s};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::hub::Checkpoint;
use crate::{Error, Result};

/// One way to pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PoolingMode {
    /// The first token.
    Cls,
    /// The largest value of each dimension.
    Max,
    /// The mean.
    Mean,
    /// The sum, divided by the square root of the number of tokens.
    #[serde(rename = "mean_sqrt_len_tokens")]
    MeanSqrtLenTokens,
    /// The mean with weights 1, 2, 3 … by position.
    WeightedMean,
    /// The last token.
    LastToken,
}

/// The flags of published checkpoints, in the order in which their vectors are put side by side.
const FLAGS: [(&str, PoolingMode); 6] = [
    ("pooling_mode_cls_token", PoolingMode::Cls),
    ("pooling_mode_max_tokens", PoolingMode::Max),
    ("pooling_mode_mean_tokens", PoolingMode::Mean),
    ("pooling_mode_mean_sqrt_len_tokens", PoolingMode::MeanSqrtLenTokens),
    ("pooling_mode_weightedmean_tokens", PoolingMode::WeightedMean),
    ("pooling_mode_lasttoken", PoolingMode::LastToken),
];

/// How tokens become one vector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pooling {
    /// The vectors that are put side by side; mostly one.
    pub modes: Vec<PoolingMode>,
    /// Whether the tokens of the prompt take part.
    pub include_prompt: bool,
}

impl Default for Pooling {
    fn default() -> Self {
        Self { modes: vec![PoolingMode::Mean], include_prompt: true }
    }
}

impl Pooling {
    /// Reads `1_Pooling/config.json`, as flags or as names.
    pub(super) fn read(checkpoint: &Checkpoint, path: &str, config: &Json) -> Result<Self> {
        let include_prompt = config["include_prompt"].as_bool().unwrap_or(true);
        let named = match &config["pooling_mode"] {
            Json::Null => None,
            Json::Array(names) => Some(names.clone()),
            name => Some(vec![name.clone()]),
        };
        let Some(names) = named else {
            let mut modes: Vec<PoolingMode> = FLAGS
                .iter()
                .filter(|(flag, _)| config[*flag].as_bool() == Some(true))
                .map(|(_, mode)| *mode)
                .collect();
            if modes.is_empty() {
                modes.push(PoolingMode::Mean);
            }
            return Ok(Self { modes, include_prompt });
        };
        let modes = names.into_iter().map(|name| {
            serde_json::from_value(name).map_err(|e| {
                let file = checkpoint.dir().join(path).join("config.json");
                Error::config(file, format!("`pooling_mode`: {e}"), "choose one of the names listed")
            })
        });
        Ok(Self { modes: modes.collect::<Result<_>>()?, include_prompt })
    }

    /// Pools the vectors of one text, `[tokens, hidden_size]`, without its first `skip` tokens.
    pub fn pool(&self, states: &ArrayView2<'_, f32>, skip: usize) -> Array1<f32> {
        let skip = skip.min(states.nrows());
        let parts: Vec<Array1<f32>> = self.modes.iter().map(|mode| mode.pool(states, skip)).collect();
        let views: Vec<_> = parts.iter().map(|part| part.view()).collect();
        concatenate(Axis(0), &views).unwrap_or_default()
    }
}

impl PoolingMode {
    fn pool(self, states: &ArrayView2<'_, f32>, skip: usize) -> Array1<f32> {
        let kept = states.slice(s![skip.., ..]);
        let sum = || kept.sum_axis(Axis(0));
        let count = (kept.nrows() as f32).max(1e-9);
        match self {
            Self::Cls => states.row(if kept.nrows() == 0 { 0 } else { skip }).to_owned(),
            Self::LastToken if kept.nrows() == 0 => Array1::zeros(states.ncols()),
            Self::LastToken => states.row(states.nrows() - 1).to_owned(),
            Self::Max => kept.fold_axis(Axis(0), f32::NEG_INFINITY, |a, b| a.max(*b)),
            Self::Mean => sum() / count,
            Self::MeanSqrtLenTokens => sum() / count.sqrt(),
            Self::WeightedMean => {
                // Positions keep their weights when the prompt is left out.
                let weights: Vec<f32> = (skip..states.nrows()).map(|i| (i + 1) as f32).collect();
                let total = weights.iter().sum::<f32>().max(1e-9);
                Array1::from(weights).dot(&kept) / total
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use ndarray::array;
    use serde_json::json;

    use super::*;

    fn read(config: &Json) -> Result<Pooling> {
        let folder = tempfile::tempdir().unwrap();
        let checkpoint = Checkpoint::open(folder.path().to_str().unwrap()).unwrap();
        Pooling::read(&checkpoint, "1_Pooling", config)
    }

    #[test]
    fn reads_flags_and_names() {
        let flags = json!({"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": true, "include_prompt": false});
        let pooling = read(&flags).unwrap();
        assert_eq!(pooling.modes, [PoolingMode::Cls, PoolingMode::Mean]);
        assert!(!pooling.include_prompt);
        assert_eq!(read(&json!({"pooling_mode": "lasttoken"})).unwrap().modes, [PoolingMode::LastToken]);
        let two = json!({"pooling_mode": ["weightedmean", "mean_sqrt_len_tokens"]});
        assert_eq!(read(&two).unwrap().modes, [PoolingMode::WeightedMean, PoolingMode::MeanSqrtLenTokens]);
        assert_eq!(read(&json!({})).unwrap(), Pooling::default());
        let text = read(&json!({"pooling_mode": "median"})).unwrap_err().to_string();
        assert!(text.contains("median") && text.contains("lasttoken"), "{text}");
    }

    #[test]
    fn pools_by_each_mode() {
        let states = array![[1.0f32, 8.0], [3.0, 4.0], [5.0, 0.0], [7.0, 4.0]];
        let pool = |mode, skip| {
            Pooling { modes: vec![mode], include_prompt: true }.pool(&states.view(), skip).to_vec()
        };
        assert_eq!(pool(PoolingMode::Cls, 0), [1.0, 8.0]);
        assert_eq!(pool(PoolingMode::Cls, 1), [3.0, 4.0]);
        assert_eq!(pool(PoolingMode::Max, 0), [7.0, 8.0]);
        assert_eq!(pool(PoolingMode::Mean, 0), [4.0, 4.0]);
        assert_eq!(pool(PoolingMode::Mean, 2), [6.0, 2.0]);
        assert_eq!(pool(PoolingMode::MeanSqrtLenTokens, 0), [8.0, 8.0]);
        assert_eq!(pool(PoolingMode::WeightedMean, 0), [5.0, 3.2]);
        assert_eq!(pool(PoolingMode::WeightedMean, 2), [43.0 / 7.0, 16.0 / 7.0]);
        assert_eq!(pool(PoolingMode::LastToken, 0), [7.0, 4.0]);
        assert_eq!(pool(PoolingMode::Mean, 9), [0.0, 0.0]);
    }
}
