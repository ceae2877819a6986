//! The pipeline that follows what texts name: inputs are paths of videos.

use std::ops::ControlFlow;

use serde_json::{Value as Json, json};

use super::images::paths;
use super::parameters::Parameters;
use super::shapes::{shaped, texts, to_json};
use super::{JsonPipeline, OnText};
use crate::any_model::DynModel;
use crate::tasks::{ConceptOptions, Propagation, ZeroShotObjectTracking, draw_concepts};
use crate::video::{FrameWriter, Video};
use crate::{Error, Result};

impl JsonPipeline for ZeroShotObjectTracking<DynModel> {
    fn run_json(&self, inputs: &Json, parameters: &Json) -> Result<Json> {
        self.run_streaming(inputs, parameters, &mut |_| ControlFlow::Continue(()))
    }

    /// Tells of frames as they are tracked, where they are written to a file or a folder.
    fn run_streaming(&self, inputs: &Json, parameters: &Json, on_text: &mut OnText<'_>) -> Result<Json> {
        let parameters = Parameters::new(parameters)?;
        let defaults = ConceptOptions::default();
        let labels: Json = parameters.get("candidate_labels")?.unwrap_or_else(|| json!([]));
        let options = ConceptOptions {
            suppress_overlapping: parameters
                .get("suppress_overlapping")?
                .unwrap_or(defaults.suppress_overlapping),
            fill_holes: parameters.get("fill_holes")?.unwrap_or(defaults.fill_holes),
        };
        let propagation = Propagation {
            start_frame_idx: parameters.get("start_frame_idx")?,
            max_frame_num_to_track: parameters.get("max_frame_num_to_track")?,
            reverse: parameters.get("reverse")?.unwrap_or_default(),
            is_last: true,
        };
        let out: Option<String> = parameters.get("out")?;
        parameters.finish()?;
        let (labels, paths) = (texts(&labels)?, paths(inputs)?);
        if out.is_some() && paths.len() > 1 {
            let problem = format!("is one file for {} videos", paths.len());
            return Err(Error::input("out", problem, "give one video, or leave it out"));
        }
        let mut writer = out.map(FrameWriter::create).transpose()?;
        let mut results = vec![];
        for path in paths {
            let video = Video::open(path)?;
            let mut session = self.session(&video, &labels, &options)?;
            let frames = session.propagate(&propagation)?;
            let (count, mut found) = (frames.len(), vec![]);
            for frame in frames {
                let frame = frame?;
                found.push(to_json(&frame)?);
                let (Some(writer), Some(image)) = (&mut writer, video.frames().get(frame.frame_idx)) else {
                    continue;
                };
                writer.write(frame.frame_idx, &draw_concepts(image, &frame))?;
                if on_text(&format!("\nframe {} of {count}", found.len())).is_break() {
                    break;
                }
            }
            results.push(found);
        }
        shaped(inputs, results)
    }
}
