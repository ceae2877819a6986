//! Binary masks of images, their run-length encoding, and how they are drawn.

use std::path::Path;

use image::Rgb;
use ndarray::{Array2, Array3};
use serde::{Serialize, Serializer};
use serde_json::json;

use super::{Image, Pixels};
use crate::{Error, Result};

/// A binary mask, `[height, width]`: the pixels of an image that are part of something.
///
/// As JSON it is COCO's run-length encoding, uncompressed, as the reference's `mask_to_rle` gives it:
/// `{"size": [height, width], "counts": [..]}`, down one column after the other, the first run outside of the mask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mask(Array2<bool>);

impl Mask {
    /// A mask of these pixels.
    pub fn new(pixels: Array2<bool>) -> Self {
        Self(pixels)
    }

    /// A mask from its run-length encoding.
    ///
    /// # Errors
    /// When the runs are not as long as the mask has pixels.
    pub fn from_counts((height, width): Pixels, counts: &[usize]) -> Result<Self> {
        let all = counts.iter().try_fold(0_usize, |sum, count| sum.checked_add(*count));
        if height.checked_mul(width).is_none_or(|pixels| Some(pixels) != all) {
            let problem = format!("make {all:?} pixels, not {height} x {width}");
            return Err(Error::input("counts", problem, "give runs of all pixels, column by column"));
        }
        let runs = counts.iter().enumerate();
        let pixels: Vec<bool> = runs.flat_map(|(run, count)| vec![run % 2 == 1; *count]).collect();
        Ok(Self(Array2::from_shape_fn((height, width), |(y, x)| pixels[x * height + y])))
    }

    /// The pixels, `[height, width]`.
    pub fn pixels(&self) -> &Array2<bool> {
        &self.0
    }

    /// The number of pixels in the mask.
    pub fn area(&self) -> usize {
        self.0.iter().filter(|inside| **inside).count()
    }

    /// The lengths of runs, down one column after the other, outside of the mask first.
    pub fn counts(&self) -> Vec<usize> {
        let mut counts = vec![0];
        let mut inside = false;
        for column in self.0.columns() {
            for &pixel in column {
                if pixel != inside {
                    inside = pixel;
                    counts.push(0);
                }
                if let Some(last) = counts.last_mut() {
                    *last += 1;
                }
            }
        }
        counts
    }

    /// The mask as an image, white where it is and black elsewhere.
    ///
    /// # Errors
    /// When the mask has no pixels.
    pub fn to_image(&self) -> Result<Image> {
        let (height, width) = self.0.dim();
        let level = |(y, x, _)| if self.0[(y, x)] { 255 } else { 0 };
        Image::from_pixels(&Array3::from_shape_fn((height, width, 3), level))
    }

    /// Writes [`Mask::to_image`].
    ///
    /// # Errors
    /// As [`Mask::to_image`] and [`Image::save`].
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        self.to_image()?.save(path)
    }
}

impl Serialize for Mask {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let (height, width) = self.0.dim();
        json!({"size": [height, width], "counts": self.counts()}).serialize(serializer)
    }
}

impl Image {
    /// Draws a mask: half of each of its pixels is the colour of `class`, and its edge is that colour. What the mask has
    /// outside of the image is left out.
    pub fn draw_mask(&mut self, mask: &Mask, class: usize) {
        let Rgb(colour) = super::draw::colour(class);
        let (height, width) = mask.0.dim();
        let outside = |y: usize, x: usize| !mask.0.get((y, x)).copied().unwrap_or(false);
        let image = self.rgb_mut();
        for y in 0..height.min(image.height() as usize) {
            for x in 0..width.min(image.width() as usize) {
                if !mask.0[(y, x)] {
                    continue;
                }
                let edge = y == 0 || x == 0 || outside(y - 1, x) || outside(y, x - 1);
                let edge = edge || outside(y + 1, x) || outside(y, x + 1);
                let Rgb(pixel) = image.get_pixel_mut(x as u32, y as u32);
                for (level, colour) in pixel.iter_mut().zip(colour) {
                    *level = if edge { colour } else { level.midpoint(colour) };
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use ndarray::array;

    use super::*;

    #[test]
    fn runs_go_down_the_columns() {
        let mask = Mask::new(array![[true, false, false], [true, true, false]]);
        assert_eq!((mask.counts(), mask.area()), (vec![0, 2, 1, 1, 2], 3));
        assert_eq!(serde_json::to_value(&mask).unwrap(), json!({"size": [2, 3], "counts": [0, 2, 1, 1, 2]}));
        assert_eq!(Mask::from_counts((2, 3), &[0, 2, 1, 1, 2]).unwrap(), mask);
        let text = Mask::from_counts((2, 3), &[5]).unwrap_err().to_string();
        assert!(text.contains("Some(5) pixels, not 2 x 3"), "{text}");
    }

    #[test]
    fn a_mask_is_drawn_with_its_edge() {
        let mut pixels = Array2::from_elem((4, 6), true);
        pixels.column_mut(0).fill(false);
        let mut image = Image::from_pixels(&Array3::zeros((4, 5, 3))).unwrap();
        image.draw_mask(&Mask::new(pixels), 0);
        let red: Vec<u8> = image.pixels().slice(ndarray::s![1, .., 0]).to_vec();
        assert_eq!(red, [0, 200, 100, 100, 100]);
        assert_eq!(image.pixels()[[0, 2, 0]], 200);
    }
}
