//! Which class serves a task: the one asked for, or the one that a checkpoint was saved from.

use serde_json::Value as Json;

use crate::hub::Checkpoint;
use crate::{Architecture, GraphKind, Head, Loader, TaskHeads};
use crate::{Error, Result, Task};

impl Task {
    /// The classes of an architecture that serve it, the preferred first; none where its checkpoints are not for it.
    pub fn heads<A: Architecture>(self) -> &'static [A::Head] {
        self.served::<A>().map_or(&[], |served| served.heads)
    }

    /// The task that a name means of checkpoints of an architecture.
    pub(crate) fn served_by<A: Architecture>(self) -> Self {
        self.meant_by(&A::TASKS.iter().map(|served| served.task).collect::<Vec<_>>())
    }

    fn served<A: Architecture>(self) -> Option<&'static TaskHeads<A::Head>> {
        A::TASKS.iter().find(|served| served.task == self)
    }

    /// Whether checkpoints of any class will do, whatever `architectures` names.
    pub(crate) fn takes_any_class<A: Architecture>(self) -> bool {
        self.served::<A>().is_some_and(|served| served.from_any)
    }

    /// The outputs that its pipeline reads, by the reference's names.
    pub(crate) fn reads(self) -> &'static [&'static str] {
        match self {
            Self::FeatureExtraction | Self::SentenceEmbedding | Self::ImageFeatureExtraction => {
                &["last_hidden_state"]
            }
            Self::TextToImage | Self::ImageToImage | Self::Inpainting => &["sample"],
            // `spectrogram`, or `waveform`, as the class has them.
            Self::TextToAudio => &[],
            // `prediction_outputs`, or `mean_predictions` and `full_predictions`, as the class has them.
            Self::TimeSeriesForecasting => &[],
            // `logits`, and `pred_masks` where queries find segments, which may be `class_queries_logits` and `masks_queries_logits`.
            Self::ImageSegmentation => &[],
            Self::QuestionAnswering | Self::DocumentQuestionAnswering => &["start_logits", "end_logits"],
            Self::ObjectDetection => &["logits", "pred_boxes"],
            // The same, or `decoder_class_logits` and `decoder_coord_logits`, as the class has them.
            Self::ZeroShotObjectDetection | Self::ZeroShotObjectTracking => &[],
            // `itm_score`, or `logits`, as the class has them.
            Self::ImageTextMatching => &[],
            Self::VisualDocumentRetrieval => &["embeddings"],
            Self::MaskGeneration => &["iou_scores", "pred_masks"],
            Self::ObjectTracking => {
                &["pred_masks", "object_score_logits", "object_pointer", "maskmem_features"]
            }
            Self::DepthEstimation => &["predicted_depth"],
            Self::ImageSuperResolution => &["reconstruction"],
            Self::ImageMatting => &["alphas"],
            Self::PoseEstimation => &["heatmaps"],
            Self::KeypointDetection => &["keypoints", "scores", "descriptors", "mask"],
            Self::KeypointMatching => &["matches", "matching_scores", "keypoints"],
            Self::TextDetection => &["last_hidden_state"],
            // `last_hidden_state`, or `logits` of several vocabularies, as the class has them.
            Self::TextRecognition => &[],
            Self::ZeroShotImageClassification => &["logits_per_image"],
            Self::ZeroShotVideoClassification => &["logits_per_video"],
            Self::ZeroShotAudioClassification => &["logits_per_audio"],
            Self::FillMask
            | Self::TextClassification
            | Self::ZeroShotClassification
            | Self::TokenClassification
            | Self::TextGeneration
            | Self::Text2TextGeneration
            | Self::Summarization
            | Self::Translation
            | Self::ImageClassification
            | Self::VideoClassification
            | Self::ImageTextToText
            | Self::VideoTextToText
            | Self::ImageToText
            | Self::VisualQuestionAnswering
            | Self::GenerativeQuestionAnswering
            | Self::AutomaticSpeechRecognition
            | Self::AudioClassification => &["logits"],
        }
    }

    /// The graphs that its pipeline runs first, of those that a class has: of text that is generated those with a cache, so that the
    /// one without is not made ready, which would hold all weights once more.
    pub(crate) fn first_graphs(self) -> &'static [GraphKind] {
        match self {
            Self::TextGeneration
            | Self::Text2TextGeneration
            | Self::Summarization
            | Self::Translation
            | Self::ImageTextToText
            | Self::VideoTextToText
            | Self::ImageToText
            | Self::VisualQuestionAnswering
            | Self::AutomaticSpeechRecognition => {
                &[GraphKind::Encoder, GraphKind::Prefill, GraphKind::Decode]
            }
            // A class without makes waveforms in one piece.
            Self::TextToAudio => &[GraphKind::Decode],
            Self::GenerativeQuestionAnswering => {
                &[GraphKind::TextOnly, GraphKind::Encoder, GraphKind::Decode]
            }
            _ => &[],
        }
    }

    /// The class to load: the one asked for, else the one that the checkpoint was saved from.
    ///
    /// # Errors
    /// When that one does not serve the task; names it and those that do.
    pub(crate) fn head<A: Architecture>(
        self,
        checkpoint: &Checkpoint,
        asked: Option<A::Head>,
    ) -> Result<A::Head> {
        let served = self.served::<A>();
        let Some((served, &preferred)) = served.and_then(|served| Some((served, served.heads.first()?)))
        else {
            let problem = format!("weft-{} has no class for {self}", A::NAME);
            let tasks: Vec<_> = A::TASKS.iter().map(|served| served.task.name()).collect();
            return Err(Error::input("task", problem, format!("one of {}", tasks.join(", "))));
        };
        let names: Vec<_> = served.heads.iter().map(|head| head.class()).collect();
        if let Some(asked) = asked {
            if served.heads.contains(&asked) {
                return Ok(asked);
            }
            let problem = format!("{self} needs {}, not {}", names.join(" or "), asked.class());
            return Err(Error::input("head", problem, "leave out `.head(..)`, or choose a class that fits"));
        }
        let config = checkpoint.json("config.json")?.unwrap_or_default();
        let saved: Vec<&str> =
            config["architectures"].as_array().into_iter().flatten().filter_map(Json::as_str).collect();
        if let Some(head) = served.heads.iter().find(|head| saved.contains(&head.class())) {
            return Ok(*head);
        }
        let Some(class) = saved.first().filter(|_| !served.from_any) else { return Ok(preferred) };
        if served.holders.iter().any(|holder| saved.contains(&holder.class())) {
            return Ok(preferred);
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

impl<A: Architecture> Loader<A> {
    /// The task that the checkpoint's class is for.
    ///
    /// # Errors
    /// When none is known.
    pub(crate) fn task(&self) -> Result<Task> {
        let checkpoint = self.checkpoint();
        let tasks: Vec<Task> = A::TASKS.iter().map(|served| served.task).collect();
        let fits = |task: &&Task| task.head::<A>(checkpoint, self.requested_head()).is_ok();
        let (bases, others): (Vec<Task>, Vec<Task>) =
            tasks.iter().partition(|task| task.takes_any_class::<A>());
        if named(checkpoint)?
            && let Some(task) = others.iter().find(fits)
        {
            return Ok(*task);
        }
        let sentences = checkpoint.path("modules.json")?.is_some();
        let sentences = bases.iter().find(|task| **task == Task::SentenceEmbedding && sentences);
        let found = sentences.or_else(|| bases.iter().find(fits)).or_else(|| others.iter().find(fits));
        found.copied().ok_or_else(|| {
            let names: Vec<_> = tasks.iter().map(|task| task.name()).collect();
            let help = match names.as_slice() {
                [] => "this crate has no tasks yet: run its classes in `heads`".to_owned(),
                names => format!("say which with `--task`: one of {}", names.join(", ")),
            };
            Error::input("task", "none is known for the checkpoint's class", help)
        })
    }
}

/// Whether `config.json` names a class.
fn named(checkpoint: &Checkpoint) -> Result<bool> {
    let config = checkpoint.json("config.json")?.unwrap_or_default();
    Ok(config["architectures"].as_array().is_some_and(|classes| !classes.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Graph;
    use crate::{Configuration, Names};
    use crate::{Declared, Hardware, Session};

    /// An architecture with two heads, which is never loaded.
    #[derive(Debug)]
    struct Tiny;

    #[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
    struct Config {}

    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Heads {
        Model,
        ForPreTraining,
        ForMaskedLM,
        WithLMHeadModel,
        ForQuestionAnswering,
    }

    impl Configuration for Config {
        fn check(&self) -> std::result::Result<(), String> {
            Ok(())
        }
    }

    impl Head for Heads {
        const ALL: &'static [Self] = &[
            Self::Model,
            Self::ForPreTraining,
            Self::ForMaskedLM,
            Self::WithLMHeadModel,
            Self::ForQuestionAnswering,
        ];

        fn class(self) -> &'static str {
            match self {
                Self::Model => "TinyModel",
                Self::ForPreTraining => "TinyForPreTraining",
                Self::ForMaskedLM => "TinyForMaskedLM",
                Self::WithLMHeadModel => "TinyWithLMHeadModel",
                Self::ForQuestionAnswering => "TinyForQuestionAnswering",
            }
        }
    }

    impl Architecture for Tiny {
        type Config = Config;
        type Head = Heads;

        const NAME: &'static str = "tiny";
        const MODEL_TYPES: &'static [&'static str] = &["tiny"];
        const NAMES: Names = Names {
            base_model_prefix: "tiny",
            legacy_suffixes: &[],
            key_mapping: &[],
            fused_weights: &[],
            ignore_unexpected: &[],
        };
        const DECLARED: &'static [Declared] = &[];
        const ROUTE: &'static [Hardware] = &[];
        const TASKS: &'static [TaskHeads<Heads>] = &[
            TaskHeads::new(Task::FeatureExtraction, &[Heads::Model]).from_any(),
            TaskHeads::new(Task::FillMask, &[Heads::ForMaskedLM, Heads::WithLMHeadModel])
                .also_from(&[Heads::ForPreTraining]),
        ];

        fn build(_: &mut Graph, _: &Config, _: Heads, _: GraphKind) -> Result<()> {
            Ok(())
        }

        fn from_session(_: Session<Self>) -> Self {
            Self
        }

        fn session(&self) -> &Session<Self> {
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
        assert_eq!(head(Task::FillMask, r#"["TinyWithLMHeadModel"]"#, None).unwrap(), Heads::WithLMHeadModel);
        assert_eq!(head(Task::FeatureExtraction, r#"["ForeignHead"]"#, None).unwrap(), Heads::Model);
        let asked = Some(Heads::ForMaskedLM);
        assert_eq!(head(Task::FillMask, r#"["TinyModel"]"#, asked).unwrap(), Heads::ForMaskedLM);
    }

    #[test]
    fn a_head_that_does_not_fit_names_those_that_do() {
        let message = |task, architectures, asked| head(task, architectures, asked).unwrap_err().to_string();
        let text = message(Task::FillMask, r#"["TinyForQuestionAnswering"]"#, None);
        assert!(text.contains("TinyForQuestionAnswering, which does not do fill-mask"), "{text}");
        assert!(
            text.contains("needs TinyForMaskedLM or TinyWithLMHeadModel") && text.contains("config.json"),
            "{text}"
        );
        let text = message(Task::FillMask, r#"["TinyForMaskedLM"]"#, Some(Heads::Model));
        assert!(
            text.contains("fill-mask needs TinyForMaskedLM or TinyWithLMHeadModel, not TinyModel"),
            "{text}"
        );
        let text = message(Task::TokenClassification, r#"["TinyModel"]"#, None);
        assert!(text.contains("weft-tiny has no class for token-classification"), "{text}");
    }
}
