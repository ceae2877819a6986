//! Video classification: labels for a video.
//!
//! Reference: `VideoClassificationPipeline`.

use super::builder::opened;
use super::images::ImageModel;
use super::labels::Labels;
use super::outputs::output;
use super::{Label, Pipeline, ScoreFunction, Task};
use crate::any_model::AnyModel;
use crate::video::Video;
use crate::{Error, Result};

/// Labels a video.
///
/// ```no_run
/// # fn example<A: weft::Architecture>() -> weft::Result<()> {
/// use weft::video::Video;
///
/// let classifier =
///     weft::tasks::VideoClassification::<A>::open("MCG-NJU/videomae-base-finetuned-kinetics")?.load()?;
/// for label in classifier.run(&Video::open("clip.gif")?)? {
///     println!("{} {:.3}", label.label, label.score);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct VideoClassification<A> {
    images: ImageModel<A>,
    labels: Labels,
}

/// Which frames are looked at, and how labels are scored and chosen.
#[derive(Clone, Debug)]
pub struct VideoClassificationOptions {
    /// The number of labels, best first; `None` for all of them.
    pub top_k: Option<usize>,
    /// How logits become scores; by default as `problem_type` says, or else softmax.
    pub function_to_apply: Option<ScoreFunction>,
    /// The number of frames; by default `num_frames` of `config.json`.
    pub num_frames: Option<usize>,
    /// How many frames of the video go with each that is looked at.
    pub frame_sampling_rate: usize,
}

impl Default for VideoClassificationOptions {
    fn default() -> Self {
        Self { top_k: Some(5), function_to_apply: None, num_frames: None, frame_sampling_rate: 1 }
    }
}

impl<A: AnyModel> Pipeline<A> for VideoClassification<A> {
    const TASK: Task = Task::VideoClassification;

    fn from_model(model: A) -> Result<Self> {
        let labels = Labels::read(model.raw_config());
        Ok(Self { images: ImageModel::new(model)?, labels })
    }
}

opened!(VideoClassification: images.model);

impl<A: AnyModel> VideoClassification<A> {
    /// The five best labels of a video, best first.
    ///
    /// # Errors
    /// When the video is too short, or the model fails.
    pub fn run(&self, video: &Video) -> Result<Vec<Label>> {
        self.run_with(video, &VideoClassificationOptions::default())
    }

    /// The same with other than the default options.
    ///
    /// # Errors
    /// As [`VideoClassification::run`].
    pub fn run_with(&self, video: &Video, options: &VideoClassificationOptions) -> Result<Vec<Label>> {
        let config = self.images.model.raw_config();
        let configured = || config["num_frames"].as_u64().and_then(|count| usize::try_from(count).ok());
        let count = options.num_frames.or_else(configured).ok_or_else(|| {
            Error::input("num_frames", "is not in config.json", "say how many frames the model looks at")
        })?;
        let frames = video.sample(count, options.frame_sampling_rate)?;
        let values = self.images.inputs(self.images.processor.process_videos(&[&frames])?);
        let values = self.images.model.run(values)?;
        let logits = output(&values, "logits")?;
        let logits = logits.index_axis(ndarray::Axis(0), 0).to_owned();
        // One label alone is scored by the softmax too, unlike those of images.
        let by_problem = match config["problem_type"].as_str() {
            Some("regression") => ScoreFunction::None,
            Some("multi_label_classification") => ScoreFunction::Sigmoid,
            _ => ScoreFunction::Softmax,
        };
        Ok(self.labels.best(&logits, options.function_to_apply.or(Some(by_problem)), options.top_k))
    }
}
