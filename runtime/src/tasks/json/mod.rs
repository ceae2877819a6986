//! The pipelines by name, with inputs, parameters and answers as JSON.
//!
//! Inputs and parameters are those of `transformers.pipeline`, and so are the answers; for sentence embedding
//! those of `SentenceTransformer.encode`. As there, and unlike in the typed pipelines, empty texts get an
//! answer unless the parameter `allow_empty` is false.

#[cfg(feature = "audio")]
mod audio;
#[cfg(feature = "diffusion")]
mod diffusion;
#[cfg(feature = "text")]
mod documents;
#[cfg(feature = "text")]
mod forecasting;
#[cfg(feature = "text")]
mod generation;
#[cfg(feature = "text")]
mod generative_questions;
#[cfg(all(feature = "image", feature = "text"))]
mod image_questions;
#[cfg(all(feature = "image", feature = "text"))]
mod image_scores;
#[cfg(all(feature = "image", feature = "text"))]
mod image_text;
#[cfg(feature = "image")]
mod images;
#[cfg(feature = "image")]
mod keypoints;
#[cfg(feature = "image")]
mod made_images;
#[cfg(all(feature = "text", any(feature = "audio", feature = "image")))]
mod paired;
#[cfg(any(feature = "audio", feature = "image", feature = "text"))]
mod parameters;
#[cfg(feature = "text")]
mod pipelines;
#[cfg(any(feature = "audio", feature = "image", feature = "text"))]
mod shapes;
#[cfg(all(feature = "audio", feature = "text"))]
mod speech;
#[cfg(feature = "image")]
mod text_images;
#[cfg(all(feature = "audio", feature = "text"))]
mod text_to_audio;
#[cfg(all(feature = "text", feature = "video"))]
mod video_text;

use std::ops::ControlFlow;

use serde_json::Value as Json;

use super::Pipeline;
use crate::Architecture;
use crate::any_model::DynModel;
use crate::{Error, Loader, Result, Task};

/// Told of each piece of text as it is generated; `Break` ends generating.
pub type OnText<'a> = dyn FnMut(&str) -> ControlFlow<()> + 'a;

/// A pipeline whose task is known at run time only.
pub trait JsonPipeline: Send + Sync {
    /// Answers one call: `inputs` is a text, a list of texts or what else the task takes, `parameters` an
    /// object or null.
    ///
    /// # Errors
    /// When inputs or parameters are not the task's, or the pipeline fails.
    fn run_json(&self, inputs: &Json, parameters: &Json) -> Result<Json>;

    /// As [`JsonPipeline::run_json`], and tells of the text of a single answer as it is generated, where the task
    /// generates text.
    ///
    /// # Errors
    /// As [`JsonPipeline::run_json`].
    fn run_streaming(&self, inputs: &Json, parameters: &Json, on_text: &mut OnText<'_>) -> Result<Json> {
        let _ = on_text;
        self.run_json(inputs, parameters)
    }

    /// Takes a vocoder, where the task makes waveforms of spectrograms.
    ///
    /// # Errors
    /// When it does not, or the model makes waveforms itself.
    fn set_vocoder(&mut self, vocoder: DynModel) -> Result<()> {
        let problem = format!("{} is not read by this task", vocoder.class());
        Err(Error::input("vocoder", problem, "leave it out"))
    }
}

/// Loads a checkpoint for a task by name.
///
/// ```no_run
/// # fn example<A: weft::Architecture>() -> weft::Result<()> {
/// let loader = weft::Loader::<A>::open("org/checkpoint")?;
/// let pipeline = weft::tasks::load_json("fill-mask", loader)?;
/// let answer = pipeline.run_json(&"A [MASK] text.".into(), &serde_json::json!({"top_k": 2}))?;
/// println!("{answer}");
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// When there is no such task, or the checkpoint does not fit it.
pub fn load_json<A: Architecture>(task: &str, loader: Loader<A>) -> Result<Box<dyn JsonPipeline>> {
    let task: Task = task.parse::<Task>()?.served_by::<A>();
    let head = task.head::<A>(loader.checkpoint(), loader.requested_head())?;
    json_pipeline(task, Box::new(loader.head(head).load()?))
}

/// The pipeline of a task around a model.
///
/// # Errors
/// When this build has not the features that the task needs, or the checkpoint lacks a file.
#[cfg_attr(
    not(any(feature = "text", feature = "image", feature = "audio", feature = "video")),
    expect(clippy::needless_pass_by_value, reason = "without features there is no pipeline that takes it")
)]
pub fn json_pipeline(task: Task, model: DynModel) -> Result<Box<dyn JsonPipeline>> {
    match task {
        #[cfg(feature = "text")]
        Task::FeatureExtraction => pipeline::<super::FeatureExtraction<DynModel>>(model),
        #[cfg(feature = "text")]
        Task::SentenceEmbedding => pipeline::<super::SentenceEmbedding<DynModel>>(model),
        #[cfg(feature = "text")]
        Task::FillMask => pipeline::<super::FillMask<DynModel>>(model),
        #[cfg(feature = "text")]
        Task::TextClassification => pipeline::<super::TextClassification<DynModel>>(model),
        #[cfg(feature = "text")]
        Task::ZeroShotClassification => pipeline::<super::ZeroShotClassification<DynModel>>(model),
        #[cfg(feature = "text")]
        Task::TokenClassification => pipeline::<super::TokenClassification<DynModel>>(model),
        #[cfg(feature = "text")]
        Task::QuestionAnswering => pipeline::<super::QuestionAnswering<DynModel>>(model),
        #[cfg(feature = "text")]
        Task::DocumentQuestionAnswering => pipeline::<super::DocumentQuestionAnswering<DynModel>>(model),
        #[cfg(feature = "text")]
        Task::GenerativeQuestionAnswering => pipeline::<super::GenerativeQuestionAnswering<DynModel>>(model),
        #[cfg(feature = "text")]
        Task::TimeSeriesForecasting => pipeline::<super::TimeSeriesForecasting<DynModel>>(model),
        #[cfg(feature = "text")]
        Task::TextGeneration => pipeline::<super::TextGeneration<DynModel>>(model),
        #[cfg(feature = "text")]
        Task::Text2TextGeneration => pipeline::<super::Text2TextGeneration<DynModel>>(model),
        #[cfg(feature = "text")]
        Task::Summarization => pipeline::<super::Summarization<DynModel>>(model),
        #[cfg(feature = "text")]
        Task::Translation => pipeline::<super::Translation<DynModel>>(model),
        #[cfg(feature = "image")]
        Task::ImageClassification => pipeline::<super::ImageClassification<DynModel>>(model),
        #[cfg(feature = "image")]
        Task::ImageFeatureExtraction => pipeline::<super::ImageFeatureExtraction<DynModel>>(model),
        #[cfg(feature = "image")]
        Task::ObjectDetection => pipeline::<super::ObjectDetection<DynModel>>(model),
        #[cfg(feature = "image")]
        Task::MaskGeneration => pipeline::<super::MaskGeneration<DynModel>>(model),
        #[cfg(feature = "image")]
        Task::DepthEstimation => pipeline::<super::DepthEstimation<DynModel>>(model),
        #[cfg(feature = "image")]
        Task::ImageSuperResolution => pipeline::<super::ImageSuperResolution<DynModel>>(model),
        #[cfg(feature = "image")]
        Task::ImageMatting => pipeline::<super::ImageMatting<DynModel>>(model),
        #[cfg(feature = "image")]
        Task::PoseEstimation => pipeline::<super::PoseEstimation<DynModel>>(model),
        #[cfg(feature = "image")]
        Task::KeypointDetection => pipeline::<super::KeypointDetection<DynModel>>(model),
        #[cfg(feature = "image")]
        Task::KeypointMatching => pipeline::<super::KeypointMatching<DynModel>>(model),
        #[cfg(feature = "image")]
        Task::TextDetection => pipeline::<super::TextDetection<DynModel>>(model),
        #[cfg(feature = "image")]
        Task::TextRecognition => pipeline::<super::TextRecognition<DynModel>>(model),
        #[cfg(feature = "image")]
        Task::ImageSegmentation => pipeline::<super::ImageSegmentation<DynModel>>(model),
        #[cfg(feature = "diffusion")]
        Task::TextToImage => pipeline::<super::TextToImage<DynModel>>(model),
        #[cfg(feature = "diffusion")]
        Task::ImageToImage => pipeline::<super::ImageToImage<DynModel>>(model),
        #[cfg(feature = "diffusion")]
        Task::Inpainting => pipeline::<super::Inpainting<DynModel>>(model),
        #[cfg(all(feature = "image", feature = "text"))]
        Task::ImageTextToText => pipeline::<super::ImageTextToText<DynModel>>(model),
        #[cfg(all(feature = "image", feature = "text"))]
        Task::ImageToText => pipeline::<super::ImageToText<DynModel>>(model),
        #[cfg(all(feature = "image", feature = "text"))]
        Task::ImageTextMatching => pipeline::<super::ImageTextMatching<DynModel>>(model),
        #[cfg(all(feature = "image", feature = "text"))]
        Task::VisualDocumentRetrieval => pipeline::<super::VisualDocumentRetrieval<DynModel>>(model),
        #[cfg(all(feature = "image", feature = "text"))]
        Task::VisualQuestionAnswering => pipeline::<super::VisualQuestionAnswering<DynModel>>(model),
        #[cfg(all(feature = "image", feature = "text"))]
        Task::ZeroShotImageClassification => pipeline::<super::ZeroShotImageClassification<DynModel>>(model),
        #[cfg(all(feature = "image", feature = "text"))]
        Task::ZeroShotObjectDetection => pipeline::<super::ZeroShotObjectDetection<DynModel>>(model),
        #[cfg(feature = "video")]
        Task::VideoClassification => pipeline::<super::VideoClassification<DynModel>>(model),
        #[cfg(all(feature = "text", feature = "video"))]
        Task::VideoTextToText => pipeline::<super::VideoTextToText<DynModel>>(model),
        #[cfg(all(feature = "text", feature = "video"))]
        Task::ZeroShotVideoClassification => pipeline::<super::ZeroShotVideoClassification<DynModel>>(model),
        #[cfg(feature = "audio")]
        Task::AudioClassification => pipeline::<super::AudioClassification<DynModel>>(model),
        #[cfg(all(feature = "audio", feature = "text"))]
        Task::ZeroShotAudioClassification => pipeline::<super::ZeroShotAudioClassification<DynModel>>(model),
        #[cfg(all(feature = "audio", feature = "text"))]
        Task::AutomaticSpeechRecognition => pipeline::<super::SpeechRecognition<DynModel>>(model),
        #[cfg(all(feature = "audio", feature = "text"))]
        Task::TextToAudio => pipeline::<super::TextToAudio<DynModel>>(model),
        #[allow(unreachable_patterns)]
        task => Err(absent(task)),
    }
}

fn absent(task: Task) -> Error {
    let problem = format!("this build does without what {task} needs");
    let help =
        "build weft with the features for what it takes: `text`, `image`, `audio`, `video`, `diffusion`";
    Error::input("task", problem, help)
}

#[cfg(any(feature = "audio", feature = "image", feature = "text"))]
fn pipeline<P: Pipeline<DynModel> + JsonPipeline + 'static>(
    model: DynModel,
) -> Result<Box<dyn JsonPipeline>> {
    Ok(Box::new(P::from_model(model)?))
}

/// Loads a checkpoint for a task by name and answers one call.
///
/// # Errors
/// As [`load_json`] and [`JsonPipeline::run_json`].
pub fn run_json<A: Architecture>(
    task: &str,
    loader: Loader<A>,
    inputs: &Json,
    parameters: &Json,
) -> Result<Json> {
    load_json(task, loader)?.run_json(inputs, parameters)
}
