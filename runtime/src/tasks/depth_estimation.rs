//! Depth estimation: how far away each pixel of an image is.
//!
//! Reference: `DepthEstimationPipeline`, and the `post_process_depth_estimation` of the image processors.

use ndarray::{Array2, Array3, ArrayView2, Axis, Ix2};

use super::builder::opened;
use super::images::{BATCH_SIZE, ImageModel};
use super::{Pipeline, Task};
use crate::any_model::AnyModel;
use crate::image::{Image, Interpolated, Interpolation, Pixels};
use crate::{Error, Result};

/// Estimates the depth of an image, of all its pixels.
///
/// ```no_run
/// # fn example<A: weft::Architecture>() -> weft::Result<()> {
/// use weft::image::Image;
///
/// let estimator = weft::tasks::DepthEstimation::<A>::open("depth-anything/Depth-Anything-V2-Small-hf")?.load()?;
/// let depth = estimator.run(&Image::open("street.jpg")?)?;
/// println!("{}", depth.predicted_depth[[10, 20]]);
/// depth.to_image()?.save("depth.png")?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct DepthEstimation<A> {
    images: ImageModel<A>,
}

/// The depth of an image.
#[derive(Clone, Debug, PartialEq)]
pub struct Depth {
    /// That of each pixel, `[height, width]`: metres, or relative and larger where it is nearer, as the model has it.
    pub predicted_depth: Array2<f32>,
}

/// How depth is estimated.
#[derive(Clone, Debug)]
pub struct DepthOptions {
    /// The most images that run through the model at once.
    pub batch_size: usize,
}

impl Default for DepthOptions {
    fn default() -> Self {
        Self { batch_size: BATCH_SIZE }
    }
}

impl Depth {
    /// The depth as grey levels, the least black and the most white; all black where there is one depth only.
    ///
    /// # Errors
    /// When there are no pixels.
    pub fn to_image(&self) -> Result<Image> {
        let (height, width) = self.predicted_depth.dim();
        let least = self.predicted_depth.iter().copied().fold(f32::INFINITY, f32::min);
        let most = self.predicted_depth.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let level = |(y, x, _)| ((self.predicted_depth[(y, x)] - least) / (most - least) * 255.0) as u8;
        Image::from_pixels(&Array3::from_shape_fn((height, width, 3), level))
    }
}

impl<A: AnyModel> Pipeline<A> for DepthEstimation<A> {
    const TASK: Task = Task::DepthEstimation;

    fn from_model(model: A) -> Result<Self> {
        Ok(Self { images: ImageModel::new(model)? })
    }
}

opened!(DepthEstimation: images.model);

impl<A: AnyModel> DepthEstimation<A> {
    /// The depth of an image.
    ///
    /// # Errors
    /// When the image does not become what the model takes, or the model fails.
    pub fn run(&self, image: &Image) -> Result<Depth> {
        let mut depths = self.run_batch(std::slice::from_ref(image))?;
        let help = "open a model that is made for this task";
        depths.pop().ok_or_else(|| Error::input("predicted_depth", "is of no image", help))
    }

    /// The depth of each image.
    ///
    /// # Errors
    /// As [`DepthEstimation::run`].
    pub fn run_batch(&self, images: &[Image]) -> Result<Vec<Depth>> {
        self.run_with(images, &DepthOptions::default())
    }

    /// The same with other than the default options.
    ///
    /// # Errors
    /// As [`DepthEstimation::run`].
    pub fn run_with(&self, images: &[Image], options: &DepthOptions) -> Result<Vec<Depth>> {
        let outputs = self.images.run(images, options.batch_size, &["predicted_depth"])?;
        let both = images.iter().zip(&outputs[0]);
        both.map(|(image, depth)| {
            let depth = depth.view().into_dimensionality::<Ix2>().map_err(|_| {
                let problem =
                    format!("has shape {:?} for each image, instead of [rows, columns]", depth.shape());
                Error::input("predicted_depth", problem, "open a model that is made for this task")
            })?;
            Ok(Depth { predicted_depth: predicted_depth(&depth, (image.height(), image.width())) })
        })
        .collect()
    }
}

/// A model's depth `[rows, columns]` in an image's size, `[height, width]` (`post_process_depth_estimation`).
pub fn predicted_depth(depth: &ArrayView2<'_, f32>, size: Pixels) -> Array2<f32> {
    let depth = depth.insert_axis(Axis(0));
    Interpolated::new(&depth, size, Interpolation::Bicubic).maps().index_axis_move(Axis(0), 0)
}

#[cfg(test)]
mod tests {
    use ndarray::array;

    use super::*;

    #[test]
    fn depth_becomes_of_the_images_size_and_is_shown_between_its_bounds() {
        // torch.nn.functional.interpolate(torch.tensor([[[[1., 3.]]]]), (1, 4), mode="bicubic")
        let depth = Depth { predicted_depth: predicted_depth(&array![[1.0, 3.0]].view(), (1, 4)) };
        let expected = array![[0.789_062_5, 1.453_125, 2.546_875, 3.210_937_5]];
        assert!((&depth.predicted_depth - &expected).iter().all(|off| off.abs() < 1e-6), "{depth:?}");
        let levels: Vec<u8> = depth.to_image().unwrap().pixels().slice(ndarray::s![0, .., 0]).to_vec();
        assert_eq!(levels, [0, 69, 185, 255]);
        let flat = Depth { predicted_depth: array![[2.0, 2.0]] };
        assert_eq!(flat.to_image().unwrap().pixels()[[0, 1, 2]], 0);
    }
}
