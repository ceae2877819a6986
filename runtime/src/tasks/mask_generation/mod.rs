//! Mask generation: masks of what points and boxes on an image stand for.
//!
//! Reference: `SamProcessor`, `SamModel`, and the `post_process_masks` of the image processor.

mod prompts;

use ndarray::{Array3, ArrayD, ArrayView3, Axis, Ix4, s};
use serde::Serialize;

pub use self::prompts::MaskPrompt;
use super::builder::opened;
use super::images::ImageModel;
use super::outputs::output;
use super::{Pipeline, Task};
use crate::any_model::AnyModel;
use crate::image::{Image, ImageProcessor, Interpolated, Interpolation, Mask, Pixels, Step};
use crate::{Error, Result, Values};

/// Finds the masks of objects that points and boxes stand for.
///
/// ```no_run
/// # fn example<A: weft::Architecture>() -> weft::Result<()> {
/// use weft::image::Image;
/// use weft::tasks::MaskPrompt;
///
/// let generator = weft::tasks::MaskGeneration::<A>::open("facebook/sam-vit-base")?.load()?;
/// let image = Image::open("street.jpg")?;
/// let found = generator.run(&image, &[MaskPrompt::point([400.0, 650.0])])?;
/// println!("{:.3} {}", found[0].score, found[0].mask.area());
/// weft::tasks::draw_masks(&image, &found).save("masks.png")?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct MaskGeneration<A> {
    images: ImageModel<A>,
}

/// A mask of what a prompt stands for.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GeneratedMask {
    /// The overlap with the object that the model predicts (intersection over union).
    pub score: f32,
    /// Its pixels, of the image's size.
    pub mask: Mask,
    /// The prompt's index.
    #[serde(skip)]
    pub prompt: usize,
}

/// Which masks are given.
#[derive(Clone, Copy, Debug)]
pub struct MaskOptions {
    /// A pixel belongs to a mask where its logit is larger.
    pub mask_threshold: f32,
    /// Whether all masks of a prompt are given, not only that with the largest score.
    pub multimask_output: bool,
}

impl Default for MaskOptions {
    fn default() -> Self {
        Self { mask_threshold: 0.0, multimask_output: false }
    }
}

impl<A: AnyModel> Pipeline<A> for MaskGeneration<A> {
    const TASK: Task = Task::MaskGeneration;

    fn from_model(model: A) -> Result<Self> {
        Ok(Self { images: ImageModel::new(model)? })
    }
}

opened!(MaskGeneration: images.model);

impl<A: AnyModel> MaskGeneration<A> {
    /// The best mask of each prompt, in their order; all prompts have as many boxes, one or none.
    ///
    /// # Errors
    /// When there are no prompts, some have a box and others none, or the model fails.
    pub fn run(&self, image: &Image, prompts: &[MaskPrompt]) -> Result<Vec<GeneratedMask>> {
        self.run_with(image, prompts, &MaskOptions::default())
    }

    /// The same with other than the default options.
    ///
    /// # Errors
    /// As [`MaskGeneration::run`].
    pub fn run_with(
        &self,
        image: &Image,
        prompts: &[MaskPrompt],
        options: &MaskOptions,
    ) -> Result<Vec<GeneratedMask>> {
        let processor = &self.images.processor;
        let mut values = self.images.inputs(processor.process(std::slice::from_ref(image))?);
        let geometry = Geometry::new(processor, image, &values)?;
        prompts::put(prompts, geometry.scale(), &mut values)?;
        let outputs = self.images.model.run(values)?;
        let masks = axes::<Ix4>("pred_masks", output(&outputs, "pred_masks")?)?;
        let scores = axes::<ndarray::Ix2>("iou_scores", output(&outputs, "iou_scores")?)?;
        let mut found = vec![];
        for (prompt, (masks, scores)) in masks.outer_iter().zip(scores.outer_iter()).enumerate() {
            let best = super::scores::largest(&scores.to_vec());
            let logits = geometry.logits(&masks);
            for (index, (logits, score)) in logits.outer_iter().zip(&scores).enumerate() {
                if options.multimask_output || index == best {
                    let mask = Mask::new(logits.mapv(|logit| logit > options.mask_threshold));
                    found.push(GeneratedMask { score: *score, mask, prompt });
                }
            }
        }
        Ok(found)
    }
}

/// The first image's entry of an output.
fn axes<D: ndarray::RemoveAxis>(name: &str, values: &ArrayD<f32>) -> Result<ndarray::Array<f32, D>> {
    let shape = values.shape().to_vec();
    let misfit = |_| {
        let problem = format!("has shape {shape:?} for each image, instead of {:?} axes", D::NDIM);
        Error::input(name, problem, "open a model that is made for this task")
    };
    values.index_axis(Axis(0), 0).to_owned().into_dimensionality::<D>().map_err(misfit)
}

/// How an image has become what the model takes.
#[derive(Clone, Copy, Debug)]
struct Geometry {
    /// The image's size.
    own: Pixels,
    /// What it was resized to.
    resized: Pixels,
    /// That with padding, where there is any.
    padded: Option<Pixels>,
}

impl Geometry {
    fn new(processor: &ImageProcessor, image: &Image, values: &Values) -> Result<Self> {
        let own = (image.height(), image.width());
        let size = processor.steps().iter().find_map(|step| match step {
            Step::Resize { size, .. } => Some(size.of(own)),
            _ => None,
        });
        let pads = processor.steps().iter().any(|step| matches!(step, Step::Pad(_)));
        let shape = values.get("pixel_values").map(|pixels| pixels.shape().to_vec()).unwrap_or_default();
        let [_, _, height, width] = shape[..] else {
            let help = "open a model that is made for this task";
            return Err(Error::input("pixel_values", format!("has shape {shape:?}"), help));
        };
        Ok(Self { own, resized: size.unwrap_or(own), padded: pads.then_some((height, width)) })
    }

    /// How much larger the resized image is, across and down.
    fn scale(&self) -> [f64; 2] {
        [self.resized.1 as f64 / self.own.1 as f64, self.resized.0 as f64 / self.own.0 as f64]
    }

    /// Mask logits `[masks, rows, columns]` in the image's size, without padding (`post_process_masks`).
    fn logits(&self, masks: &ArrayView3<'_, f32>) -> Array3<f32> {
        let whole =
            |maps: &ArrayView3<'_, f32>| Interpolated::new(maps, self.own, Interpolation::Bilinear).maps();
        let Some(padded) = self.padded else { return whole(masks) };
        let maps = Interpolated::new(masks, padded, Interpolation::Bilinear).maps();
        let (height, width) = (self.resized.0.min(padded.0), self.resized.1.min(padded.1));
        whole(&maps.slice(s![.., ..height, ..width]))
    }
}

/// A copy of an image with masks and their scores, a colour for each prompt.
pub fn draw_masks(image: &Image, masks: &[GeneratedMask]) -> Image {
    let mut image = image.clone();
    for found in masks {
        image.draw_mask(&found.mask, found.prompt);
    }
    for found in masks {
        let first = found.mask.pixels().indexed_iter().find(|(_, inside)| **inside);
        if let Some(((y, x), _)) = first {
            image.draw_name((x as i64, y as i64), found.prompt, &format!("{:.2}", found.score));
        }
    }
    image
}

#[cfg(test)]
mod tests {
    use ndarray::{Array2, Ix3, array};

    use super::*;

    #[test]
    fn padding_is_cut_off_before_masks_become_of_the_images_size() {
        let masks = array![[[0.0, 4.0], [8.0, 12.0]]];
        // Twice as large, of four columns the first two, then as they are.
        let geometry = Geometry { own: (4, 2), resized: (4, 2), padded: Some((4, 4)) };
        let want = array![[[0.0, 1.0], [2.0, 3.0], [6.0, 7.0], [8.0, 9.0]]];
        assert_eq!(geometry.logits(&masks.view()), want);
        let whole = Geometry { own: (2, 2), resized: (7, 7), padded: None };
        assert_eq!(whole.logits(&masks.view()), masks);
        assert_eq!(Geometry { own: (10, 20), resized: (15, 40), padded: None }.scale(), [2.0, 1.5]);
    }

    #[test]
    fn masks_are_drawn_in_the_colour_of_their_prompt() {
        let image = Image::from_pixels(&Array3::from_elem((4, 4, 3), 255)).unwrap();
        let mask = Mask::new(Array2::from_elem((4, 4), true));
        let drawn = draw_masks(&image, &[GeneratedMask { score: 0.5, mask, prompt: 1 }]);
        assert_ne!(drawn.pixels(), image.pixels());
    }

    #[test]
    fn outputs_of_other_axes_are_refused() {
        let error = axes::<Ix3>("pred_masks", &ArrayD::zeros(vec![1, 2])).unwrap_err().to_string();
        assert!(error.contains("[1, 2] for each image"), "{error}");
    }
}
