//! Image classification: labels for an image.
//!
//! Reference: `ImageClassificationPipeline`.

use super::builder::opened;
use super::images::{BATCH_SIZE, ImageModel};
use super::labels::Labels;
use super::{Label, Pipeline, ScoreFunction, Task};
use crate::Result;
use crate::any_model::AnyModel;
use crate::image::Image;

/// Labels an image.
///
/// ```no_run
/// # fn example<A: weft::Architecture>() -> weft::Result<()> {
/// use weft::image::Image;
///
/// let classifier = weft::tasks::ImageClassification::<A>::open("google/vit-base-patch16-224")?.load()?;
/// for label in classifier.run(&Image::open("cat.jpg")?)? {
///     println!("{} {:.3}", label.label, label.score);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct ImageClassification<A> {
    images: ImageModel<A>,
    labels: Labels,
}

/// How labels are scored and chosen.
#[derive(Clone, Debug)]
pub struct ImageClassificationOptions {
    /// The number of labels, best first; `None` for all of them.
    pub top_k: Option<usize>,
    /// How logits become scores. By default none for regression, sigmoid for several labels at a time or a
    /// single one, softmax otherwise, as `problem_type` and the number of labels say.
    pub function_to_apply: Option<ScoreFunction>,
    /// The most images that run through the model at once.
    pub batch_size: usize,
}

impl Default for ImageClassificationOptions {
    fn default() -> Self {
        Self { top_k: Some(5), function_to_apply: None, batch_size: BATCH_SIZE }
    }
}

impl<A: AnyModel> Pipeline<A> for ImageClassification<A> {
    const TASK: Task = Task::ImageClassification;

    fn from_model(model: A) -> Result<Self> {
        let labels = Labels::read(model.raw_config());
        Ok(Self { images: ImageModel::new(model)?, labels })
    }
}

opened!(ImageClassification: images.model);

impl<A: AnyModel> ImageClassification<A> {
    /// The five best labels of an image, best first.
    ///
    /// # Errors
    /// When the image does not become what the model takes, or the model fails.
    pub fn run(&self, image: &Image) -> Result<Vec<Label>> {
        let labels = self.run_batch(std::slice::from_ref(image))?;
        Ok(labels.into_iter().next().unwrap_or_default())
    }

    /// The five best labels of each image.
    ///
    /// # Errors
    /// As [`ImageClassification::run`].
    pub fn run_batch(&self, images: &[Image]) -> Result<Vec<Vec<Label>>> {
        self.run_with(images, &ImageClassificationOptions::default())
    }

    /// The same with other than the default options.
    ///
    /// # Errors
    /// As [`ImageClassification::run`].
    pub fn run_with(
        &self,
        images: &[Image],
        options: &ImageClassificationOptions,
    ) -> Result<Vec<Vec<Label>>> {
        let outputs = self.images.run(images, options.batch_size, &["logits"])?;
        let best = |logits| self.labels.best(logits, options.function_to_apply, options.top_k);
        Ok(outputs[0].iter().map(best).collect())
    }
}
