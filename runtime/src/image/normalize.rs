//! Levels to floats: cropping, filling up, rescaling and normalising.

use image::{Rgb, RgbImage};
use ndarray::{Array3, Array4, ArrayView3, Axis, s};

use super::{Pixels, Settings};
use crate::{Error, Result};

/// The middle of a picture. What lies beyond its edges is black.
pub(super) fn centre_crop(image: &RgbImage, (height, width): Pixels) -> RgbImage {
    let from = (image.height() as usize, image.width() as usize);
    let mut target = RgbImage::new(width as u32, height as u32);
    for (y, to_y) in overlap(from.0, height) {
        for (x, to_x) in overlap(from.1, width) {
            target.put_pixel(to_x, to_y, *image.get_pixel(x, y));
        }
    }
    target
}

/// Which pixels of an edge remain, and where they come to lie; of an odd rest the larger half lies before them.
fn overlap(from: usize, to: usize) -> impl Iterator<Item = (u32, u32)> {
    let (cut, shift) = (from.saturating_sub(to) / 2, to.saturating_sub(from).div_ceil(2));
    (0..from.min(to)).map(move |i| ((i + cut) as u32, (i + shift) as u32))
}

/// A picture in the middle of a larger one of a single colour.
pub(super) fn centred_on(image: &RgbImage, (height, width): Pixels, colour: [u8; 3]) -> RgbImage {
    let mut target = RgbImage::from_pixel(width as u32, height as u32, Rgb(colour));
    let left = (width - image.width() as usize) / 2;
    let top = (height - image.height() as usize) / 2;
    image::imageops::replace(&mut target, image, left as i64, top as i64);
    target
}

/// A picture as the model takes it, `[3, height, width]`.
pub(super) fn floats(image: &RgbImage, settings: &Settings) -> Array3<f32> {
    // Each channel has 256 levels: what becomes of them is worked out once.
    let table: [[f32; 256]; 3] = std::array::from_fn(|channel| {
        std::array::from_fn(|level| {
            let value = settings.rescale.map_or(level as f32, |factor| (level as f64 * factor) as f32);
            let value = if settings.offset { value - 1.0 } else { value };
            let value =
                settings.normalize.map_or(value, |[mean, std]| (value - mean[channel]) / std[channel]);
            settings.divide.map_or(value, |by| value / by[channel])
        })
    });
    let shape = (3, image.height() as usize, image.width() as usize);
    let pixel = |x: usize, y: usize| image.get_pixel(x as u32, y as u32);
    Array3::from_shape_fn(shape, |(c, y, x)| table[c][usize::from(pixel(x, y)[c])])
}

/// The height and width of each, and the largest of both.
pub(super) fn largest(planes: &[Array3<f32>]) -> Pixels {
    planes.iter().fold((0, 0), |(height, width), plane| {
        let (_, h, w) = plane.dim();
        (height.max(h), width.max(w))
    })
}

/// Fills a picture up with zeros to the right and below.
pub(super) fn filled(plane: &Array3<f32>, (height, width): Pixels) -> Result<Array3<f32>> {
    let (channels, h, w) = plane.dim();
    if h > height || w > width {
        let problem =
            format!("is {h} x {w} pixels after resizing, more than the {height} x {width} to be filled");
        return Err(Error::input("image", problem, "set a larger `pad_size`, or a smaller `size`"));
    }
    let mut target = Array3::zeros((channels, height, width));
    target.slice_mut(s![.., ..h, ..w]).assign(plane);
    Ok(target)
}

/// `[batch, 3, height, width]`.
pub(super) fn stacked(planes: &[Array3<f32>]) -> Result<Array4<f32>> {
    let views: Vec<ArrayView3<'_, f32>> = planes.iter().map(|plane| plane.view()).collect();
    ndarray::stack(Axis(0), &views).map_err(|_| {
        let sizes: Vec<String> = planes.iter().map(|plane| format!("{:?}", &plane.shape()[1..])).collect();
        let problem = format!("have different sizes after resizing: {}", sizes.join(", "));
        Error::input("images", problem, "process them one by one, or give pictures of one size")
    })
}
