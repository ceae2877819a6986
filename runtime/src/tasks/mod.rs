//! Pipelines (`transformers.pipeline`), typed: text, images, video and audio in, structured results out.
//!
//! Each is opened like a model and has the reference's defaults and result shapes:
//!
//! ```no_run
//! # fn example<A: weft::Architecture>() -> weft::Result<()> {
//! use weft::tasks::TextClassification;
//!
//! let classifier = TextClassification::<A>::open("org/checkpoint")?.hardware(weft::Hardware::Cpu).load()?;
//! let best = &classifier.run("A fine film.")?[0];
//! println!("{} {}", best.label, best.score);
//! # Ok(())
//! # }
//! ```
//!
//! Text that is empty, or longer than the model's positions, is an error; [`TextOptions`] and [`GenerationOptions`] say
//! otherwise.

mod audio;
mod audio_classification;
mod batches;
mod builder;
mod characters;
mod embedding;
mod feature_extraction;
mod fill_mask;
mod heads;
mod hypotheses;
mod image_classification;
mod image_feature_extraction;
mod image_text_to_text;
mod images;
mod json;
mod labels;
mod object_detection;
mod question_answering;
mod scores;
mod speech_recognition;
mod text_classification;
mod text_generation;
mod text_to_text;
mod token_classification;
mod zero_shot_audio;
mod zero_shot_text;
mod zero_shot_vision;

pub use crate::ScoreFunction;
pub use crate::task::Task;
pub use audio_classification::{AudioClassification, AudioClassificationOptions};
pub use batches::TextOptions;
pub use builder::{Pipeline, PipelineBuilder};
pub use embedding::{EmbeddingOptions, Pooling, PoolingMode, SentenceEmbedding, Similarity};
pub use feature_extraction::{FeatureExtraction, FeatureOptions};
pub use fill_mask::{Candidate, FillMask, FillMaskOptions, Filled};
pub use image_classification::{ImageClassification, ImageClassificationOptions};
pub use image_feature_extraction::{ImageFeatureExtraction, ImageFeatureOptions};
pub use image_text_to_text::ImageTextToText;
pub(crate) use json::json_pipeline;
pub use json::{JsonPipeline, load_json, run_json};
pub use object_detection::{Bounds, Detection, DetectionOptions, ObjectDetection, draw};
pub use question_answering::{Answer, Question, QuestionAnswering, QuestionOptions};
pub use speech_recognition::{SpeechOptions, SpeechRecognition, TimedText, Timestamps, Transcript};
pub use text_classification::{ClassificationOptions, Label, TextClassification};
pub use text_generation::{GeneratedChat, GeneratedText, GenerationOptions, OnText, TextGeneration};
pub use text_to_text::{Rewritten, Summarization, Summary, Text2TextGeneration, Translated, Translation};
pub use token_classification::{Aggregation, Entity, TokenClassification, TokenOptions};
pub use zero_shot_audio::ZeroShotAudioClassification;
pub use zero_shot_text::{ZeroShotClassification, ZeroShotOptions};
pub use zero_shot_vision::{
    HypothesisOptions, VideoOptions, ZeroShotImageClassification, ZeroShotVideoClassification,
};
