//! Object tracking: masks of objects from one frame of a video to the next, by what points, boxes or masks say of them in some.
//!
//! Reference: `Sam2VideoProcessor`, `Sam2VideoInferenceSession`, and `forward` and `propagate_in_video_iterator` of `Sam2VideoModel`.

mod draw;
mod limits;
mod memory;
mod prompts;
mod session;

use std::ops::ControlFlow;

use ndarray::Array2;
use serde::Serialize;
use serde_json::Value as Json;

pub use self::draw::draw_tracked;
pub(crate) use self::draw::video_logits;
use self::limits::Limits;
pub use self::prompts::{FramePrompts, TrackingPrompt};
pub use self::session::{Propagation, TrackedFrames, TrackingSession};
use super::builder::opened;
use super::images::ImageModel;
use super::{Pipeline, Task};
use crate::any_model::AnyModel;
use crate::image::{ImageProcessor, Mask};
use crate::video::Video;
use crate::{Error, Result};

/// Follows objects through videos.
///
/// ```no_run
/// # fn example<A: weft::Architecture>() -> weft::Result<()> {
/// use weft::tasks::{FramePrompts, MaskPrompt};
/// use weft::video::Video;
///
/// let tracker = weft::tasks::ObjectTracking::<A>::open("facebook/sam2.1-hiera-tiny")?.load()?;
/// let video = Video::open("clip.gif")?;
/// // Object 1 by a point on it, object 2 by a box around it, both in the first frame.
/// let prompts = FramePrompts::new(0, 1, MaskPrompt::point([210.0, 350.0]))
///     .with(2, MaskPrompt::bounds([300.0, 0.0, 500.0, 400.0]));
/// for frame in tracker.run(&video, &[prompts])? {
///     println!("{} {}", frame.frame_idx, frame.objects[0].mask.area());
/// }
/// # Ok(())
/// # }
/// ```
///
/// [`ObjectTracking::session`] corrects objects after they have been tracked, tracks backwards, and gives one frame after the other, and
/// [`ObjectTracking::streaming_session`] takes them so.
#[derive(Debug)]
pub struct ObjectTracking<A> {
    images: ImageModel<A>,
    /// What makes of a video's frames what the model takes, and of frames that come one by one.
    videos: ImageProcessor,
    limits: Limits,
    /// The edge of frames as the model takes them, which coordinates are scaled to, where the checkpoint says it.
    target_size: Option<usize>,
}

/// The objects of a frame (`Sam2VideoSegmentationOutput`).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TrackedFrame {
    /// The frame's index, from 0.
    pub frame_idx: usize,
    /// Its objects, in the order in which they were first prompted.
    pub objects: Vec<TrackedMask>,
}

/// An object in a frame.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TrackedMask {
    /// The number that its prompts gave it.
    pub object_id: i64,
    /// The logit of its being in the frame.
    pub object_score_logits: f32,
    /// Its pixels, of the video's size.
    pub mask: Mask,
    /// The model's logits of its mask, at a quarter of the resolution that frames are processed in: `[rows, columns]`.
    #[serde(skip)]
    pub pred_masks: Array2<f32>,
}

/// What is a mask (`post_process_masks`).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TrackingOptions {
    /// A pixel belongs to a mask where its logit is larger.
    pub mask_threshold: f32,
    /// Whether each pixel belongs to one object at most, that with the highest logit.
    pub apply_non_overlapping_constraints: bool,
}

impl<A: AnyModel> Pipeline<A> for ObjectTracking<A> {
    const TASK: Task = Task::ObjectTracking;

    fn from_model(model: A) -> Result<Self> {
        let limits = Limits::of(&model.config_json()?, model.checkpoint())?;
        let processor = model.checkpoint().json("processor_config.json")?.unwrap_or_default();
        let target_size = processor["target_size"].as_u64().and_then(|edge| usize::try_from(edge).ok());
        let own = model.checkpoint().json("video_preprocessor_config.json")?;
        let settings = own.unwrap_or_else(|| processor["video_processor"].clone());
        let images = ImageModel::new(model)?;
        let videos = images.processor.with(&of_videos(settings))?;
        Ok(Self { images, videos, limits, target_size })
    }
}

/// Of a video processor's settings those that image processors have, too.
fn of_videos(settings: Json) -> Json {
    const SHARED: [&str; 8] = [
        "do_resize",
        "size",
        "resample",
        "do_rescale",
        "rescale_factor",
        "do_normalize",
        "image_mean",
        "image_std",
    ];
    match settings {
        Json::Object(settings) => {
            Json::Object(settings.into_iter().filter(|(name, _)| SHARED.contains(&name.as_str())).collect())
        }
        _ => Json::Null,
    }
}

opened!(ObjectTracking: images.model);

impl<A: AnyModel> ObjectTracking<A> {
    /// The objects in each frame from the first one with prompts to the last; prompts are added in their order.
    ///
    /// # Errors
    /// When there are no prompts, or they do not fit the video, or the model fails.
    pub fn run(&self, video: &Video, prompts: &[FramePrompts]) -> Result<Vec<TrackedFrame>> {
        let mut found = vec![];
        self.run_with(video, prompts, &TrackingOptions::default(), &Propagation::default(), &mut |frame| {
            found.push(frame);
            ControlFlow::Continue(())
        })?;
        Ok(found)
    }

    /// The same with other than the default options, and other frames; each is handed over as soon as it is tracked, and
    /// [`ControlFlow::Break`] ends tracking.
    ///
    /// Of memory no more is kept than the frames that follow attend to.
    ///
    /// # Errors
    /// As [`ObjectTracking::run`].
    pub fn run_with(
        &self,
        video: &Video,
        prompts: &[FramePrompts],
        options: &TrackingOptions,
        propagation: &Propagation,
        on_frame: &mut dyn FnMut(TrackedFrame) -> ControlFlow<()>,
    ) -> Result<()> {
        if prompts.is_empty() {
            return Err(no_prompts());
        }
        let mut session = self.session(video, options)?;
        for prompts in prompts {
            session.add_prompts(prompts)?;
        }
        for frame in session.propagate(&Propagation { is_last: true, ..*propagation })? {
            if on_frame(frame?).is_break() {
                break;
            }
        }
        Ok(())
    }

    /// A session on a video, without objects yet (`init_video_session`).
    ///
    /// # Errors
    /// When frames are of several sizes.
    pub fn session<'a>(
        &'a self,
        video: &'a Video,
        options: &TrackingOptions,
    ) -> Result<TrackingSession<'a, A>> {
        TrackingSession::new(self, Some(video), *options)
    }

    /// A session whose frames come one by one, by [`TrackingSession::push`], as from a camera.
    ///
    /// # Errors
    /// As [`ObjectTracking::session`].
    pub fn streaming_session(&self, options: &TrackingOptions) -> Result<TrackingSession<'_, A>> {
        TrackingSession::new(self, None, *options)
    }
}

fn no_prompts() -> Error {
    let help = "say by points, a box or a mask in some frame what is tracked: give `prompts`";
    Error::input("prompts", "are none", help)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn video_processors_say_what_image_processors_say_too() {
        let settings = json!({"size": {"height": 8, "width": 8}, "video_processor_type": "Sam2VideoVideoProcessor", "fps": null});
        assert_eq!(of_videos(settings), json!({"size": {"height": 8, "width": 8}}));
        assert_eq!(of_videos(Json::Null), Json::Null);
    }
}
