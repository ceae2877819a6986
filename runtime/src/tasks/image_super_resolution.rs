//! Image super-resolution: the same image with more pixels.
//!
//! Reference: `Swin2SRForImageSuperResolution` and `Swin2SRImageProcessor`. The last release that had `ImageToImagePipeline`, 4.57,
//! left in what the processor pads images by; here it is cut off, as the authors of the model do.

use ndarray::{Array3, ArrayView3, Axis, Ix3, s};

use super::builder::opened;
use super::images::ImageModel;
use super::outputs::output;
use super::{Pipeline, Task};
use crate::any_model::AnyModel;
use crate::image::{Image, Pixels};
use crate::{Error, Result};

/// Makes images larger.
///
/// ```no_run
/// # fn example<A: weft::Architecture>() -> weft::Result<()> {
/// use weft::image::Image;
///
/// let upscaler = weft::tasks::ImageSuperResolution::<A>::open("caidas/swin2SR-classical-sr-x2-64")?.load()?;
/// upscaler.run(&Image::open("small.jpg")?)?.to_image()?.save("large.png")?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct ImageSuperResolution<A> {
    images: ImageModel<A>,
}

/// An image made larger.
#[derive(Clone, Debug, PartialEq)]
pub struct SuperResolved {
    /// Its channels, red, green and blue, `[3, height, width]`: 0 to 1, and what the model has beyond that.
    pub reconstruction: Array3<f32>,
}

impl SuperResolved {
    /// The image: levels from 0 to 255, rounded.
    ///
    /// # Errors
    /// When there are no pixels, or not three channels.
    pub fn to_image(&self) -> Result<Image> {
        let levels =
            self.reconstruction.mapv(|value| (value.clamp(0.0, 1.0) * 255.0).round_ties_even() as u8);
        Image::from_pixels(&levels.permuted_axes([1, 2, 0]).as_standard_layout().into_owned())
    }
}

impl<A: AnyModel> Pipeline<A> for ImageSuperResolution<A> {
    const TASK: Task = Task::ImageSuperResolution;

    fn from_model(model: A) -> Result<Self> {
        Ok(Self { images: ImageModel::new(model)? })
    }
}

opened!(ImageSuperResolution: images.model);

impl<A: AnyModel> ImageSuperResolution<A> {
    /// An image with as many more rows and columns as the model makes of one.
    ///
    /// # Errors
    /// When the image does not become what the model takes, or the model fails.
    pub fn run(&self, image: &Image) -> Result<SuperResolved> {
        let values = self.images.processor.process(std::slice::from_ref(image))?;
        let padded = values.get("pixel_values").map(|pixels| pixels.shape().to_vec());
        let outputs = self.images.model.run(self.images.inputs(values))?;
        let reconstruction = output(&outputs, "reconstruction")?;
        let shape = reconstruction.shape().to_vec();
        let help = "open a model that is made for this task";
        let first = reconstruction.index_axis(Axis(0), 0).into_dimensionality::<Ix3>();
        let (Ok(first), Some(&[_, _, rows, columns])) = (first, padded.as_deref()) else {
            let problem = format!("has shape {shape:?}, instead of [batch, channels, rows, columns]");
            return Err(Error::input("reconstruction", problem, help));
        };
        let reconstruction = unpadded(&first, (rows, columns), (image.height(), image.width()));
        Ok(SuperResolved { reconstruction })
    }

    /// The same of each image, one after the other.
    ///
    /// # Errors
    /// As [`ImageSuperResolution::run`].
    pub fn run_batch(&self, images: &[Image]) -> Result<Vec<SuperResolved>> {
        images.iter().map(|image| self.run(image)).collect()
    }
}

/// What an image of `size` became, of what it became with padding.
fn unpadded(larger: &ArrayView3<'_, f32>, (rows, columns): Pixels, size: Pixels) -> Array3<f32> {
    let (_, height, width) = larger.dim();
    let own = |whole: usize, padded: usize, own: usize| (whole / padded.max(1) * own).min(whole);
    larger.slice(s![.., ..own(height, rows, size.0), ..own(width, columns, size.1)]).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn padding_is_cut_off_and_levels_are_rounded() {
        let larger = Array3::from_shape_fn((3, 4, 8), |(channel, y, x)| (channel + y + x) as f32 / 10.0);
        // 2 x 4 with padding, and twice as large.
        let own = SuperResolved { reconstruction: unpadded(&larger.view(), (2, 4), (2, 3)) };
        assert_eq!(own.reconstruction.dim(), (3, 4, 6));
        let image = own.to_image().unwrap();
        assert_eq!((image.height(), image.width()), (4, 6));
        assert_eq!(image.pixels()[[1, 2, 2]], 128);
        assert_eq!(image.pixels()[[3, 5, 2]], 255);
    }
}
