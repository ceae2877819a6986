//! Image feature extraction: the hidden states of an image's patches, or one vector for it.
//!
//! Reference: `ImageFeatureExtractionPipeline`.

use ndarray::ArrayD;
use serde_json::Value as Json;

use super::builder::opened;
use super::images::{BATCH_SIZE, ImageModel};
use super::{Pipeline, Task};
use crate::any_model::AnyModel;
use crate::image::Image;
use crate::{Error, Result};

/// Gives the last hidden states of an image, `[positions, hidden_size]` of a transformer and
/// `[channels, height, width]` of a convolutional model, or its pooled vector.
///
/// ```no_run
/// # fn example<A: weft::Architecture>() -> weft::Result<()> {
/// use weft::image::Image;
///
/// let extractor = weft::tasks::ImageFeatureExtraction::<A>::open("google/vit-base-patch16-224-in21k")?.load()?;
/// let features = extractor.run(&Image::open("cat.jpg")?)?; // [positions, hidden_size]
/// println!("{:?}", features.shape());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct ImageFeatureExtraction<A> {
    images: ImageModel<A>,
}

/// Which features, and of what.
#[derive(Clone, Debug)]
pub struct ImageFeatureOptions {
    /// Gives `pooler_output`, one vector, instead of the hidden states.
    pub pool: bool,
    /// Settings of the image processor that differ from the checkpoint's, by their names in its file.
    pub processor: Json,
    /// The most images that run through the model at once.
    pub batch_size: usize,
}

impl Default for ImageFeatureOptions {
    fn default() -> Self {
        Self { pool: false, processor: Json::Null, batch_size: BATCH_SIZE }
    }
}

impl<A: AnyModel> Pipeline<A> for ImageFeatureExtraction<A> {
    const TASK: Task = Task::ImageFeatureExtraction;

    fn from_model(model: A) -> Result<Self> {
        Ok(Self { images: ImageModel::new(model)? })
    }
}

opened!(ImageFeatureExtraction: images.model);

impl<A: AnyModel> ImageFeatureExtraction<A> {
    /// The features of an image.
    ///
    /// # Errors
    /// When the image does not become what the model takes, or the model fails.
    pub fn run(&self, image: &Image) -> Result<ArrayD<f32>> {
        let features = self.run_batch(std::slice::from_ref(image))?;
        Ok(features.into_iter().next().unwrap_or_default())
    }

    /// The features of each image.
    ///
    /// # Errors
    /// As [`ImageFeatureExtraction::run`].
    pub fn run_batch(&self, images: &[Image]) -> Result<Vec<ArrayD<f32>>> {
        self.run_with(images, &ImageFeatureOptions::default())
    }

    /// The same with other than the default options.
    ///
    /// # Errors
    /// As [`ImageFeatureExtraction::run`], and when the model gives no pooled vector but is asked for it.
    pub fn run_with(&self, images: &[Image], options: &ImageFeatureOptions) -> Result<Vec<ArrayD<f32>>> {
        let name = if options.pool { "pooler_output" } else { "last_hidden_state" };
        let processor = match &options.processor {
            Json::Null => self.images.processor.clone(),
            settings => self.images.processor.with(settings)?,
        };
        let outputs = self.images.run_through(&processor, images, options.batch_size, &[name])?;
        outputs.into_iter().next().ok_or_else(|| Error::input(name, "is not given", "open an image model"))
    }
}
