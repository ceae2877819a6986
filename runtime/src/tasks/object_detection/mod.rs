//! Object detection: what is in an image, and where.
//!
//! Reference: `ObjectDetectionPipeline`, and `post_process_object_detection` of the checkpoint's image processor.

mod boxes;
#[cfg(feature = "text")]
mod suppression;

use self::boxes::DetectionScores;
#[cfg(feature = "text")]
pub(super) use self::boxes::two_axes;
pub use self::boxes::{Bounds, Detection, draw};
#[cfg(feature = "text")]
pub(super) use self::suppression::suppress;
use super::builder::opened;
use super::images::{BATCH_SIZE, ImageModel};
use super::labels::Labels;
use super::{Pipeline, Task};
use crate::Result;
use crate::any_model::AnyModel;
use crate::image::Image;

/// Finds objects in an image, each with a label and a box.
///
/// ```no_run
/// # fn example<A: weft::Architecture>() -> weft::Result<()> {
/// use weft::image::Image;
///
/// let detector = weft::tasks::ObjectDetection::<A>::open("facebook/detr-resnet-50")?.load()?;
/// let image = Image::open("street.jpg")?;
/// let found = detector.run(&image)?;
/// for object in &found {
///     println!("{} {:.3} {:?}", object.label, object.score, object.bounds);
/// }
/// weft::tasks::draw(&image, &found).save("found.png")?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct ObjectDetection<A> {
    images: ImageModel<A>,
    labels: Labels,
}

/// Which objects count.
#[derive(Clone, Debug)]
pub struct DetectionOptions {
    /// Objects count whose score is larger.
    pub threshold: f32,
    /// The most images that run through the model at once.
    pub batch_size: usize,
}

impl Default for DetectionOptions {
    fn default() -> Self {
        Self { threshold: 0.5, batch_size: BATCH_SIZE }
    }
}

impl<A: AnyModel> Pipeline<A> for ObjectDetection<A> {
    const TASK: Task = Task::ObjectDetection;

    fn from_model(model: A) -> Result<Self> {
        let labels = Labels::read(model.raw_config());
        Ok(Self { images: ImageModel::new(model)?, labels })
    }
}

opened!(ObjectDetection: images.model);

impl<A: AnyModel> ObjectDetection<A> {
    /// The objects of an image whose score is above a half, in the order of the model's queries, or of reading where the model gives
    /// one (PP-DocLayoutV3, whose polygons are left out).
    ///
    /// # Errors
    /// When the image does not become what the model takes, or the model fails.
    pub fn run(&self, image: &Image) -> Result<Vec<Detection>> {
        let found = self.run_batch(std::slice::from_ref(image))?;
        Ok(found.into_iter().next().unwrap_or_default())
    }

    /// The objects of each image.
    ///
    /// # Errors
    /// As [`ObjectDetection::run`].
    pub fn run_batch(&self, images: &[Image]) -> Result<Vec<Vec<Detection>>> {
        self.run_with(images, &DetectionOptions::default())
    }

    /// The same with other than the default options.
    ///
    /// # Errors
    /// As [`ObjectDetection::run`].
    pub fn run_with(&self, images: &[Image], options: &DetectionOptions) -> Result<Vec<Vec<Detection>>> {
        let class = self.images.processor.class();
        // A page's parts come in the order that they are read in.
        let is_page = matches!(class, "PPDocLayoutV2" | "PPDocLayoutV3");
        let names = ["logits", "pred_boxes", "order_logits"];
        let outputs = self.images.run(images, options.batch_size, &names[..2 + usize::from(is_page)])?;
        let found = images.iter().enumerate().map(|(index, image)| {
            let size = (image.height(), image.width());
            let scores = DetectionScores::of_processor(class);
            let order =
                outputs.get(2).map(|logits| boxes::reading_order(logits[index].view())).transpose()?;
            let (logits, boxes) = (outputs[0][index].view(), outputs[1][index].view());
            let threshold = options.threshold;
            boxes::detections(logits, boxes, size, threshold, scores, &self.labels, order.as_deref())
        });
        found.collect()
    }
}
