//! The pipeline that tracks objects: inputs are paths of videos, prompts are parameters.

use std::ops::ControlFlow;

use serde::Deserialize;
use serde_json::Value as Json;

use super::images::{nested, paths};
use super::parameters::Parameters;
use super::shapes::{shaped, to_json};
use super::{JsonPipeline, OnText};
use crate::any_model::DynModel;
use crate::image::{Image, Mask};
use crate::tasks::object_tracking::video_logits;
use crate::tasks::{
    FramePrompts, MaskPrompt, ObjectTracking, Propagation, TrackedFrame, TrackingOptions, TrackingPrompt,
    draw_tracked,
};
use crate::video::{FrameWriter, Video};
use crate::{Error, Result};

/// The arguments of `add_inputs_to_inference_session`, without the axis of images: of each object points, their labels, a box, or a mask.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TrackingInputs {
    frame_idx: usize,
    obj_ids: ObjectIds,
    input_points: Option<Vec<Vec<[f64; 2]>>>,
    input_labels: Option<Vec<Vec<i64>>>,
    input_boxes: Option<Vec<[f64; 4]>>,
    input_masks: Option<Vec<InputMask>>,
    #[serde(default = "yes")]
    clear_old_inputs: bool,
}

fn yes() -> bool {
    true
}

/// One object, or several.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum ObjectIds {
    One(i64),
    Several(Vec<i64>),
}

/// A mask as run lengths, or the path of an image that is bright where the object is.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum InputMask {
    Counts { size: [usize; 2], counts: Vec<usize> },
    Path(String),
}

impl InputMask {
    fn mask(self) -> Result<Mask> {
        match self {
            Self::Counts { size: [height, width], counts } => Mask::from_counts((height, width), &counts),
            Self::Path(path) => {
                let levels = Image::open(path)?.pixels().map_axis(ndarray::Axis(2), |pixel| {
                    pixel.iter().map(|level| u32::from(*level)).sum::<u32>()
                });
                Ok(Mask::new(levels.mapv(|sum| sum >= 3 * 128)))
            }
        }
    }
}

impl TrackingInputs {
    fn prompts(self) -> Result<FramePrompts> {
        let object_ids = match self.obj_ids {
            ObjectIds::One(one) => vec![one],
            ObjectIds::Several(several) => several,
        };
        let points = self.input_points.is_some() || self.input_labels.is_some() || self.input_boxes.is_some();
        let prompts: Vec<TrackingPrompt> = match self.input_masks {
            Some(_) if points => {
                let help = "give an object points and a box, or a mask";
                return Err(Error::input("input_masks", "are given beside points or boxes", help));
            }
            Some(masks) => {
                masks.into_iter().map(|mask| mask.mask().map(Into::into)).collect::<Result<_>>()?
            }
            None => {
                let (points, labels) = (self.input_points.as_deref(), self.input_labels.as_deref());
                let prompts = MaskPrompt::from_lists(points, labels, self.input_boxes.as_deref())?;
                prompts.into_iter().map(Into::into).collect()
            }
        };
        if prompts.len() != object_ids.len() {
            let problem = format!("number {} objects, but prompts are {}", object_ids.len(), prompts.len());
            return Err(Error::input("obj_ids", problem, "give points, a box or a mask for each object"));
        }
        let objects = object_ids.into_iter().zip(prompts).collect();
        Ok(FramePrompts { frame_idx: self.frame_idx, objects, clear_old_inputs: self.clear_old_inputs })
    }
}

fn prompts(given: Option<Vec<TrackingInputs>>) -> Result<Vec<FramePrompts>> {
    given.unwrap_or_default().into_iter().map(TrackingInputs::prompts).collect()
}

/// What is asked of each video.
struct Asked {
    prompts: Vec<FramePrompts>,
    corrections: Vec<FramePrompts>,
    options: TrackingOptions,
    propagation: Propagation,
    binarize: bool,
    streaming: bool,
}

/// Told of each frame, and how many there are.
type OnFrame<'a> = dyn FnMut(&TrackedFrame, usize) -> Result<ControlFlow<()>> + 'a;

impl ObjectTracking<DynModel> {
    /// Tracks through one video.
    fn answer(&self, video: &Video, asked: &Asked, on_frame: &mut OnFrame<'_>) -> Result<Vec<Json>> {
        if asked.streaming {
            return self.streamed(video, asked, on_frame);
        }
        let mut session = self.session(video, &asked.options)?;
        for prompts in &asked.prompts {
            session.add_prompts(prompts)?;
        }
        if !asked.corrections.is_empty() {
            for frame in session.propagate(&asked.propagation)? {
                frame?;
            }
            for prompts in &asked.corrections {
                session.add_prompts(prompts)?;
            }
        }
        let mut found = vec![];
        let frames = session.propagate(&Propagation { is_last: true, ..asked.propagation })?;
        let count = frames.len();
        for frame in frames {
            let frame = frame?;
            let passed_on = on_frame(&frame, count)?;
            found.push(written(&frame, video, asked)?);
            if passed_on.is_break() {
                break;
            }
        }
        Ok(found)
    }
}

impl ObjectTracking<DynModel> {
    /// Tracks through one video as if its frames came one by one.
    fn streamed(&self, video: &Video, asked: &Asked, on_frame: &mut OnFrame<'_>) -> Result<Vec<Json>> {
        let propagation = Propagation { is_last: asked.propagation.is_last, ..Propagation::default() };
        if !asked.corrections.is_empty() || asked.propagation != propagation {
            let help = "give frames as they come `prompts` alone";
            return Err(Error::input("streaming", "goes through all frames once, from the first on", help));
        }
        if let Some(late) = asked.prompts.iter().find(|prompts| prompts.frame_idx >= video.frames().len()) {
            let problem = format!("is {}, but the video has {} frames", late.frame_idx, video.frames().len());
            return Err(Error::input("frame_idx", problem, "count frames from 0"));
        }
        let (mut session, mut found) = (self.streaming_session(&asked.options)?, vec![]);
        for (index, image) in video.frames().iter().enumerate() {
            let of_frame = asked.prompts.iter().filter(|prompts| prompts.frame_idx == index);
            let objects: Vec<_> = of_frame.flat_map(|prompts| prompts.objects.clone()).collect();
            let frame = session.push(image, &objects)?;
            let passed_on = on_frame(&frame, video.frames().len())?;
            found.push(written(&frame, video, asked)?);
            if passed_on.is_break() {
                break;
            }
        }
        Ok(found)
    }
}

/// A frame's answer; where masks are not asked for, logits in the video's size stand for them.
fn written(frame: &TrackedFrame, video: &Video, asked: &Asked) -> Result<Json> {
    let mut answer = to_json(frame)?;
    if asked.binarize {
        return Ok(answer);
    }
    let size = video.frames().first().map(|frame| (frame.height(), frame.width())).unwrap_or_default();
    let masks: Vec<_> = frame.objects.iter().map(|object| &object.pred_masks).collect();
    let logits = video_logits(&masks, size, asked.options.apply_non_overlapping_constraints)?;
    let objects = answer["objects"].as_array_mut().into_iter().flatten();
    for (object, logits) in objects.zip(logits.outer_iter()) {
        object["mask"] = nested(&logits.into_dyn());
    }
    Ok(answer)
}

impl JsonPipeline for ObjectTracking<DynModel> {
    fn run_json(&self, inputs: &Json, parameters: &Json) -> Result<Json> {
        self.run_streaming(inputs, parameters, &mut |_| ControlFlow::Continue(()))
    }

    /// Tells of frames as they are tracked, where they are written to a file or a folder.
    fn run_streaming(&self, inputs: &Json, parameters: &Json, on_text: &mut OnText<'_>) -> Result<Json> {
        let parameters = Parameters::new(parameters)?;
        let defaults = TrackingOptions::default();
        let given = parameters.get::<Vec<TrackingInputs>>("prompts")?;
        let corrections = parameters.get::<Vec<TrackingInputs>>("corrections")?;
        let options = TrackingOptions {
            mask_threshold: parameters.get("mask_threshold")?.unwrap_or(defaults.mask_threshold),
            apply_non_overlapping_constraints: parameters
                .get("apply_non_overlapping_constraints")?
                .unwrap_or(defaults.apply_non_overlapping_constraints),
        };
        let propagation = Propagation {
            start_frame_idx: parameters.get("start_frame_idx")?,
            max_frame_num_to_track: parameters.get("max_frame_num_to_track")?,
            reverse: parameters.get("reverse")?.unwrap_or_default(),
            is_last: false,
        };
        let binarize = parameters.get::<bool>("binarize")?.unwrap_or(true);
        let streaming = parameters.get::<bool>("streaming")?.unwrap_or_default();
        let out: Option<String> = parameters.get("out")?;
        parameters.finish()?;
        let (prompts, corrections) = (prompts(given)?, prompts(corrections)?);
        let asked = Asked { prompts, corrections, options, propagation, binarize, streaming };
        let paths = paths(inputs)?;
        if out.is_some() && paths.len() > 1 {
            let problem = format!("is one file for {} videos", paths.len());
            return Err(Error::input("out", problem, "give one video, or leave it out"));
        }
        let mut writer = out.map(FrameWriter::create).transpose()?;
        let mut results = vec![];
        for path in paths {
            let video = Video::open(path)?;
            let mut done = 0;
            let found = self.answer(&video, &asked, &mut |frame, count| {
                let (Some(writer), Some(image)) = (&mut writer, video.frames().get(frame.frame_idx)) else {
                    return Ok(ControlFlow::Continue(()));
                };
                writer.write(frame.frame_idx, &draw_tracked(image, frame))?;
                done += 1;
                Ok(on_text(&format!("\nframe {done} of {count}")))
            });
            results.push(found?);
        }
        shaped(inputs, results)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn one(given: &Json) -> Result<FramePrompts> {
        serde_json::from_value::<TrackingInputs>(given.clone()).unwrap().prompts()
    }

    #[test]
    fn prompts_are_those_of_the_references_processor() {
        let points = json!({"frame_idx": 3, "obj_ids": [5, 6], "input_points": [[[1, 2]], [[3, 4], [5, 6]]], "input_labels": [[1], [0, 1]]});
        let found = one(&points).unwrap();
        let second = MaskPrompt { points: vec![([3.0, 4.0], false), ([5.0, 6.0], true)], bounds: None };
        assert_eq!(found, FramePrompts::new(3, 5, MaskPrompt::point([1.0, 2.0])).with(6, second));
        let mask = json!({"frame_idx": 0, "obj_ids": 1, "input_masks": [{"size": [1, 2], "counts": [1, 1]}], "clear_old_inputs": false});
        let found = one(&mask).unwrap();
        let mask = Mask::new(ndarray::array![[false, true]]);
        assert_eq!(found, FramePrompts::new(0, 1, mask).keep_old_inputs());
    }

    #[test]
    fn prompts_that_do_not_fit_are_refused() {
        let refused = |given: &Json| one(given).unwrap_err().to_string();
        let few = json!({"frame_idx": 0, "obj_ids": [1, 2], "input_boxes": [[0, 0, 1, 1]]});
        assert!(refused(&few).contains("number 2 objects, but prompts are 1"));
        let both =
            json!({"frame_idx": 0, "obj_ids": 1, "input_boxes": [[0, 0, 1, 1]], "input_masks": ["a.png"]});
        assert!(refused(&both).contains("beside points or boxes"));
        let missing = json!({"frame_idx": 0, "obj_ids": 1, "input_masks": ["no/such.png"]});
        assert!(refused(&missing).contains("no/such.png"));
        let unknown =
            serde_json::from_value::<TrackingInputs>(json!({"frame_idx": 0, "obj_ids": 1, "points": []}));
        assert!(unknown.unwrap_err().to_string().contains("points"));
    }
}
