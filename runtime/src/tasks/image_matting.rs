//! Image matting: how much of each pixel of an image is foreground, by a trimap.
//!
//! Reference: `VitMatteForImageMatting` and `VitMatteImageProcessor`.

use ndarray::{Array2, Array3, Ix4, s};

use super::builder::opened;
use super::images::ImageModel;
use super::outputs::output;
use super::{Pipeline, Task};
use crate::any_model::AnyModel;
use crate::image::Image;
use crate::{Error, Result};

/// Tells the foreground of an image from its background, where a trimap leaves it open.
///
/// ```no_run
/// # fn example<A: weft::Architecture>() -> weft::Result<()> {
/// use weft::image::Image;
///
/// let matting = weft::tasks::ImageMatting::<A>::open("hustvl/vitmatte-small-composition-1k")?.load()?;
/// let image = Image::open("bulb.png")?;
/// let matte = matting.run(&image, &Image::open("trimap.png")?)?;
/// matte.to_image()?.save("alpha.png")?;
/// matte.over(&image, [255, 255, 255])?.save("foreground.png")?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct ImageMatting<A> {
    images: ImageModel<A>,
}

/// The foreground of an image.
#[derive(Clone, Debug, PartialEq)]
pub struct Matte {
    /// How much of each pixel is foreground, `[height, width]`, from 0 to 1.
    pub alphas: Array2<f32>,
}

impl Matte {
    /// The foreground white, the background black, and grey in between.
    ///
    /// # Errors
    /// When there are no pixels.
    pub fn to_image(&self) -> Result<Image> {
        let (height, width) = self.alphas.dim();
        Image::from_pixels(&Array3::from_shape_fn((height, width, 3), |(y, x, _)| {
            (self.alphas[(y, x)].clamp(0.0, 1.0) * 255.0).round() as u8
        }))
    }

    /// The image before a ground of one colour.
    ///
    /// # Errors
    /// When the image is of another size.
    pub fn over(&self, image: &Image, ground: [u8; 3]) -> Result<Image> {
        let (height, width) = self.alphas.dim();
        if (height, width) != (image.height(), image.width()) {
            let problem =
                format!("is {} x {} pixels, but its matte {height} x {width}", image.height(), image.width());
            return Err(Error::input("image", problem, "give the image that the matte was made of"));
        }
        let pixels = image.pixels();
        Image::from_pixels(&Array3::from_shape_fn((height, width, 3), |(y, x, channel)| {
            let alpha = self.alphas[(y, x)].clamp(0.0, 1.0);
            let level = |level: u8, share: f32| f32::from(level) * share;
            (level(pixels[(y, x, channel)], alpha) + level(ground[channel], 1.0 - alpha)).round() as u8
        }))
    }
}

impl<A: AnyModel> Pipeline<A> for ImageMatting<A> {
    const TASK: Task = Task::ImageMatting;

    fn from_model(model: A) -> Result<Self> {
        Ok(Self { images: ImageModel::new(model)? })
    }
}

opened!(ImageMatting: images.model);

impl<A: AnyModel> ImageMatting<A> {
    /// How much of each pixel of an image is foreground. The trimap, of the same size, is white where it is, black where it is not,
    /// and grey where the model is to find out.
    ///
    /// # Errors
    /// When the trimap is of another size, or the model fails.
    pub fn run(&self, image: &Image, trimap: &Image) -> Result<Matte> {
        let values = self.images.processor.process_trimap(image, trimap)?;
        let outputs = self.images.model.run(self.images.inputs(values))?;
        let alphas = output(&outputs, "alphas")?;
        let fits = alphas.view().into_dimensionality::<Ix4>().ok();
        let fits = fits.filter(|alphas| {
            let (batch, channels, rows, columns) = alphas.dim();
            (batch, channels) == (1, 1) && rows >= image.height() && columns >= image.width()
        });
        let Some(alphas) = fits else {
            let problem = format!("has shape {:?}, instead of [1, 1, rows, columns]", alphas.shape());
            return Err(Error::input("alphas", problem, "open a model that is made for this task"));
        };
        Ok(Matte { alphas: alphas.slice(s![0, 0, ..image.height(), ..image.width()]).to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use ndarray::array;

    use super::*;

    #[test]
    fn a_matte_is_grey_levels_and_puts_an_image_before_a_ground() {
        let matte = Matte { alphas: array![[0.0, 0.5, 1.0]] };
        let grey: Vec<u8> = matte.to_image().unwrap().pixels().slice(s![0, .., 1]).to_vec();
        assert_eq!(grey, [0, 128, 255]);
        let image = Image::from_pixels(&Array3::from_elem((1, 3, 3), 100)).unwrap();
        let over = matte.over(&image, [200, 0, 255]).unwrap();
        assert_eq!(over.pixels().slice(s![0, 1, ..]).to_vec(), [150, 50, 178]);
        let said =
            matte.over(&matte.to_image().unwrap().resize(2, 2, crate::image::Filter::Box).unwrap(), [0; 3]);
        assert!(said.unwrap_err().to_string().contains("2 x 2 pixels, but its matte 1 x 3"));
    }
}
