//! Zero-shot classification of images: labels that are given with the call, scored by how well a sentence about each
//! fits.
//!
//! Reference: `ZeroShotImageClassificationPipeline`.

use super::batches::TextModel;
use super::builder::opened;
use super::paired::PairedModel;
use super::{HypothesisOptions, Label, Pipeline, Task};
use crate::Result;
use crate::any_model::AnyModel;
use crate::image::{Image, ImageProcessor};

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
    paired: PairedModel<A, ImageProcessor>,
}

impl<A: AnyModel> Pipeline<A> for ZeroShotImageClassification<A> {
    const TASK: Task = Task::ZeroShotImageClassification;

    fn from_model(model: A) -> Result<Self> {
        let processor = ImageProcessor::from_checkpoint(model.checkpoint())?;
        Ok(Self { paired: PairedModel { text: TextModel::new(model)?, processor } })
    }
}

opened!(ZeroShotImageClassification: paired.text.model);

impl<A: AnyModel> ZeroShotImageClassification<A> {
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
        self.paired.scored(values, candidate_labels, options, "logits_per_image")
    }
}
