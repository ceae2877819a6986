//! The tasks by the names that `transformers.pipeline` gives them.

use std::fmt;
use std::str::FromStr;

use crate::{Error, Result};

/// A task, by the reference's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Task {
    /// The hidden states of each token.
    FeatureExtraction,
    /// One vector for each text, as `sentence-transformers` makes it.
    SentenceEmbedding,
    /// Tokens for the gaps of a text.
    FillMask,
    /// Labels for a text or a pair of texts.
    TextClassification,
    /// Labels of the caller's own for a text.
    ZeroShotClassification,
    /// Labels for tokens, or for words and names put together from them.
    TokenClassification,
    /// The part of a context that answers a question.
    QuestionAnswering,
    /// What follows a text, or the answer to a chat.
    TextGeneration,
    /// A text for another one.
    Text2TextGeneration,
    /// A summary of a text.
    Summarization,
    /// A text in another language.
    Translation,
    /// Labels for an image.
    ImageClassification,
    /// The hidden states of an image's patches, or one vector for it.
    ImageFeatureExtraction,
    /// What is in an image, and where.
    ObjectDetection,
    /// Which pixels of an image are part of what.
    ImageSegmentation,
    /// Masks of what points and boxes on an image stand for.
    MaskGeneration,
    /// How far away each pixel of an image is.
    DepthEstimation,
    /// The same image with more pixels.
    ImageSuperResolution,
    /// How much of each pixel of an image is foreground.
    ImageMatting,
    /// Where the keypoints of bodies in an image are.
    PoseEstimation,
    /// Where the keypoints of an image are, and what they look like.
    KeypointDetection,
    /// Which keypoints of two images show the same.
    KeypointMatching,
    /// Where lines of text are on a page.
    TextDetection,
    /// The text of an image of a line.
    TextRecognition,
    /// What follows a text with images in it, or the answer to such a chat.
    ImageTextToText,
    /// What follows a text with videos in it, or the answer to such a chat.
    VideoTextToText,
    /// The caption of an image, or the text in it.
    ImageToText,
    /// The answer to a question about an image.
    VisualQuestionAnswering,
    /// The words of a page that answer a question.
    DocumentQuestionAnswering,
    /// An answer written from passages that a retriever found.
    GenerativeQuestionAnswering,
    /// How well texts and an image go together.
    ImageTextMatching,
    /// Pages, as images, that texts are looked for in.
    VisualDocumentRetrieval,
    /// Labels of the caller's own for an image.
    ZeroShotImageClassification,
    /// What texts say of an image, and where it is.
    ZeroShotObjectDetection,
    /// Labels for a video.
    VideoClassification,
    /// Masks of objects from one frame of a video to the next.
    ObjectTracking,
    /// The same of all objects that texts of the caller's own name.
    ZeroShotObjectTracking,
    /// Labels of the caller's own for a video.
    ZeroShotVideoClassification,
    /// The words of a recording.
    AutomaticSpeechRecognition,
    /// Labels for an audio clip.
    AudioClassification,
    /// Labels of the caller's own for an audio clip.
    ZeroShotAudioClassification,
    /// Images of a text.
    TextToImage,
    /// Images of a text, begun from an image.
    ImageToImage,
    /// Images in which what a mask covers is made anew, by a text.
    Inpainting,
    /// What follows a time series, by its mean and quantiles.
    TimeSeriesForecasting,
    /// The speech of a text.
    TextToAudio,
}

impl Task {
    /// All of them.
    pub const ALL: [Self; 46] = [
        Self::FeatureExtraction,
        Self::SentenceEmbedding,
        Self::FillMask,
        Self::TextClassification,
        Self::ZeroShotClassification,
        Self::TokenClassification,
        Self::QuestionAnswering,
        Self::TextGeneration,
        Self::Text2TextGeneration,
        Self::Summarization,
        Self::Translation,
        Self::ImageClassification,
        Self::ImageFeatureExtraction,
        Self::ObjectDetection,
        Self::ImageSegmentation,
        Self::MaskGeneration,
        Self::DepthEstimation,
        Self::ImageSuperResolution,
        Self::ImageMatting,
        Self::PoseEstimation,
        Self::KeypointDetection,
        Self::KeypointMatching,
        Self::TextDetection,
        Self::TextRecognition,
        Self::ImageTextToText,
        Self::VideoTextToText,
        Self::ImageToText,
        Self::VisualQuestionAnswering,
        Self::DocumentQuestionAnswering,
        Self::GenerativeQuestionAnswering,
        Self::ImageTextMatching,
        Self::VisualDocumentRetrieval,
        Self::ZeroShotImageClassification,
        Self::ZeroShotObjectDetection,
        Self::VideoClassification,
        Self::ObjectTracking,
        Self::ZeroShotObjectTracking,
        Self::ZeroShotVideoClassification,
        Self::AutomaticSpeechRecognition,
        Self::AudioClassification,
        Self::ZeroShotAudioClassification,
        Self::TextToImage,
        Self::ImageToImage,
        Self::Inpainting,
        Self::TimeSeriesForecasting,
        Self::TextToAudio,
    ];

    /// The name in specs and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::FeatureExtraction => "feature-extraction",
            Self::SentenceEmbedding => "sentence-embedding",
            Self::FillMask => "fill-mask",
            Self::TextClassification => "text-classification",
            Self::ZeroShotClassification => "zero-shot-classification",
            Self::TokenClassification => "token-classification",
            Self::QuestionAnswering => "question-answering",
            Self::TextGeneration => "text-generation",
            Self::Text2TextGeneration => "text2text-generation",
            Self::Summarization => "summarization",
            Self::Translation => "translation",
            Self::ImageClassification => "image-classification",
            Self::ImageFeatureExtraction => "image-feature-extraction",
            Self::ObjectDetection => "object-detection",
            Self::ImageSegmentation => "image-segmentation",
            Self::MaskGeneration => "mask-generation",
            Self::DepthEstimation => "depth-estimation",
            Self::ImageSuperResolution => "image-super-resolution",
            Self::ImageMatting => "image-matting",
            Self::PoseEstimation => "pose-estimation",
            Self::KeypointDetection => "keypoint-detection",
            Self::KeypointMatching => "keypoint-matching",
            Self::TextDetection => "text-detection",
            Self::TextRecognition => "text-recognition",
            Self::ImageTextToText => "image-text-to-text",
            Self::VideoTextToText => "video-text-to-text",
            Self::ImageToText => "image-to-text",
            Self::VisualQuestionAnswering => "visual-question-answering",
            Self::DocumentQuestionAnswering => "document-question-answering",
            Self::GenerativeQuestionAnswering => "generative-question-answering",
            Self::ImageTextMatching => "image-text-matching",
            Self::VisualDocumentRetrieval => "visual-document-retrieval",
            Self::ZeroShotImageClassification => "zero-shot-image-classification",
            Self::ZeroShotObjectDetection => "zero-shot-object-detection",
            Self::VideoClassification => "video-classification",
            Self::ObjectTracking => "object-tracking",
            Self::ZeroShotObjectTracking => "zero-shot-object-tracking",
            Self::ZeroShotVideoClassification => "zero-shot-video-classification",
            Self::AutomaticSpeechRecognition => "automatic-speech-recognition",
            Self::AudioClassification => "audio-classification",
            Self::ZeroShotAudioClassification => "zero-shot-audio-classification",
            Self::TextToImage => "text-to-image",
            Self::ImageToImage => "image-to-image",
            Self::Inpainting => "inpainting",
            Self::TimeSeriesForecasting => "time-series-forecasting",
            Self::TextToAudio => "text-to-audio",
        }
    }
}

impl Task {
    /// The task that is meant where checkpoints are for `served`: `image-to-image`, which diffusion pipelines serve, is also
    /// what the reference called super-resolution (`AutoModelForImageToImage`), and keypoints may be those of bodies.
    pub(crate) fn meant_by(self, served: &[Self]) -> Self {
        let other = match self {
            Self::ImageToImage => Self::ImageSuperResolution,
            Self::KeypointDetection => Self::PoseEstimation,
            task => task,
        };
        if !served.contains(&self) && served.contains(&other) { other } else { self }
    }
}

impl fmt::Display for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Task {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        // The reference's other names for the same pipelines.
        let name = match name {
            "sentiment-analysis" => "text-classification",
            "ner" => "token-classification",
            "vqa" => "visual-question-answering",
            "text-to-speech" => "text-to-audio",
            "super-resolution" => "image-super-resolution",
            // The languages are named to the pipeline.
            name if name.starts_with("translation_") => "translation",
            name => name,
        };
        Self::ALL.into_iter().find(|task| task.name() == name).ok_or_else(|| {
            let names: Vec<_> = Self::ALL.into_iter().map(Self::name).collect();
            Error::input("task", format!("unknown task `{name}`"), format!("one of {}", names.join(", ")))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back_to_tasks() {
        for task in Task::ALL {
            assert_eq!(task.name().parse::<Task>().unwrap(), task);
        }
        assert_eq!("ner".parse::<Task>().unwrap(), Task::TokenClassification);
        let larger = [Task::ImageFeatureExtraction, Task::ImageSuperResolution];
        assert_eq!(Task::ImageToImage.meant_by(&larger), Task::ImageSuperResolution);
        let diffusion = [Task::ImageToImage, Task::Inpainting];
        assert_eq!(Task::ImageToImage.meant_by(&diffusion), Task::ImageToImage);
        assert_eq!(Task::KeypointDetection.meant_by(&[Task::PoseEstimation]), Task::PoseEstimation);
        let text = "interpretation".parse::<Task>().unwrap_err().to_string();
        assert!(text.contains("unknown task `interpretation`") && text.contains("fill-mask"), "{text}");
    }
}
