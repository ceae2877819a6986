//! Images against labels.

use super::PairedModel;
use crate::Architecture;
use crate::Result;
use crate::any_model::AnyModel;
use crate::image::Image;
use crate::tasks::{HypothesisOptions, Label, Pipeline, PipelineBuilder, Task};

/// Labels an image with labels of one's own.
///
/// ```no_run
/// # fn example<A: weft::Architecture>() -> weft::Result<()> {
/// use weft::image::Image;
///
/// let classifier = weft::tasks::ZeroShotImageClassification::<A>::open("openai/clip-vit-base-patch32")?.load()?;
/// for label in classifier.run(&Image::open("cat.jpg")?, &["a cat", "a dog"])? {
///     println!("{} {:.3}", label.label, label.score);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct ZeroShotImageClassification<A> {
    paired: PairedModel<A>,
}

impl<A: AnyModel> Pipeline<A> for ZeroShotImageClassification<A> {
    const TASK: Task = Task::ZeroShotImageClassification;

    fn from_model(model: A) -> Result<Self> {
        Ok(Self { paired: PairedModel::new(model)? })
    }
}

impl<A: AnyModel> ZeroShotImageClassification<A> {
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
        &self.paired.text.model
    }

    /// All labels, best first; their scores sum to 1, but for models that judge each label for itself.
    ///
    /// # Errors
    /// When there are no labels, one is longer than the model's positions, or the model fails.
    pub fn run(&self, image: &Image, candidate_labels: &[&str]) -> Result<Vec<Label>> {
        self.run_with(image, candidate_labels, &HypothesisOptions::default())
    }

    /// The same with other than the default options.
    ///
    /// # Errors
    /// As [`ZeroShotImageClassification::run`].
    pub fn run_with(
        &self,
        image: &Image,
        candidate_labels: &[&str],
        options: &HypothesisOptions,
    ) -> Result<Vec<Label>> {
        let values = self.paired.processor.process(std::slice::from_ref(image))?;
        self.paired.scored(&values, candidate_labels, options, "logits_per_image")
    }
}
