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

#[cfg(feature = "text")]
mod assistant;
#[cfg(feature = "audio")]
mod audio;
#[cfg(feature = "audio")]
mod audio_classification;
#[cfg(feature = "text")]
mod batches;
mod builder;
mod calibrate;
#[cfg(feature = "text")]
mod characters;
#[cfg(feature = "image")]
mod depth_estimation;
#[cfg(feature = "text")]
mod document_question_answering;
#[cfg(feature = "text")]
mod embedding;
#[cfg(feature = "text")]
mod feature_extraction;
#[cfg(feature = "text")]
mod fill_mask;
#[cfg(feature = "text")]
mod forecasting;
#[cfg(feature = "text")]
mod generative_question_answering;
mod heads;
#[cfg(feature = "text")]
mod hypotheses;
#[cfg(feature = "image")]
mod image_classification;
#[cfg(feature = "image")]
mod image_feature_extraction;
#[cfg(feature = "image")]
mod image_matting;
#[cfg(feature = "image")]
mod image_segmentation;
#[cfg(feature = "image")]
mod image_super_resolution;
#[cfg(all(feature = "image", feature = "text"))]
mod image_text_matching;
#[cfg(all(feature = "image", feature = "text"))]
mod image_text_to_text;
#[cfg(all(feature = "image", feature = "text"))]
mod image_to_text;
#[cfg(feature = "image")]
mod images;
#[cfg(any(feature = "image", feature = "text"))]
mod inputs;
mod json;
#[cfg(feature = "image")]
mod keypoint_detection;
#[cfg(feature = "image")]
mod keypoint_matching;
#[cfg(any(feature = "audio", feature = "image", feature = "text"))]
mod labels;
#[cfg(feature = "image")]
mod mask_generation;
#[cfg(feature = "image")]
mod object_detection;
#[cfg(feature = "video")]
mod object_tracking;
#[cfg(any(feature = "audio", feature = "image", feature = "text"))]
mod outputs;
#[cfg(all(feature = "text", any(feature = "audio", feature = "image")))]
mod paired;
#[cfg(feature = "image")]
mod pose_estimation;
#[cfg(feature = "text")]
mod question_answering;
#[cfg(any(feature = "audio", feature = "image", feature = "text"))]
mod scores;
#[cfg(all(feature = "audio", feature = "text"))]
mod speech_recognition;
#[cfg(feature = "text")]
mod text_classification;
#[cfg(feature = "image")]
mod text_detection;
#[cfg(feature = "text")]
mod text_generation;
#[cfg(feature = "image")]
mod text_recognition;
#[cfg(all(feature = "audio", feature = "text"))]
mod text_to_audio;
#[cfg(feature = "diffusion")]
mod text_to_image;
#[cfg(feature = "text")]
mod text_to_text;
#[cfg(feature = "text")]
mod token_classification;
#[cfg(feature = "video")]
mod video_classification;
#[cfg(all(feature = "text", feature = "video"))]
mod video_text_to_text;
#[cfg(all(feature = "image", feature = "text"))]
mod visual_document_retrieval;
#[cfg(all(feature = "image", feature = "text"))]
mod visual_question_answering;
#[cfg(all(feature = "audio", feature = "text"))]
mod zero_shot_audio;
#[cfg(all(feature = "image", feature = "text"))]
mod zero_shot_image;
#[cfg(all(feature = "text", feature = "video"))]
mod zero_shot_object_tracking;
#[cfg(all(feature = "image", feature = "text"))]
mod zero_shot_objects;
#[cfg(feature = "text")]
mod zero_shot_text;
#[cfg(all(feature = "text", feature = "video"))]
mod zero_shot_video;

pub use crate::ScoreFunction;
pub use crate::task::Task;
#[cfg(feature = "audio")]
pub use audio_classification::{AudioClassification, AudioClassificationOptions};
#[cfg(feature = "text")]
pub use batches::TextOptions;
pub use builder::{Pipeline, PipelineBuilder};
pub use calibrate::calibration_inputs;
#[cfg(feature = "image")]
pub use depth_estimation::{Depth, DepthEstimation, DepthOptions, predicted_depth};
#[cfg(feature = "text")]
pub use document_question_answering::{
    DocumentAnswer, DocumentQuestionAnswering, DocumentQuestionOptions, WordBox,
};
#[cfg(feature = "text")]
pub use embedding::{EmbeddingOptions, Pooling, PoolingMode, SentenceEmbedding, Similarity};
#[cfg(feature = "text")]
pub use feature_extraction::{FeatureExtraction, FeatureOptions};
#[cfg(feature = "text")]
pub use fill_mask::{Candidate, FillMask, FillMaskOptions, Filled};
#[cfg(feature = "text")]
pub use forecasting::{Forecast, ForecastOptions, Quantile, TimeSeries, TimeSeriesForecasting};
#[cfg(feature = "text")]
pub use generative_question_answering::{GeneratedAnswer, GenerativeQuestionAnswering, RetrievedPassage};
#[cfg(feature = "image")]
pub use image_classification::{ImageClassification, ImageClassificationOptions};
#[cfg(feature = "image")]
pub use image_feature_extraction::{ImageFeatureExtraction, ImageFeatureOptions};
#[cfg(feature = "image")]
pub use image_matting::{ImageMatting, Matte};
#[cfg(feature = "image")]
pub use image_segmentation::{
    ImageSegmentation, MaskQueries, QuerySegment, Segment, SegmentationOptions, Subtask, draw_segments,
    semantic_map,
};
#[cfg(feature = "image")]
pub use image_super_resolution::{ImageSuperResolution, SuperResolved};
#[cfg(all(feature = "image", feature = "text"))]
pub use image_text_matching::{ImageTextMatching, TextMatch};
#[cfg(all(feature = "image", feature = "text"))]
pub use image_text_to_text::ImageTextToText;
#[cfg(all(feature = "image", feature = "text"))]
pub use image_to_text::{Caption, ImageToText};
pub use json::{
    AllTasks, JsonPipeline, OfferedTasks, OnText, json_pipeline, json_pipeline_among, load_json, run_json,
};
#[cfg(feature = "image")]
pub use keypoint_detection::{KeypointDetection, Keypoints, draw_keypoints};
#[cfg(feature = "image")]
pub use keypoint_matching::{Keypoint, KeypointMatch, KeypointMatching, draw_matches};
#[cfg(any(feature = "audio", feature = "image", feature = "text"))]
pub use labels::Label;
#[cfg(feature = "image")]
pub use mask_generation::{GeneratedMask, MaskGeneration, MaskOptions, MaskPrompt, draw_masks};
#[cfg(feature = "image")]
pub use object_detection::{Bounds, Detection, DetectionOptions, ObjectDetection, draw};
#[cfg(feature = "video")]
pub use object_tracking::{
    FramePrompts, ObjectTracking, Propagation, TrackedFrame, TrackedFrames, TrackedMask, TrackingOptions,
    TrackingPrompt, TrackingSession, draw_tracked,
};
#[cfg(all(feature = "text", any(feature = "audio", feature = "image")))]
pub use paired::HypothesisOptions;
#[cfg(feature = "image")]
pub use pose_estimation::{Pose, PoseEstimation, PoseOptions, draw_poses};
#[cfg(feature = "text")]
pub use question_answering::{Answer, Question, QuestionAnswering, QuestionOptions};
#[cfg(all(feature = "audio", feature = "text"))]
pub use speech_recognition::{SpeechOptions, SpeechRecognition, TimedText, Timestamps, Transcript};
#[cfg(feature = "text")]
pub use text_classification::{ClassificationOptions, TextClassification};
#[cfg(feature = "image")]
pub use text_detection::{DetectedText, TextDetection, TextDetectionOptions, draw_texts};
#[cfg(feature = "text")]
pub use text_generation::{GeneratedChat, GeneratedText, GenerationOptions, TextGeneration};
#[cfg(feature = "image")]
pub use text_recognition::{RecognizedText, TextRecognition};
#[cfg(all(feature = "audio", feature = "text"))]
pub use text_to_audio::{TextToAudio, TextToAudioOptions, read_speaker_embeddings};
#[cfg(feature = "diffusion")]
pub use text_to_image::{
    DenoisingStep, GeneratedImage, ImageToImage, ImageToImageOptions, Inpainting, TextToImage,
    TextToImageOptions,
};
#[cfg(feature = "text")]
pub use text_to_text::{Rewritten, Summarization, Summary, Text2TextGeneration, Translated, Translation};
#[cfg(feature = "text")]
pub use token_classification::{Aggregation, Entity, TokenClassification, TokenOptions};
#[cfg(feature = "video")]
pub use video_classification::{VideoClassification, VideoClassificationOptions};
#[cfg(all(feature = "text", feature = "video"))]
pub use video_text_to_text::{VideoTextOptions, VideoTextToText};
#[cfg(all(feature = "image", feature = "text"))]
pub use visual_document_retrieval::{VisualDocumentRetrieval, score_multi_vector};
#[cfg(all(feature = "image", feature = "text"))]
pub use visual_question_answering::{VisualAnswer, VisualQuestionAnswering, VisualQuestionOptions};
#[cfg(all(feature = "audio", feature = "text"))]
pub use zero_shot_audio::ZeroShotAudioClassification;
#[cfg(all(feature = "image", feature = "text"))]
pub use zero_shot_image::ZeroShotImageClassification;
#[cfg(all(feature = "text", feature = "video"))]
pub use zero_shot_object_tracking::{
    ConceptFrame, ConceptFrames, ConceptObject, ConceptOptions, ConceptSession, ZeroShotObjectTracking,
    draw_concepts,
};
#[cfg(all(feature = "image", feature = "text"))]
pub use zero_shot_objects::{ZeroShotDetectionOptions, ZeroShotObjectDetection};
#[cfg(feature = "text")]
pub use zero_shot_text::{ZeroShotClassification, ZeroShotOptions};
#[cfg(all(feature = "text", feature = "video"))]
pub use zero_shot_video::{VideoOptions, ZeroShotVideoClassification};
