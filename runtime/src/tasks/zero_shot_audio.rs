//! Zero-shot classification of audio: labels that are given with the call, scored by how well a sentence about each
//! fits.
//!
//! Reference: `ZeroShotAudioClassificationPipeline`.

use super::batches::TextModel;
use super::builder::opened;
use super::paired::PairedModel;
use super::{HypothesisOptions, Label, Pipeline, Task};
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
    paired: PairedModel<A, FeatureExtractor>,
}

impl<A: AnyModel> Pipeline<A> for ZeroShotAudioClassification<A> {
    const TASK: Task = Task::ZeroShotAudioClassification;

    fn from_model(model: A) -> Result<Self> {
        let processor = FeatureExtractor::read(model.checkpoint())?;
        Ok(Self { paired: PairedModel { text: TextModel::new(model)?, processor } })
    }
}

opened!(ZeroShotAudioClassification: paired.text.model);

impl<A: AnyModel> ZeroShotAudioClassification<A> {
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
        let extractor = &self.paired.processor;
        let samples = audio.samples_at(extractor.sampling_rate())?;
        let features = extractor.extract(&[&samples], &ExtractOptions::default())?;
        self.paired.scored(features, candidate_labels, options, "logits_per_audio")
    }
}
