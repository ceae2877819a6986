//! The pipelines of text in images: where it is, and what it says.

use serde_json::Value as Json;

use super::JsonPipeline;
use super::images::{drawn, images};
use super::parameters::Parameters;
use super::shapes::shaped;
use crate::Result;
use crate::any_model::DynModel;
use crate::tasks::{TextDetection, TextDetectionOptions, TextRecognition, draw_texts};

impl JsonPipeline for TextDetection<DynModel> {
    fn run_json(&self, inputs: &Json, parameters: &Json) -> Result<Json> {
        let parameters = Parameters::new(parameters)?;
        let defaults = TextDetectionOptions::default();
        let options = TextDetectionOptions {
            threshold: parameters.get("threshold")?.unwrap_or(defaults.threshold),
            box_threshold: parameters.get("box_threshold")?.unwrap_or(defaults.box_threshold),
            max_candidates: parameters.get("max_candidates")?.unwrap_or(defaults.max_candidates),
            min_size: parameters.get("min_size")?.unwrap_or(defaults.min_size),
            unclip_ratio: parameters.get("unclip_ratio")?.unwrap_or(defaults.unclip_ratio),
        };
        let out: Option<String> = parameters.get("out")?;
        parameters.finish()?;
        let pages = images(inputs)?;
        let found = self.run_with(&pages, options)?;
        drawn(out, &pages, &found, |page, found| Ok(draw_texts(page, found)))?;
        shaped(inputs, found)
    }
}

impl JsonPipeline for TextRecognition<DynModel> {
    fn run_json(&self, inputs: &Json, parameters: &Json) -> Result<Json> {
        Parameters::new(parameters)?.finish()?;
        shaped(inputs, self.run_batch(&images(inputs)?)?)
    }
}
