//! The pipelines of labels of the caller's own for images, videos and audio.

use serde_json::{Value as Json, json};

use super::JsonPipeline;
#[cfg(feature = "audio")]
use super::audio::clips;
#[cfg(feature = "video")]
use super::images::paths;
#[cfg(feature = "image")]
use super::images::{drawn, images};
use super::parameters::Parameters;
use super::shapes::{shaped, texts};
use crate::Result;
use crate::any_model::DynModel;
use crate::tasks::HypothesisOptions;
#[cfg(feature = "audio")]
use crate::tasks::ZeroShotAudioClassification;
#[cfg(feature = "video")]
use crate::tasks::{VideoOptions, ZeroShotVideoClassification};
#[cfg(feature = "image")]
use crate::tasks::{ZeroShotDetectionOptions, ZeroShotImageClassification, ZeroShotObjectDetection, draw};
#[cfg(feature = "video")]
use crate::video::Video;

#[cfg(feature = "image")]
impl JsonPipeline for ZeroShotImageClassification<DynModel> {
    fn run_json(&self, inputs: &Json, parameters: &Json) -> Result<Json> {
        let parameters = Parameters::new(parameters)?;
        let labels: Json = parameters.get("candidate_labels")?.unwrap_or_else(|| json!([]));
        let options = hypothesis(&parameters, HypothesisOptions::default())?;
        parameters.finish()?;
        let labels = texts(&labels)?;
        let images = images(inputs)?;
        let results: Result<Vec<_>> =
            images.iter().map(|image| self.run_with(image, &labels, &options)).collect();
        shaped(inputs, results?)
    }
}

#[cfg(feature = "image")]
impl JsonPipeline for ZeroShotObjectDetection<DynModel> {
    fn run_json(&self, inputs: &Json, parameters: &Json) -> Result<Json> {
        let parameters = Parameters::new(parameters)?;
        let defaults = ZeroShotDetectionOptions::default();
        let labels: Json = parameters.get("candidate_labels")?.unwrap_or_else(|| json!([]));
        let options = ZeroShotDetectionOptions {
            threshold: parameters.get("threshold")?.unwrap_or(defaults.threshold),
            top_k: parameters.get("top_k")?,
            text: defaults.text,
        };
        let out: Option<String> = parameters.get("out")?;
        parameters.finish()?;
        let labels = texts(&labels)?;
        let images = images(inputs)?;
        let found: Result<Vec<_>> =
            images.iter().map(|image| self.run_with(image, &labels, &options)).collect();
        let found = found?;
        drawn(out, &images, &found, |image, found| Ok(draw(image, found)))?;
        shaped(inputs, found)
    }
}

#[cfg(feature = "video")]
impl JsonPipeline for ZeroShotVideoClassification<DynModel> {
    fn run_json(&self, inputs: &Json, parameters: &Json) -> Result<Json> {
        let parameters = Parameters::new(parameters)?;
        let defaults = VideoOptions::default();
        let labels: Json = parameters.get("candidate_labels")?.unwrap_or_else(|| json!([]));
        let options = VideoOptions {
            num_frames: parameters.get("num_frames")?,
            frame_sampling_rate: parameters
                .get("frame_sampling_rate")?
                .unwrap_or(defaults.frame_sampling_rate),
            hypothesis: hypothesis(&parameters, defaults.hypothesis)?,
        };
        parameters.finish()?;
        let labels = texts(&labels)?;
        let results: Result<Vec<_>> = paths(inputs)?
            .into_iter()
            .map(|path| self.run_with(&Video::open(path)?, &labels, &options))
            .collect();
        shaped(inputs, results?)
    }
}

#[cfg(feature = "audio")]
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

fn hypothesis(parameters: &Parameters<'_>, defaults: HypothesisOptions) -> Result<HypothesisOptions> {
    let inner = parameters.inner("tokenizer_kwargs")?;
    let tokenizing = inner.tokenizer()?;
    inner.finish()?;
    Ok(HypothesisOptions {
        hypothesis_template: parameters.get("hypothesis_template")?.unwrap_or(defaults.hypothesis_template),
        text: parameters.text(&tokenizing)?,
    })
}
