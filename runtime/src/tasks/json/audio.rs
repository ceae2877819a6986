//! The pipelines of audio: inputs are paths of files, samples with their rate, or lists of either.

use serde::Deserialize;
use serde_json::{Value as Json, json};

use super::JsonPipeline;
use super::images::hypothesis;
use super::parameters::Parameters;
use super::pipelines::{shaped, start_of, texts};
use crate::any_model::DynModel;
use crate::audio::Audio;
use crate::tasks::{
    AudioClassification, AudioClassificationOptions, SpeechOptions, SpeechRecognition, Timestamps,
    ZeroShotAudioClassification,
};
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

impl JsonPipeline for SpeechRecognition<DynModel> {
    fn run_json(&self, inputs: &Json, parameters: &Json) -> Result<Json> {
        let parameters = Parameters::new(parameters)?;
        let stride = match parameters.get::<Json>("stride_length_s")? {
            None => None,
            Some(both @ Json::Number(_)) => both.as_f64().map(|seconds| (seconds, seconds)),
            Some(pair) => Some(serde_json::from_value(pair).map_err(|e| {
                Error::input("stride_length_s", e.to_string(), "give seconds, or two of them: left and right")
            })?),
        };
        let timestamps = match parameters.get::<Json>("return_timestamps")? {
            None | Some(Json::Bool(false)) => None,
            Some(Json::Bool(true)) => Some(Timestamps::Segment),
            Some(name) => Some(serde_json::from_value(name).map_err(|e| {
                Error::input("return_timestamps", e.to_string(), "give true, \"char\" or \"word\"")
            })?),
        };
        let inner = parameters.inner("generate_kwargs")?;
        let language = parameters.get("language")?.or(inner.get("language")?);
        let task = parameters.get("task")?.or(inner.get("task")?);
        let options = SpeechOptions {
            chunk_length_s: parameters.get("chunk_length_s")?,
            stride_length_s: stride,
            timestamps,
            language,
            task,
            return_language: parameters.get("return_language")?.unwrap_or(false),
            generation: parameters.generation()?.or(inner.generation()?),
        };
        inner.finish()?;
        parameters.finish()?;
        let results: Result<Vec<_>> =
            clips(inputs)?.iter().map(|audio| self.run_with(audio, &options)).collect();
        shaped(inputs, results?)
    }
}

impl JsonPipeline for ZeroShotAudioClassification<DynModel> {
    fn run_json(&self, inputs: &Json, parameters: &Json) -> Result<Json> {
        let parameters = Parameters::new(parameters)?;
        let labels: Json = parameters.get("candidate_labels")?.unwrap_or_else(|| json!([]));
        let options = hypothesis(&parameters, Self::hypothesis())?;
        parameters.finish()?;
        let labels = texts(&labels)?;
        let clips = clips(inputs)?;
        let results: Result<Vec<_>> =
            clips.iter().map(|audio| self.run_with(audio, &labels, &options)).collect();
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
fn clips(value: &Json) -> Result<Vec<Audio>> {
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
