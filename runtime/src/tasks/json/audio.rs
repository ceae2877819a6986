//! The pipelines of audio: inputs are paths of files, samples with their rate, or lists of either.

use serde::Deserialize;
use serde_json::Value as Json;

use super::JsonPipeline;
use super::parameters::Parameters;
use super::shapes::{shaped, start_of};
use crate::any_model::DynModel;
use crate::audio::Audio;
use crate::tasks::{AudioClassification, AudioClassificationOptions};
use crate::{Error, Result};

impl JsonPipeline for AudioClassification<DynModel> {
    fn run_json(&self, inputs: &Json, parameters: &Json) -> Result<Json> {
        let parameters = Parameters::new(parameters)?;
        let options = AudioClassificationOptions {
            top_k: parameters.get("top_k")?,
            function_to_apply: parameters.get("function_to_apply")?,
        };
        parameters.finish()?;
        let results: Result<Vec<_>> =
            clips(inputs)?.iter().map(|audio| self.run_with(audio, &options)).collect();
        shaped(inputs, results?)
    }
}

/// Samples as JSON has them.
#[derive(Deserialize)]
struct Samples {
    #[serde(alias = "raw")]
    array: Vec<f32>,
    sampling_rate: u32,
}

/// One audio clip or a list of them.
pub(super) fn clips(value: &Json) -> Result<Vec<Audio>> {
    match value {
        Json::Array(list) => list.iter().map(clip).collect(),
        one => Ok(vec![clip(one)?]),
    }
}

fn clip(value: &Json) -> Result<Audio> {
    match value {
        Json::String(path) => Audio::open(path),
        other => {
            let Samples { array, sampling_rate } = Samples::deserialize(other).map_err(|e| {
                let problem = format!("{} is not an audio clip: {e}", start_of(other));
                let help =
                    "give the path of a file, {\"array\": […], \"sampling_rate\": …}, or a list of those";
                Error::input("inputs", problem, help)
            })?;
            Ok(Audio { samples: array, sampling_rate })
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn samples_and_paths_are_sounds() {
        let audio = clips(&json!({"raw": [0.5, -0.5], "sampling_rate": 8000})).unwrap();
        assert_eq!(audio, [Audio { samples: vec![0.5, -0.5], sampling_rate: 8000 }]);
        assert_eq!(clips(&json!([{"array": [0], "sampling_rate": 1}])).unwrap().len(), 1);
        let text = clips(&json!("no/such.wav")).unwrap_err().to_string();
        assert!(text.contains("no/such.wav"), "{text}");
        let text = clips(&json!({"array": [0.5]})).unwrap_err().to_string();
        assert!(text.contains("is not an audio clip") && text.contains("sampling_rate"), "{text}");
    }
}
