//! The tasks by name, and the heads that fit each.

use std::fmt;
use std::str::FromStr;

use serde_json::Value as Json;

use crate::hub::Checkpoint;
use crate::model::{Architecture, Head};
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
    /// Labels for a picture.
    ImageClassification,
    /// The hidden states of a picture's patches, or one vector for it.
    ImageFeatureExtraction,
    /// What is in a picture, and where.
    ObjectDetection,
    /// What follows a text with pictures in it, or the answer to such a chat.
    ImageTextToText,
    /// Labels of the caller's own for a picture.
    ZeroShotImageClassification,
    /// Labels of the caller's own for a video.
    ZeroShotVideoClassification,
    /// The words of a recording.
    AutomaticSpeechRecognition,
    /// Labels for a sound.
    AudioClassification,
    /// Labels of the caller's own for a sound.
    ZeroShotAudioClassification,
}

impl Task {
    /// All of them.
    pub const ALL: [Self; 20] = [
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
        Self::ImageTextToText,
        Self::ZeroShotImageClassification,
        Self::ZeroShotVideoClassification,
        Self::AutomaticSpeechRecognition,
        Self::AudioClassification,
        Self::ZeroShotAudioClassification,
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
            Self::ImageTextToText => "image-text-to-text",
            Self::ZeroShotImageClassification => "zero-shot-image-classification",
            Self::ZeroShotVideoClassification => "zero-shot-video-classification",
            Self::AutomaticSpeechRecognition => "automatic-speech-recognition",
            Self::AudioClassification => "audio-classification",
            Self::ZeroShotAudioClassification => "zero-shot-audio-classification",
        }
    }

    /// How the names of the classes end that fit, any of these; none where the base model is what is needed.
    fn class_endings(self) -> &'static [&'static str] {
        match self {
            Self::FeatureExtraction
            | Self::SentenceEmbedding
            | Self::ImageFeatureExtraction
            | Self::ZeroShotImageClassification
            | Self::ZeroShotAudioClassification
            | Self::ZeroShotVideoClassification => &[],
            Self::FillMask => &["ForMaskedLM"],
            Self::TextClassification | Self::ZeroShotClassification => &["ForSequenceClassification"],
            Self::TokenClassification => &["ForTokenClassification"],
            Self::QuestionAnswering => &["ForQuestionAnswering"],
            Self::TextGeneration => &["ForCausalLM", "LMHeadModel"],
            Self::Text2TextGeneration | Self::Summarization | Self::Translation | Self::ImageTextToText => {
                &["ForConditionalGeneration"]
            }
            Self::ImageClassification => &["ForImageClassification"],
            Self::ObjectDetection => &["ForObjectDetection"],
            Self::AutomaticSpeechRecognition => &["ForCTC", "ForConditionalGeneration"],
            Self::AudioClassification => &["ForSequenceClassification", "ForAudioClassification"],
        }
    }

    /// Whether it is done with the base model, whatever class a checkpoint names.
    pub(crate) fn takes_the_base(self) -> bool {
        self.class_endings().is_empty()
    }

    /// Checkpoints of other classes that hold all the weights of a fitting one.
    fn also_from(self) -> &'static [&'static str] {
        match self {
            Self::FillMask => &["ForPreTraining"],
            _ => &[],
        }
    }

    /// The classes of an architecture that fit.
    pub fn heads<A: Architecture>(self) -> Vec<A::Head> {
        let endings = self.class_endings();
        if endings.is_empty() {
            return A::Head::ALL[..1].to_vec();
        }
        let fits = |head: &A::Head| endings.iter().any(|ending| head.class().ends_with(ending));
        A::Head::ALL.iter().copied().filter(fits).collect()
    }

    /// The class to load: the one asked for, else the one that the checkpoint was saved from.
    ///
    /// # Errors
    /// When that one does not fit; names it and those that do.
    pub(crate) fn head<A: Architecture>(
        self,
        checkpoint: &Checkpoint,
        asked: Option<A::Head>,
    ) -> Result<A::Head> {
        let fitting = self.heads::<A>();
        let names: Vec<_> = fitting.iter().map(|head| head.class()).collect();
        let Some(&first) = fitting.first() else {
            let problem = format!("weft-{} has no class for {self}", A::NAME);
            return Err(Error::input("task", problem, "use a task that its README lists"));
        };
        if let Some(asked) = asked {
            if fitting.contains(&asked) {
                return Ok(asked);
            }
            let problem = format!("{self} needs {}, not {}", names.join(" or "), asked.class());
            return Err(Error::input("head", problem, "leave out `.head(..)`, or choose a class that fits"));
        }
        if self.class_endings().is_empty() {
            return Ok(first);
        }
        let config = checkpoint.json("config.json")?.unwrap_or_default();
        let saved: Vec<&str> =
            config["architectures"].as_array().into_iter().flatten().filter_map(Json::as_str).collect();
        let Some(class) = saved.first() else { return Ok(first) };
        if let Some(head) = fitting.iter().find(|head| saved.contains(&head.class())) {
            return Ok(*head);
        }
        if saved.iter().any(|class| self.also_from().iter().any(|ending| class.ends_with(ending))) {
            return Ok(first);
        }
        Err(Error::config(
            checkpoint.dir().join("config.json"),
            format!(
                "`architectures` names {class}, which does not do {self}: that needs {}",
                names.join(" or ")
            ),
            format!(
                "open a checkpoint trained for {self}; or, if the weights are there, choose the class with `.head(..)`"
            ),
        ))
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
    use crate::graph::Graph;
    use crate::model::{Configuration, Names};
    use crate::{Declared, Hardware, Loaded};

    /// An architecture with two heads, which is never loaded.
    #[derive(Debug)]
    struct Tiny;

    #[derive(Clone, Debug, serde::Deserialize)]
    struct Config {}

    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Heads {
        Model,
        ForMaskedLM,
        ForQuestionAnswering,
    }

    impl Configuration for Config {
        fn check(&self) -> std::result::Result<(), String> {
            Ok(())
        }
    }

    impl Head for Heads {
        const ALL: &'static [Self] = &[Self::Model, Self::ForMaskedLM, Self::ForQuestionAnswering];

        fn class(self) -> &'static str {
            match self {
                Self::Model => "TinyModel",
                Self::ForMaskedLM => "TinyForMaskedLM",
                Self::ForQuestionAnswering => "TinyForQuestionAnswering",
            }
        }
    }

    impl Architecture for Tiny {
        type Config = Config;
        type Head = Heads;

        const NAME: &'static str = "tiny";
        const MODEL_TYPES: &'static [&'static str] = &["tiny"];
        const NAMES: Names = Names { base_model_prefix: "tiny", legacy: &[], published: &[], joined: &[] };
        const DECLARED: &'static [Declared] = &[];
        const ROUTE: &'static [Hardware] = &[];

        fn build(_: &mut Graph, _: &Config, _: Heads, _: crate::Part) -> Result<()> {
            Ok(())
        }

        fn from_loaded(_: Loaded<Self>) -> Self {
            Self
        }

        fn loaded(&self) -> &Loaded<Self> {
            unreachable!("never loaded")
        }
    }

    /// The head for a task of a checkpoint with these `architectures`.
    fn head(task: Task, architectures: &str, asked: Option<Heads>) -> Result<Heads> {
        let folder = tempfile::tempdir().unwrap();
        let config = format!("{{\"model_type\": \"tiny\", \"architectures\": {architectures}}}");
        std::fs::write(folder.path().join("config.json"), config).unwrap();
        task.head::<Tiny>(&Checkpoint::open(folder.path().to_str().unwrap()).unwrap(), asked)
    }

    #[test]
    fn the_head_is_the_one_that_was_saved() {
        assert_eq!(head(Task::FillMask, r#"["TinyForMaskedLM"]"#, None).unwrap(), Heads::ForMaskedLM);
        assert_eq!(head(Task::FillMask, r#"["TinyForPreTraining"]"#, None).unwrap(), Heads::ForMaskedLM);
        assert_eq!(head(Task::FillMask, "null", None).unwrap(), Heads::ForMaskedLM);
        assert_eq!(head(Task::FeatureExtraction, r#"["TinyForMaskedLM"]"#, None).unwrap(), Heads::Model);
        let asked = Some(Heads::ForMaskedLM);
        assert_eq!(head(Task::FillMask, r#"["TinyModel"]"#, asked).unwrap(), Heads::ForMaskedLM);
    }

    #[test]
    fn a_head_that_does_not_fit_names_those_that_do() {
        let message = |task, architectures, asked| head(task, architectures, asked).unwrap_err().to_string();
        let text = message(Task::FillMask, r#"["TinyForQuestionAnswering"]"#, None);
        assert!(text.contains("TinyForQuestionAnswering, which does not do fill-mask"), "{text}");
        assert!(text.contains("needs TinyForMaskedLM") && text.contains("config.json"), "{text}");
        let text = message(Task::FillMask, r#"["TinyForMaskedLM"]"#, Some(Heads::Model));
        assert!(text.contains("fill-mask needs TinyForMaskedLM, not TinyModel"), "{text}");
        let text = message(Task::TokenClassification, r#"["TinyModel"]"#, None);
        assert!(text.contains("weft-tiny has no class for token-classification"), "{text}");
    }

    #[test]
    fn names_lead_back_to_tasks() {
        for task in Task::ALL {
            assert_eq!(task.name().parse::<Task>().unwrap(), task);
        }
        assert_eq!("ner".parse::<Task>().unwrap(), Task::TokenClassification);
        let text = "interpretation".parse::<Task>().unwrap_err().to_string();
        assert!(text.contains("unknown task `interpretation`") && text.contains("fill-mask"), "{text}");
    }
}
