//! Zero-shot classification of audio: labels that are given with the call, scored by how well a sentence about each
//! fits.
//!
//! Reference: `ZeroShotAudioClassificationPipeline`.

use super::batches::TextModel;
use super::paired::scored;
use super::{HypothesisOptions, Label, Pipeline, PipelineBuilder, Task};
use crate::Architecture;
use crate::Result;
use crate::any_model::AnyModel;
use crate::audio::{Audio, ExtractOptions, FeatureExtractor};

/// Labels an audio clip with labels of one's own.
///
/// ```no_run
/// # fn example<A: weft::Architecture>() -> weft::Result<()> {
/// use weft::audio::Audio;
///
/// let classifier = weft::tasks::ZeroShotAudioClassification::<A>::open("laion/clap-htsat-unfused")?.load()?;
/// for label in classifier.run(&Audio::open("yard.flac")?, &["a dog", "a vacuum cleaner"])? {
///     println!("{} {:.3}", label.label, label.score);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct ZeroShotAudioClassification<A> {
    text: TextModel<A>,
    extractor: FeatureExtractor,
}

impl<A: AnyModel> Pipeline<A> for ZeroShotAudioClassification<A> {
    const TASK: Task = Task::ZeroShotAudioClassification;

    fn from_model(model: A) -> Result<Self> {
        let extractor = FeatureExtractor::read(model.checkpoint())?;
        Ok(Self { text: TextModel::new(model)?, extractor })
    }
}

impl<A: AnyModel> ZeroShotAudioClassification<A> {
    /// Finds a checkpoint: a folder or a hub id.
    ///
    /// # Errors
    /// When there is none.
    pub fn open(checkpoint: &str) -> Result<PipelineBuilder<A, Self>>
    where
        A: Architecture,
    {
        PipelineBuilder::open(checkpoint)
    }

    /// The model within.
    pub fn model(&self) -> &A {
        &self.text.model
    }

    /// What labels become where no options are given: `This is a sound of {}.`
    pub fn hypothesis() -> HypothesisOptions {
        HypothesisOptions {
            hypothesis_template: "This is a sound of {}.".to_owned(),
            ..HypothesisOptions::default()
        }
    }

    /// All labels, best first; their scores sum to 1.
    ///
    /// # Errors
    /// When there are no labels, one is longer than the model's positions, or the model fails.
    pub fn run(&self, audio: &Audio, candidate_labels: &[&str]) -> Result<Vec<Label>> {
        self.run_with(audio, candidate_labels, &Self::hypothesis())
    }

    /// The same with other than the default options.
    ///
    /// # Errors
    /// As [`ZeroShotAudioClassification::run`].
    pub fn run_with(
        &self,
        audio: &Audio,
        candidate_labels: &[&str],
        options: &HypothesisOptions,
    ) -> Result<Vec<Label>> {
        let samples = audio.clone().resample(self.extractor.sampling_rate())?.samples;
        let features = self.extractor.extract(&[&samples], &ExtractOptions::default())?;
        scored(&self.text, &features, candidate_labels, options, "logits_per_audio")
    }
}
