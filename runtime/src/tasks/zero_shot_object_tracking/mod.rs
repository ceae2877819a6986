//! Zero-shot object tracking: all objects that texts of the caller's own name, from one frame of a video to the next.
//!
//! Reference: `Sam3VideoProcessor`, `Sam3VideoInferenceSession`, and `forward` and `propagate_in_video_iterator` of `Sam3VideoModel`.

mod association;
mod frames;
mod masks;
mod session;
mod thresholds;

use std::ops::ControlFlow;

use serde::Serialize;

pub use self::frames::ConceptFrames;
pub use self::session::ConceptSession;
use self::thresholds::Thresholds;
use super::batches::TextModel;
use super::builder::opened;
use super::object_tracking::{FrameProcessor, Limits};
use super::{Bounds, Pipeline, Propagation, Task};
use crate::any_model::AnyModel;
use crate::image::{Image, Mask};
use crate::video::Video;
use crate::{GraphKind, Result};

/// Follows all objects that texts name through videos (promptable concept segmentation).
///
/// ```no_run
/// # fn example<A: weft::Architecture>() -> weft::Result<()> {
/// use weft::video::Video;
///
/// let tracker = weft::tasks::ZeroShotObjectTracking::<A>::open("facebook/sam3")?.load()?;
/// let video = Video::open("clip.gif")?;
/// for frame in tracker.run(&video, &["person", "red car"])? {
///     for object in &frame.objects {
///         println!("{} {} {:.3} {:?}", frame.frame_idx, object.label, object.score, object.bounds);
///     }
/// }
/// # Ok(())
/// # }
/// ```
///
/// Answers wait some frames (`hotstart_delay`), in which objects are dropped that the detector does not confirm.
/// [`ZeroShotObjectTracking::session`] gives one frame after the other, and [`ZeroShotObjectTracking::streaming_session`] takes them so,
/// without waiting and dropping.
#[derive(Debug)]
pub struct ZeroShotObjectTracking<A> {
    text: TextModel<A>,
    frames: FrameProcessor,
    limits: Limits,
    thresholds: Thresholds,
}

/// The objects of a frame (`Sam3VideoProcessor.postprocess_outputs`).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ConceptFrame {
    /// The frame's index, from 0.
    pub frame_idx: usize,
    /// Its objects, in the order in which they were found.
    pub objects: Vec<ConceptObject>,
}

/// An object in a frame that a text names.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ConceptObject {
    /// Its number, from 0, the same in all frames.
    pub object_id: i64,
    /// The text that names it.
    pub label: String,
    /// How sure the detector was of it where it found it first.
    pub score: f32,
    /// The outermost pixels of its mask, before pixels that belong to others are left out.
    #[serde(rename = "box")]
    pub bounds: Bounds,
    /// Its pixels, of the video's size.
    pub mask: Mask,
}

/// What is done with masks where the reference uses kernels of a package of its own (`kernels-community/cv-utils`), and leaves it out
/// without that package.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConceptOptions {
    /// Whether only the surer of two detections that overlap is kept (`det_nms_thresh` of the configuration).
    pub suppress_overlapping: bool,
    /// Whether small holes of masks are filled and small specks removed (`fill_hole_area`).
    pub fill_holes: bool,
}

impl Default for ConceptOptions {
    fn default() -> Self {
        Self { suppress_overlapping: true, fill_holes: true }
    }
}

impl<A: AnyModel> Pipeline<A> for ZeroShotObjectTracking<A> {
    const TASK: Task = Task::ZeroShotObjectTracking;

    fn from_model(model: A) -> Result<Self> {
        let config = model.config_json()?;
        let limits = Limits::of(&config["tracker_config"], model.checkpoint())?;
        let thresholds = Thresholds::of(&config, model.checkpoint())?;
        let frames = FrameProcessor::of(model.checkpoint())?;
        Ok(Self { text: TextModel::new(model)?, frames, limits, thresholds })
    }
}

opened!(ZeroShotObjectTracking: text.model);

impl<A: AnyModel> ZeroShotObjectTracking<A> {
    /// What the texts name in each frame of a video.
    ///
    /// # Errors
    /// When there are no texts, one is longer than the model's positions, frames have several sizes, or the model fails.
    pub fn run(&self, video: &Video, candidate_labels: &[&str]) -> Result<Vec<ConceptFrame>> {
        let mut found = vec![];
        let (options, propagation) = (ConceptOptions::default(), Propagation::default());
        self.run_with(video, candidate_labels, &options, &propagation, &mut |frame| {
            found.push(frame);
            ControlFlow::Continue(())
        })?;
        Ok(found)
    }

    /// The same with other than the default options, and other frames; each is handed over as soon as its answer is known, and
    /// [`ControlFlow::Break`] ends tracking.
    ///
    /// # Errors
    /// As [`ZeroShotObjectTracking::run`], and when there is no such frame.
    pub fn run_with(
        &self,
        video: &Video,
        candidate_labels: &[&str],
        options: &ConceptOptions,
        propagation: &Propagation,
        on_frame: &mut dyn FnMut(ConceptFrame) -> ControlFlow<()>,
    ) -> Result<()> {
        for frame in self.session(video, candidate_labels, options)?.propagate(propagation)? {
            if on_frame(frame?).is_break() {
                break;
            }
        }
        Ok(())
    }

    /// A video that is tracked through one frame after the other.
    ///
    /// # Errors
    /// As [`ZeroShotObjectTracking::run`].
    pub fn session<'a>(
        &'a self,
        video: &'a Video,
        candidate_labels: &[&str],
        options: &ConceptOptions,
    ) -> Result<ConceptSession<'a, A>> {
        ConceptSession::new(self, Some(video), candidate_labels, *options)
    }

    /// A video whose frames come one by one.
    ///
    /// # Errors
    /// When there are no texts, or one is longer than the model's positions.
    pub fn streaming_session(
        &self,
        candidate_labels: &[&str],
        options: &ConceptOptions,
    ) -> Result<ConceptSession<'_, A>> {
        ConceptSession::new(self, None, candidate_labels, *options)
    }

    fn run_graph(&self, kind: GraphKind, values: crate::Values) -> Result<crate::Values> {
        self.text.model.run_graph(kind, values)
    }
}

/// A copy of a frame with the masks of its objects, a colour for each, and what they are.
pub fn draw_concepts(image: &Image, frame: &ConceptFrame) -> Image {
    let mut image = image.clone();
    let colour =
        |object: &ConceptObject| usize::try_from(object.object_id.unsigned_abs()).unwrap_or_default();
    for object in &frame.objects {
        image.draw_mask(&object.mask, colour(object));
    }
    for object in &frame.objects {
        let place = (object.bounds.xmin, object.bounds.ymin);
        image.draw_name(place, colour(object), &format!("{} {}", object.label, object.object_id));
    }
    image
}
