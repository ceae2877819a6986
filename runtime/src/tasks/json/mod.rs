//! The pipelines by name, with inputs, parameters and answers as JSON.
//!
//! Inputs and parameters are those of `transformers.pipeline`, and so are the answers; for sentence embedding
//! those of `SentenceTransformer.encode`. As there, and unlike in the typed pipelines, empty texts get an
//! answer unless the parameter `allow_empty` is false.

mod audio;
mod generation;
mod image_text;
mod images;
mod parameters;
mod pipelines;

use serde_json::Value as Json;

use super::{
    AudioClassification, FeatureExtraction, FillMask, ImageClassification, ImageFeatureExtraction,
    ImageTextToText, ObjectDetection, OnText, Pipeline, QuestionAnswering, SentenceEmbedding,
    SpeechRecognition, Summarization, Task, Text2TextGeneration, TextClassification, TextGeneration,
    TokenClassification, Translation, ZeroShotAudioClassification, ZeroShotClassification,
    ZeroShotImageClassification, ZeroShotVideoClassification,
};
use crate::Architecture;
use crate::any_model::DynModel;
use crate::{Loader, Result};

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
    let task: Task = task.parse()?;
    let head = task.head::<A>(loader.checkpoint(), loader.requested_head())?;
    json_pipeline(task, Box::new(loader.head(head).load()?))
}

/// The pipeline of a task around a model.
pub(crate) fn json_pipeline(task: Task, model: DynModel) -> Result<Box<dyn JsonPipeline>> {
    Ok(match task {
        Task::FeatureExtraction => Box::new(FeatureExtraction::from_model(model)?),
        Task::SentenceEmbedding => Box::new(SentenceEmbedding::from_model(model)?),
        Task::FillMask => Box::new(FillMask::from_model(model)?),
        Task::TextClassification => Box::new(TextClassification::from_model(model)?),
        Task::ZeroShotClassification => Box::new(ZeroShotClassification::from_model(model)?),
        Task::TokenClassification => Box::new(TokenClassification::from_model(model)?),
        Task::QuestionAnswering => Box::new(QuestionAnswering::from_model(model)?),
        Task::TextGeneration => Box::new(TextGeneration::from_model(model)?),
        Task::Text2TextGeneration => Box::new(Text2TextGeneration::from_model(model)?),
        Task::Summarization => Box::new(Summarization::from_model(model)?),
        Task::Translation => Box::new(Translation::from_model(model)?),
        Task::ImageClassification => Box::new(ImageClassification::from_model(model)?),
        Task::ImageTextToText => Box::new(ImageTextToText::from_model(model)?),
        Task::ImageFeatureExtraction => Box::new(ImageFeatureExtraction::from_model(model)?),
        Task::ObjectDetection => Box::new(ObjectDetection::from_model(model)?),
        Task::ZeroShotImageClassification => Box::new(ZeroShotImageClassification::from_model(model)?),
        Task::ZeroShotVideoClassification => Box::new(ZeroShotVideoClassification::from_model(model)?),
        Task::AutomaticSpeechRecognition => Box::new(SpeechRecognition::from_model(model)?),
        Task::AudioClassification => Box::new(AudioClassification::from_model(model)?),
        Task::ZeroShotAudioClassification => Box::new(ZeroShotAudioClassification::from_model(model)?),
    })
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
