//! Automatic speech recognition: inputs are those of audio classification.

use serde_json::Value as Json;

use super::JsonPipeline;
use super::audio::clips;
use super::parameters::Parameters;
use super::shapes::shaped;
use crate::any_model::DynModel;
use crate::tasks::{SpeechOptions, SpeechRecognition, Timestamps};
use crate::{Error, Result};

impl JsonPipeline for SpeechRecognition<DynModel> {
    fn set_assistant(&mut self, assistant: DynModel) -> Result<()> {
        Self::set_assistant(self, assistant)
    }

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
        let target_language = parameters.get("target_language")?.or(inner.get("target_language")?);
        // SeamlessM4T's name of it.
        let older = parameters.get("tgt_lang")?.or(inner.get("tgt_lang")?);
        let punctuation = parameters.get("punctuation")?.or(inner.get("punctuation")?);
        let task = parameters.get("task")?.or(inner.get("task")?);
        let options = SpeechOptions {
            chunk_length_s: parameters.get("chunk_length_s")?,
            stride_length_s: stride,
            timestamps,
            language,
            target_language: target_language.or(older),
            punctuation,
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
