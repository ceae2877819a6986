//! Zero-shot classification of images and videos: labels that are given with the call, scored by how well a
//! sentence about each fits.
//!
//! Reference: `ZeroShotImageClassificationPipeline`; for videos there is no pipeline, and the same is done with
//! `XCLIPProcessor`.

mod image;
#[cfg(feature = "video")]
mod video;

pub use self::image::ZeroShotImageClassification;
#[cfg(feature = "video")]
pub use self::video::{VideoOptions, ZeroShotVideoClassification};
use super::batches::TextModel;
use super::paired::scored;
use super::{HypothesisOptions, Label};
use crate::any_model::AnyModel;
use crate::image::ImageProcessor;
use crate::{Result, Values};

/// A model of texts and images with its tokenizer and image processor.
#[derive(Debug)]
struct PairedModel<A> {
    text: TextModel<A>,
    processor: ImageProcessor,
}

impl<A: AnyModel> PairedModel<A> {
    fn new(model: A) -> Result<Self> {
        let processor = ImageProcessor::from_checkpoint(model.checkpoint())?;
        Ok(Self { text: TextModel::new(model)?, processor })
    }

    /// As [`scored`].
    fn scored(
        &self,
        processed: &Values,
        labels: &[&str],
        options: &HypothesisOptions,
        logits: &str,
    ) -> Result<Vec<Label>> {
        scored(&self.text, processed, labels, options, logits)
    }
}
