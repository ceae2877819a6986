//! The pipelines of images: inputs are paths of files, or lists of them.

use serde_json::{Value as Json, json};

use super::JsonPipeline;
use super::parameters::Parameters;
use super::shapes::{shaped, start_of, texts};
use crate::any_model::DynModel;
use crate::image::Image;
use crate::tasks::{
    DepthEstimation, DepthOptions, DetectionOptions, ImageClassification, ImageClassificationOptions,
    ImageFeatureExtraction, ImageFeatureOptions, ImageSegmentation, MaskGeneration, MaskOptions, MaskPrompt,
    ObjectDetection, SegmentationOptions, draw, draw_masks, draw_segments,
};
#[cfg(feature = "video")]
use crate::tasks::{VideoClassification, VideoClassificationOptions};
#[cfg(feature = "video")]
use crate::video::Video;
use crate::{Error, Result};

impl JsonPipeline for ImageClassification<DynModel> {
    fn run_json(&self, inputs: &Json, parameters: &Json) -> Result<Json> {
        let parameters = Parameters::new(parameters)?;
        let defaults = ImageClassificationOptions::default();
        let options = ImageClassificationOptions {
            top_k: parameters.get("top_k")?.or(defaults.top_k),
            function_to_apply: parameters.get("function_to_apply")?,
            batch_size: parameters.get("batch_size")?.unwrap_or(defaults.batch_size),
        };
        parameters.finish()?;
        shaped(inputs, self.run_with(&images(inputs)?, &options)?)
    }
}

impl JsonPipeline for ImageFeatureExtraction<DynModel> {
    fn run_json(&self, inputs: &Json, parameters: &Json) -> Result<Json> {
        let parameters = Parameters::new(parameters)?;
        let defaults = ImageFeatureOptions::default();
        let options = ImageFeatureOptions {
            pool: parameters.get("pool")?.unwrap_or(defaults.pool),
            processor: parameters.get("image_processor_kwargs")?.unwrap_or_default(),
            batch_size: parameters.get("batch_size")?.unwrap_or(defaults.batch_size),
        };
        parameters.finish()?;
        let features = self.run_with(&images(inputs)?, &options)?;
        // Each image was a batch of one.
        shaped(inputs, features.iter().map(|features| json!([nested(&features.view())])).collect())
    }
}

impl JsonPipeline for ObjectDetection<DynModel> {
    fn run_json(&self, inputs: &Json, parameters: &Json) -> Result<Json> {
        let parameters = Parameters::new(parameters)?;
        let defaults = DetectionOptions::default();
        let options = DetectionOptions {
            threshold: parameters.get("threshold")?.unwrap_or(defaults.threshold),
            batch_size: parameters.get("batch_size")?.unwrap_or(defaults.batch_size),
        };
        let out: Option<String> = parameters.get("out")?;
        parameters.finish()?;
        let images = images(inputs)?;
        let found = self.run_with(&images, &options)?;
        drawn(out, &images, &found, |image, found| Ok(draw(image, found)))?;
        shaped(inputs, found)
    }
}

impl JsonPipeline for ImageSegmentation<DynModel> {
    fn run_json(&self, inputs: &Json, parameters: &Json) -> Result<Json> {
        let parameters = Parameters::new(parameters)?;
        let defaults = SegmentationOptions::default();
        let overlap = parameters.get("overlap_mask_area_threshold")?;
        let options = SegmentationOptions {
            subtask: parameters.get("subtask")?,
            threshold: parameters.get("threshold")?.unwrap_or(defaults.threshold),
            mask_threshold: parameters.get("mask_threshold")?.unwrap_or(defaults.mask_threshold),
            overlap_mask_area_threshold: overlap.unwrap_or(defaults.overlap_mask_area_threshold),
            batch_size: parameters.get("batch_size")?.unwrap_or(defaults.batch_size),
        };
        let out: Option<String> = parameters.get("out")?;
        parameters.finish()?;
        let images = images(inputs)?;
        let found = self.run_with(&images, &options)?;
        drawn(out, &images, &found, |image, found| Ok(draw_segments(image, found)))?;
        shaped(inputs, found)
    }
}

impl JsonPipeline for MaskGeneration<DynModel> {
    fn run_json(&self, inputs: &Json, parameters: &Json) -> Result<Json> {
        let parameters = Parameters::new(parameters)?;
        let defaults = MaskOptions::default();
        let options = MaskOptions {
            mask_threshold: parameters.get("mask_threshold")?.unwrap_or(defaults.mask_threshold),
            multimask_output: parameters.get("multimask_output")?.unwrap_or(defaults.multimask_output),
        };
        let points: Option<Vec<Vec<[f64; 2]>>> = parameters.get("input_points")?;
        let labels: Option<Vec<Vec<i64>>> = parameters.get("input_labels")?;
        let boxes: Option<Vec<[f64; 4]>> = parameters.get("input_boxes")?;
        let prompts = MaskPrompt::from_lists(points.as_deref(), labels.as_deref(), boxes.as_deref())?;
        let out: Option<String> = parameters.get("out")?;
        parameters.finish()?;
        let images = images(inputs)?;
        let found = images.iter().map(|image| self.run_with(image, &prompts, &options));
        let found = found.collect::<Result<Vec<_>>>()?;
        drawn(out, &images, &found, |image, found| Ok(draw_masks(image, found)))?;
        shaped(inputs, found)
    }
}

impl JsonPipeline for DepthEstimation<DynModel> {
    fn run_json(&self, inputs: &Json, parameters: &Json) -> Result<Json> {
        let parameters = Parameters::new(parameters)?;
        let defaults = DepthOptions::default();
        let options =
            DepthOptions { batch_size: parameters.get("batch_size")?.unwrap_or(defaults.batch_size) };
        let out: Option<String> = parameters.get("out")?;
        parameters.finish()?;
        let images = images(inputs)?;
        let depths = self.run_with(&images, &options)?;
        drawn(out, &images, &depths, |_, depth| depth.to_image())?;
        let depths = depths
            .iter()
            .map(|depth| json!({"predicted_depth": nested(&depth.predicted_depth.view().into_dyn())}));
        shaped(inputs, depths.collect())
    }
}

/// Writes the only image, with what was found in it drawn onto it, to the file that `out` names.
pub(super) fn drawn<T>(
    out: Option<String>,
    images: &[Image],
    found: &[T],
    draw: impl Fn(&Image, &T) -> Result<Image>,
) -> Result<()> {
    match (out, images, found) {
        (None, ..) => Ok(()),
        (Some(out), [image], [found]) => draw(image, found)?.save(out),
        _ => {
            let help = "give one image, or leave it out";
            Err(Error::input("out", format!("is one file for {} images", images.len()), help))
        }
    }
}

#[cfg(feature = "video")]
impl JsonPipeline for VideoClassification<DynModel> {
    fn run_json(&self, inputs: &Json, parameters: &Json) -> Result<Json> {
        let parameters = Parameters::new(parameters)?;
        let defaults = VideoClassificationOptions::default();
        let options = VideoClassificationOptions {
            top_k: parameters.get("top_k")?.or(defaults.top_k),
            function_to_apply: parameters.get("function_to_apply")?,
            num_frames: parameters.get("num_frames")?,
            frame_sampling_rate: parameters
                .get("frame_sampling_rate")?
                .unwrap_or(defaults.frame_sampling_rate),
        };
        parameters.finish()?;
        let results: Result<Vec<_>> =
            paths(inputs)?.into_iter().map(|path| self.run_with(&Video::open(path)?, &options)).collect();
        shaped(inputs, results?)
    }
}

/// One path or a list of paths.
pub(super) fn paths(value: &Json) -> Result<Vec<&str>> {
    texts(value).map_err(|_| {
        let problem = format!("{} is not the path of a file", start_of(value));
        Error::input("inputs", problem, "give a path, or a list of paths")
    })
}

pub(super) fn images(value: &Json) -> Result<Vec<Image>> {
    paths(value)?.into_iter().map(Image::open).collect()
}

/// An array as lists of lists.
pub(super) fn nested(array: &ndarray::ArrayViewD<'_, f32>) -> Json {
    if array.ndim() == 0 {
        return array.first().map_or(Json::Null, |value| json!(value));
    }
    Json::Array(array.outer_iter().map(|row| nested(&row)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_told_from_other_inputs() {
        assert_eq!(paths(&json!(["a.png", "b.png"])).unwrap(), ["a.png", "b.png"]);
        let text = paths(&json!({"image": 1})).unwrap_err().to_string();
        assert!(text.contains("is not the path of a file"), "{text}");
        let text = images(&json!("no/such.png")).unwrap_err().to_string();
        assert!(text.contains("no/such.png"), "{text}");
    }

    #[test]
    fn arrays_become_lists() {
        let array = ndarray::array![[1.0, 2.0], [3.0, 4.0]].into_dyn();
        assert_eq!(nested(&array.view()), json!([[1.0, 2.0], [3.0, 4.0]]));
    }
}
