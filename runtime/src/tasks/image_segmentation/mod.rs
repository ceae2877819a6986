//! Image segmentation: which pixels of an image are part of what.
//!
//! Reference: `ImageSegmentationPipeline`, and the `post_process_*_segmentation` of the image processors.

mod post_process;
mod queries;
mod semantic;
#[cfg(feature = "text")]
mod task_text;

use ndarray::{Array2, ArrayD, Ix2, Ix3};
use serde::{Deserialize, Serialize};

use self::post_process::PostProcess;
pub use self::queries::{MaskQueries, QuerySegment};
pub use self::semantic::semantic_map;
use super::builder::opened;
use super::images::{BATCH_SIZE, ImageModel};
use super::labels::Labels;
use super::outputs::output;
use super::{Pipeline, Task};
use crate::any_model::AnyModel;
use crate::image::{Image, Mask, Pixels};
use crate::{Error, Result, Values};

/// Finds the segments of an image, each with a label and a mask.
///
/// ```no_run
/// # fn example<A: weft::Architecture>() -> weft::Result<()> {
/// use weft::image::Image;
///
/// let segmenter = weft::tasks::ImageSegmentation::<A>::open("nvidia/segformer-b0-finetuned-ade-512-512")?.load()?;
/// let image = Image::open("street.jpg")?;
/// let segments = segmenter.run(&image)?;
/// for segment in &segments {
///     println!("{} {}", segment.label, segment.mask.area());
/// }
/// weft::tasks::draw_segments(&image, &segments).save("segments.png")?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct ImageSegmentation<A> {
    images: ImageModel<A>,
    labels: Labels,
    #[cfg(feature = "text")]
    task_text: Option<task_text::TaskText>,
}

/// A segment of an image.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Segment {
    /// The probability of the label, where the model finds segments by queries.
    pub score: Option<f32>,
    /// The name, from `id2label` in `config.json`.
    pub label: String,
    /// Its pixels, of the image's size.
    pub mask: Mask,
    /// The label's index.
    #[serde(skip)]
    pub class: usize,
}

/// What kind of segments are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Subtask {
    /// Each thing by itself, and what cannot be counted.
    Panoptic,
    /// Each thing by itself.
    Instance,
    /// One segment for each label.
    Semantic,
}

/// Which segments count.
#[derive(Clone, Debug)]
pub struct SegmentationOptions {
    /// What is looked for; panoptic where the model finds segments by queries, else semantic.
    pub subtask: Option<Subtask>,
    /// Queries count whose score is larger.
    pub threshold: f32,
    /// A pixel belongs to a query's own mask where its probability is at least that.
    pub mask_threshold: f32,
    /// A segment counts that keeps a larger part of the query's own mask, where masks overlap.
    pub overlap_mask_area_threshold: f32,
    /// The most images that run through the model at once.
    pub batch_size: usize,
}

impl Default for SegmentationOptions {
    fn default() -> Self {
        Self {
            subtask: None,
            threshold: 0.9,
            mask_threshold: 0.5,
            overlap_mask_area_threshold: 0.5,
            batch_size: BATCH_SIZE,
        }
    }
}

impl<A: AnyModel> Pipeline<A> for ImageSegmentation<A> {
    const TASK: Task = Task::ImageSegmentation;

    fn from_model(model: A) -> Result<Self> {
        let labels = Labels::read(model.raw_config());
        Ok(Self {
            #[cfg(feature = "text")]
            task_text: task_text::TaskText::of(&model)?,
            images: ImageModel::new(model)?,
            labels,
        })
    }
}

opened!(ImageSegmentation: images.model);

impl<A: AnyModel> ImageSegmentation<A> {
    /// The segments of an image: in the order of labels, or of the model's queries.
    ///
    /// # Errors
    /// When the image does not become what the model takes, or the model fails.
    pub fn run(&self, image: &Image) -> Result<Vec<Segment>> {
        let found = self.run_batch(std::slice::from_ref(image))?;
        Ok(found.into_iter().next().unwrap_or_default())
    }

    /// The segments of each image.
    ///
    /// # Errors
    /// As [`ImageSegmentation::run`].
    pub fn run_batch(&self, images: &[Image]) -> Result<Vec<Vec<Segment>>> {
        self.run_with(images, &SegmentationOptions::default())
    }

    /// The same with other than the default options.
    ///
    /// # Errors
    /// As [`ImageSegmentation::run`], and when the model does not do the subtask.
    pub fn run_with(&self, images: &[Image], options: &SegmentationOptions) -> Result<Vec<Vec<Segment>>> {
        #[cfg(feature = "text")]
        let more =
            self.task_text.as_ref().map(|text| text.inputs(options.subtask)).transpose()?.unwrap_or_default();
        #[cfg(not(feature = "text"))]
        let more = Values::new();
        let outputs = self.images.run_all(images, options.batch_size, &more)?;
        let both = images.iter().zip(outputs);
        both.map(|(image, outputs)| self.segments((image.height(), image.width()), &outputs, options))
            .collect()
    }

    fn segments(
        &self,
        size: Pixels,
        outputs: &Values,
        options: &SegmentationOptions,
    ) -> Result<Vec<Segment>> {
        let Some(queries) = mask_queries(outputs)? else {
            if let Some(subtask @ (Subtask::Panoptic | Subtask::Instance)) = options.subtask {
                let problem = format!("{subtask:?} is not what {} does", self.images.model.class());
                return Err(Error::input("subtask", problem, "leave it out, or choose `semantic`"));
            }
            let logits = axes::<Ix3>("logits", output(outputs, "logits")?)?;
            return Ok(self.by_label(&semantic_map(&logits.view(), size)));
        };
        let by = PostProcess::of(&self.images.processor)?;
        if options.subtask == Some(Subtask::Semantic) {
            return Ok(self.by_label(&by.semantic_map(&queries, size)));
        }
        let found = by.segments(&queries, size, options);
        let segment = |QuerySegment { score, class, mask }| Segment {
            score: Some(score),
            label: self.labels.name(class),
            mask,
            class,
        };
        Ok(found.into_iter().map(segment).collect())
    }

    /// A segment for each label of a semantic map.
    fn by_label(&self, map: &Array2<usize>) -> Vec<Segment> {
        let classes: std::collections::BTreeSet<usize> = map.iter().copied().collect();
        let segment = |class: usize| {
            let mask = Mask::new(map.mapv(|found| found == class));
            Segment { score: None, label: self.labels.name(class), mask, class }
        };
        classes.into_iter().map(segment).collect()
    }
}

/// The queries of a model that finds segments by them; none where it has a logit of every label at every pixel.
fn mask_queries(outputs: &Values) -> Result<Option<MaskQueries>> {
    let names = [["logits", "pred_masks"], ["class_queries_logits", "masks_queries_logits"]];
    let Some([logits, masks]) = names.into_iter().find(|[_, masks]| outputs.contains_key(*masks)) else {
        return Ok(None);
    };
    let logits = axes::<Ix2>(logits, output(outputs, logits)?)?;
    let masks = axes::<Ix3>(masks, output(outputs, masks)?)?;
    MaskQueries::new(logits, masks).map(Some)
}

/// An image's entry of an output, of as many axes as the task reads.
fn axes<D: ndarray::Dimension>(name: &str, values: &ArrayD<f32>) -> Result<ndarray::Array<f32, D>> {
    let shape = values.shape().to_vec();
    values.clone().into_dimensionality::<D>().map_err(|_| {
        let problem = format!("has shape {shape:?} for each image, instead of {:?} axes", D::NDIM);
        Error::input(name, problem, "open a model that is made for this task")
    })
}

/// A copy of an image with the masks of its segments and their labels, a colour for each label.
pub fn draw_segments(image: &Image, segments: &[Segment]) -> Image {
    let mut image = image.clone();
    for segment in segments {
        image.draw_mask(&segment.mask, segment.class);
    }
    for segment in segments {
        let first = segment.mask.pixels().indexed_iter().find(|(_, inside)| **inside);
        if let Some(((y, x), _)) = first {
            image.draw_name((x as i64, y as i64), segment.class, &segment.label);
        }
    }
    image
}
