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
#[cfg(feature = "video")]
mod object_tracking;
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
#[cfg(all(feature = "text", feature = "video"))]
mod zero_shot_object_tracking;

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

    /// Takes a smaller model that drafts (`assistant_model`), where the task generates text.
    ///
    /// # Errors
    /// When the task does not, or its tokens are others.
    fn set_assistant(&mut self, assistant: DynModel) -> Result<()> {
        let problem = format!("{} is not asked by this task", assistant.class());
        Err(Error::input("assistant_model", problem, "leave it out"))
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

/// The pipeline of each task, of those that are offered.
macro_rules! pipelines {
    ($offered:ident, $task:ident, $model:ident, $(#[$feature:meta] $name:ident => $pipeline:ident,)*) => {
        match $task {
            $(
                #[$feature]
                Task::$name if const { among($offered::TASKS, Task::$name) } => {
                    pipeline::<super::$pipeline<DynModel>>($model)
                }
            )*
            task => Err(absent(task)),
        }
    };
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
    json_pipeline(task, Box::new(loader.head(head).ready(task.first_graphs()).load()?))
}

/// The pipeline of a task around a model.
///
/// # Errors
/// When this build has not the features that the task needs, or the checkpoint lacks a file.
pub fn json_pipeline(task: Task, model: DynModel) -> Result<Box<dyn JsonPipeline>> {
    json_pipeline_among::<AllTasks>(task, model)
}

/// The tasks that a program offers, for [`json_pipeline_among`].
pub trait OfferedTasks {
    /// The tasks.
    const TASKS: &'static [Task];
}

/// Every task.
#[derive(Clone, Copy, Debug)]
pub struct AllTasks;

impl OfferedTasks for AllTasks {
    const TASKS: &'static [Task] = &Task::ALL;
}

/// As [`json_pipeline`], of some tasks alone: a program that calls no other is built without the pipelines of the rest.
///
/// # Errors
/// As [`json_pipeline`], and when the task is none of them.
#[cfg_attr(
    not(any(feature = "text", feature = "image", feature = "audio", feature = "video")),
    expect(clippy::needless_pass_by_value, reason = "without features there is no pipeline that takes it")
)]
pub fn json_pipeline_among<S: OfferedTasks>(task: Task, model: DynModel) -> Result<Box<dyn JsonPipeline>> {
    pipelines! { S, task, model,
        #[cfg(feature = "text")]
        FeatureExtraction => FeatureExtraction,
        #[cfg(feature = "text")]
        SentenceEmbedding => SentenceEmbedding,
        #[cfg(feature = "text")]
        FillMask => FillMask,
        #[cfg(feature = "text")]
        TextClassification => TextClassification,
        #[cfg(feature = "text")]
        ZeroShotClassification => ZeroShotClassification,
        #[cfg(feature = "text")]
        TokenClassification => TokenClassification,
        #[cfg(feature = "text")]
        QuestionAnswering => QuestionAnswering,
        #[cfg(feature = "text")]
        DocumentQuestionAnswering => DocumentQuestionAnswering,
        #[cfg(feature = "text")]
        GenerativeQuestionAnswering => GenerativeQuestionAnswering,
        #[cfg(feature = "text")]
        TimeSeriesForecasting => TimeSeriesForecasting,
        #[cfg(feature = "text")]
        TextGeneration => TextGeneration,
        #[cfg(feature = "text")]
        Text2TextGeneration => Text2TextGeneration,
        #[cfg(feature = "text")]
        Summarization => Summarization,
        #[cfg(feature = "text")]
        Translation => Translation,
        #[cfg(feature = "image")]
        ImageClassification => ImageClassification,
        #[cfg(feature = "image")]
        ImageFeatureExtraction => ImageFeatureExtraction,
        #[cfg(feature = "image")]
        ObjectDetection => ObjectDetection,
        #[cfg(feature = "image")]
        MaskGeneration => MaskGeneration,
        #[cfg(feature = "image")]
        DepthEstimation => DepthEstimation,
        #[cfg(feature = "image")]
        ImageSuperResolution => ImageSuperResolution,
        #[cfg(feature = "image")]
        ImageMatting => ImageMatting,
        #[cfg(feature = "image")]
        PoseEstimation => PoseEstimation,
        #[cfg(feature = "image")]
        KeypointDetection => KeypointDetection,
        #[cfg(feature = "image")]
        KeypointMatching => KeypointMatching,
        #[cfg(feature = "image")]
        TextDetection => TextDetection,
        #[cfg(feature = "image")]
        TextRecognition => TextRecognition,
        #[cfg(feature = "image")]
        ImageSegmentation => ImageSegmentation,
        #[cfg(feature = "diffusion")]
        TextToImage => TextToImage,
        #[cfg(feature = "diffusion")]
        ImageToImage => ImageToImage,
        #[cfg(feature = "diffusion")]
        Inpainting => Inpainting,
        #[cfg(all(feature = "image", feature = "text"))]
        ImageTextToText => ImageTextToText,
        #[cfg(all(feature = "image", feature = "text"))]
        ImageToText => ImageToText,
        #[cfg(all(feature = "image", feature = "text"))]
        ImageTextMatching => ImageTextMatching,
        #[cfg(all(feature = "image", feature = "text"))]
        VisualDocumentRetrieval => VisualDocumentRetrieval,
        #[cfg(all(feature = "image", feature = "text"))]
        VisualQuestionAnswering => VisualQuestionAnswering,
        #[cfg(all(feature = "image", feature = "text"))]
        ZeroShotImageClassification => ZeroShotImageClassification,
        #[cfg(all(feature = "image", feature = "text"))]
        ZeroShotObjectDetection => ZeroShotObjectDetection,
        #[cfg(feature = "video")]
        VideoClassification => VideoClassification,
        #[cfg(feature = "video")]
        ObjectTracking => ObjectTracking,
        #[cfg(all(feature = "text", feature = "video"))]
        ZeroShotObjectTracking => ZeroShotObjectTracking,
        #[cfg(all(feature = "text", feature = "video"))]
        VideoTextToText => VideoTextToText,
        #[cfg(all(feature = "text", feature = "video"))]
        ZeroShotVideoClassification => ZeroShotVideoClassification,
        #[cfg(feature = "audio")]
        AudioClassification => AudioClassification,
        #[cfg(all(feature = "audio", feature = "text"))]
        ZeroShotAudioClassification => ZeroShotAudioClassification,
        #[cfg(all(feature = "audio", feature = "text"))]
        AutomaticSpeechRecognition => SpeechRecognition,
        #[cfg(all(feature = "audio", feature = "text"))]
        TextToAudio => TextToAudio,
    }
}

/// Whether a task is among some, known when it is compiled.
const fn among(tasks: &[Task], task: Task) -> bool {
    let mut index = 0;
    while index < tasks.len() {
        if tasks[index] as u8 == task as u8 {
            return true;
        }
        index += 1;
    }
    false
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
