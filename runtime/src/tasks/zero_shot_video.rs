//! Zero-shot classification of videos: labels that are given with the call, scored by how well a sentence about each
//! fits.
//!
//! The reference has no pipeline for it; the same is done with `XCLIPProcessor`.

use super::batches::TextModel;
use super::builder::opened;
use super::paired::PairedModel;
use super::{HypothesisOptions, Label, Pipeline, Task};
use crate::any_model::AnyModel;
use crate::image::ImageProcessor;
use crate::video::Video;
use crate::{Error, Result};

/// Labels a video with labels of one's own.
///
/// ```no_run
/// # fn example<A: weft::Architecture>() -> weft::Result<()> {
/// use weft::video::Video;
///
/// let classifier = weft::tasks::ZeroShotVideoClassification::<A>::open("microsoft/xclip-base-patch32")?.load()?;
/// for label in classifier.run(&Video::open("clip.gif")?, &["playing football", "cooking"])? {
///     println!("{} {:.3}", label.label, label.score);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct ZeroShotVideoClassification<A> {
    paired: PairedModel<A, ImageProcessor>,
}

/// How labels become sentences, and which frames are looked at.
#[derive(Clone, Debug)]
pub struct VideoOptions {
    /// The sentence, which by default is the label alone.
    pub hypothesis: HypothesisOptions,
    /// The number of frames; by default `num_frames` of `config.json`.
    pub num_frames: Option<usize>,
    /// How many frames of the video go with each that is looked at.
    pub frame_sampling_rate: usize,
}

impl Default for VideoOptions {
    fn default() -> Self {
        let hypothesis = HypothesisOptions { hypothesis_template: "{}".to_owned(), ..Default::default() };
        Self { hypothesis, num_frames: None, frame_sampling_rate: 1 }
    }
}

impl<A: AnyModel> Pipeline<A> for ZeroShotVideoClassification<A> {
    const TASK: Task = Task::ZeroShotVideoClassification;

    fn from_model(model: A) -> Result<Self> {
        let processor = ImageProcessor::from_checkpoint(model.checkpoint())?;
        Ok(Self { paired: PairedModel { text: TextModel::new(model)?, processor } })
    }
}

opened!(ZeroShotVideoClassification: paired.text.model);

impl<A: AnyModel> ZeroShotVideoClassification<A> {
    /// All labels, best first; their scores sum to 1.
    ///
    /// # Errors
    /// When there are no labels, the video is too short, or the model fails.
    pub fn run(&self, video: &Video, candidate_labels: &[&str]) -> Result<Vec<Label>> {
        self.run_with(video, candidate_labels, &VideoOptions::default())
    }

    /// The same with other than the default options.
    ///
    /// # Errors
    /// As [`ZeroShotVideoClassification::run`].
    pub fn run_with(
        &self,
        video: &Video,
        candidate_labels: &[&str],
        options: &VideoOptions,
    ) -> Result<Vec<Label>> {
        let count = options.num_frames.or_else(|| self.num_frames()).ok_or_else(|| {
            Error::input("num_frames", "is not in config.json", "say how many frames the model looks at")
        })?;
        let frames = video.sample(count, options.frame_sampling_rate)?;
        let values = self.paired.processor.process_videos(&[&frames])?;
        self.paired.scored(values, candidate_labels, &options.hypothesis, "logits_per_video")
    }

    fn num_frames(&self) -> Option<usize> {
        let config = self.paired.text.model.raw_config();
        let count = config["vision_config"]["num_frames"].as_u64().or(config["num_frames"].as_u64())?;
        usize::try_from(count).ok()
    }
}
