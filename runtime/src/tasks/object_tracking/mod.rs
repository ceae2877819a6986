//! Object tracking: masks of objects from one frame of a video to the next, by what points, boxes or masks say of them in some.
//!
//! Reference: `Sam2VideoProcessor`, `Sam2VideoInferenceSession`, and `forward` and `propagate_in_video_iterator` of `Sam2VideoModel`.

mod draw;
mod frames;
mod limits;
mod memory;
mod prompts;
mod session;

use std::ops::ControlFlow;

use ndarray::Array2;
use serde::Serialize;

pub use self::draw::draw_tracked;
pub(crate) use self::draw::video_logits;
pub(super) use self::frames::FrameProcessor;
pub(super) use self::limits::Limits;
pub(super) use self::memory::{Remembered, TrackedObject};
pub use self::prompts::{FramePrompts, TrackingPrompt};
pub use self::session::{Propagation, TrackedFrames, TrackingSession};
use super::builder::opened;
use super::{Pipeline, Task};
use crate::any_model::AnyModel;
use crate::image::Mask;
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
    model: A,
    frames: FrameProcessor,
    limits: Limits,
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
        let frames = FrameProcessor::of(model.checkpoint())?;
        Ok(Self { model, frames, limits })
    }
}

opened!(ObjectTracking: model);

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
