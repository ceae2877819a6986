//! Audio classification: labels for an audio clip.
//!
//! Reference: `AudioClassificationPipeline`.

use super::audio::AudioModel;
use super::builder::opened;
use super::labels::Labels;
use super::scores::default_function;
use super::{Label, Pipeline, ScoreFunction, Task};
use crate::Result;
use crate::any_model::AnyModel;
use crate::audio::{Audio, ExtractOptions};

/// Labels an audio clip.
///
/// ```no_run
/// # fn example<A: weft::Architecture>() -> weft::Result<()> {
/// use weft::audio::Audio;
///
/// let classifier = weft::tasks::AudioClassification::<A>::open("org/checkpoint")?.load()?;
/// for label in classifier.run(&Audio::open("word.wav")?)? {
///     println!("{} {:.3}", label.label, label.score);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct AudioClassification<A> {
    audio: AudioModel<A>,
    labels: Labels,
}

/// How labels are scored and chosen.
#[derive(Clone, Debug, Default)]
pub struct AudioClassificationOptions {
    /// The number of labels, best first; `None` for all of them.
    pub top_k: Option<usize>,
    /// How logits become scores. By default none for regression, sigmoid for several labels at a time, softmax
    /// otherwise, as `problem_type` says.
    pub function_to_apply: Option<ScoreFunction>,
}

impl<A: AnyModel> Pipeline<A> for AudioClassification<A> {
    const TASK: Task = Task::AudioClassification;

    fn from_model(model: A) -> Result<Self> {
        let labels = Labels::read(model.raw_config());
        Ok(Self { audio: AudioModel::new(model)?, labels })
    }
}

opened!(AudioClassification: audio.model);

impl<A: AnyModel> AudioClassification<A> {
    /// The labels of an audio clip, best first.
    ///
    /// # Errors
    /// When the audio is shorter than the model can hear, or the model fails.
    pub fn run(&self, audio: &Audio) -> Result<Vec<Label>> {
        self.run_with(audio, &AudioClassificationOptions::default())
    }

    /// The same with other than the default options.
    ///
    /// # Errors
    /// As [`AudioClassification::run`].
    pub fn run_with(&self, audio: &Audio, options: &AudioClassificationOptions) -> Result<Vec<Label>> {
        let samples = self.audio.samples(audio)?;
        let logits = self.audio.run(&samples, &ExtractOptions::default(), "logits")?;
        // Of a single label, too, the score is softmax's.
        let problem_type = self.audio.model.raw_config()["problem_type"].as_str();
        let function = options.function_to_apply.unwrap_or_else(|| default_function(problem_type, 2));
        Ok(self.labels.best(&logits, Some(function), options.top_k))
    }
}
