//! Levels and numbers of one image: cropping, padding, rescaling and normalizing.

use image::{Rgb, RgbImage};
use ndarray::{Array3, Array4, ArrayView3, Axis, s};

use super::Pixels;
use crate::{Error, Result};

/// The middle of an image. What lies beyond its edges is black.
pub(super) fn center_crop(image: &RgbImage, (height, width): Pixels) -> RgbImage {
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

/// An image in the middle of a larger one of a single colour.
pub(super) fn centred_on(image: &RgbImage, (height, width): Pixels, colour: [u8; 3]) -> RgbImage {
    let mut target = RgbImage::from_pixel(width as u32, height as u32, Rgb(colour));
    let left = (width - image.width() as usize) / 2;
    let top = (height - image.height() as usize) / 2;
    image::imageops::replace(&mut target, image, left as i64, top as i64);
    target
}

/// Levels times a factor, and 1 less with an offset: `[3, height, width]`.
pub(super) fn rescaled(image: &RgbImage, factor: f64, offset: bool) -> Array3<f32> {
    // There are 256 levels: what becomes of them is worked out once.
    let table: [f32; 256] = std::array::from_fn(|level| {
        let value = (level as f64 * factor) as f32;
        if offset { value - 1.0 } else { value }
    });
    let shape = (3, image.height() as usize, image.width() as usize);
    let pixel = |x: usize, y: usize| image.get_pixel(x as u32, y as u32);
    Array3::from_shape_fn(shape, |(c, y, x)| table[usize::from(pixel(x, y)[c])])
}

/// Levels times a factor, less the mean of each channel, over its standard deviation, all in bfloat16.
pub(super) fn normalized_bf16(image: &RgbImage, factor: f64, mean: &[f32; 3], std: &[f32; 3]) -> Array3<f32> {
    let round = |number: f32| half::bf16::from_f32(number).to_f32();
    let mut numbers = rescaled(image, 1.0, false);
    for ((mut channel, mean), std) in numbers.axis_iter_mut(Axis(0)).zip(mean).zip(std) {
        let (mean, std) = (round(*mean), round(*std));
        channel.mapv_inplace(|level| round(round(round(level * factor as f32) - mean) / std));
    }
    numbers
}

/// Less the mean of all numbers, over their standard deviation, which is that of an image of one pixel in all at least.
pub(super) fn standardized(numbers: Array3<f32>) -> Array3<f32> {
    let count = numbers.len().max(1) as f64;
    let mean = numbers.iter().map(|number| f64::from(*number)).sum::<f64>() / count;
    let squares = numbers.iter().map(|number| (f64::from(*number) - mean).powi(2)).sum::<f64>();
    let std = ((squares / count).sqrt()).max(1.0 / count.sqrt());
    numbers.mapv_into(|number| (number - mean as f32) / std as f32)
}

/// Less the mean of each channel, over its standard deviation.
pub(super) fn normalized(mut numbers: Array3<f32>, mean: &[f32; 3], std: &[f32; 3]) -> Array3<f32> {
    for ((mut channel, mean), std) in numbers.axis_iter_mut(Axis(0)).zip(mean).zip(std) {
        channel.mapv_inplace(|value| (value - mean) / std);
    }
    numbers
}

/// The largest height and width of all.
pub(super) fn largest<'a>(images: impl Iterator<Item = &'a Array3<f32>>) -> Pixels {
    images.fold((0, 0), |(height, width), image| {
        let (_, h, w) = image.dim();
        (height.max(h), width.max(w))
    })
}

/// What an image is padded to: `size`, or the next multiples within it.
pub(super) fn padded_size((height, width): Pixels, size: Pixels, multiple_of: Option<usize>) -> Pixels {
    let Some(multiple) = multiple_of.filter(|multiple| *multiple > 0) else { return size };
    (height.next_multiple_of(multiple).min(size.0), width.next_multiple_of(multiple).min(size.1))
}

/// One level to the right of an image and below it.
pub(super) fn padded_below(image: &RgbImage, (height, width): Pixels, level: u8) -> Result<RgbImage> {
    let (h, w) = (image.height() as usize, image.width() as usize);
    if h > height || w > width {
        return Err(beyond((h, w), (height, width)));
    }
    let mut target = RgbImage::from_pixel(width as u32, height as u32, Rgb([level; 3]));
    image::imageops::replace(&mut target, image, 0, 0);
    Ok(target)
}

fn beyond((h, w): Pixels, (height, width): Pixels) -> Error {
    let problem = format!("is {h} x {w} pixels after resizing, more than the {height} x {width} padded to");
    Error::input("image", problem, "set a larger `pad_size`, or a smaller `size`")
}

/// Zeros to the right of an image and below it.
pub(super) fn padded(image: &Array3<f32>, (height, width): Pixels) -> Result<Array3<f32>> {
    let (channels, h, w) = image.dim();
    if h > height || w > width {
        return Err(beyond((h, w), (height, width)));
    }
    let mut target = Array3::zeros((channels, height, width));
    target.slice_mut(s![.., ..h, ..w]).assign(image);
    Ok(target)
}

/// Zeros to the right of an image and below it, up to multiples.
pub(super) fn padded_to_multiple(image: &Array3<f32>, multiple: usize) -> Result<Array3<f32>> {
    let (_, height, width) = image.dim();
    let multiple = multiple.max(1);
    padded(image, (height.next_multiple_of(multiple), width.next_multiple_of(multiple)))
}

/// An image mirrored at its right and lower edge, the edge itself repeated, up to the multiples beyond its edges
/// (`Swin2SRImageProcessor.pad`): one that is a multiple already grows by a whole one.
pub(super) fn symmetric_to_multiple(image: &Array3<f32>, multiple: usize) -> Array3<f32> {
    let (channels, height, width) = image.dim();
    let multiple = multiple.max(1);
    let beyond = |length: usize| (length / multiple + 1) * multiple;
    let mirrored = |place: usize, length: usize| {
        let place = place % (2 * length);
        place.min(2 * length - 1 - place)
    };
    Array3::from_shape_fn((channels, beyond(height), beyond(width)), |(channel, y, x)| {
        image[(channel, mirrored(y, height), mirrored(x, width))]
    })
}

/// `[batch, 3, height, width]`.
pub(super) fn stacked(images: &[Array3<f32>]) -> Result<Array4<f32>> {
    let views: Vec<ArrayView3<'_, f32>> = images.iter().map(|image| image.view()).collect();
    ndarray::stack(Axis(0), &views).map_err(|_| {
        let sizes: Vec<String> = images.iter().map(|image| format!("{:?}", &image.shape()[1..])).collect();
        let problem = format!("have different sizes after resizing: {}", sizes.join(", "));
        Error::input("images", problem, "process them one by one, or give images of one size")
    })
}

/// The luminance in each channel (NTSC), unless all are the same; numbers `[channels, rows, columns]`.
pub(super) fn grey(mut numbers: Array3<f32>) -> Array3<f32> {
    let weights = [0.2989_f32, 0.587, 0.114];
    if numbers.dim().0 != weights.len() {
        return numbers;
    }
    let same = numbers.lanes(Axis(0)).into_iter().all(|pixel| pixel.iter().all(|value| *value == pixel[0]));
    if !same {
        for mut pixel in numbers.lanes_mut(Axis(0)) {
            let grey = pixel[0] * weights[0] + pixel[1] * weights[1] + pixel[2] * weights[2];
            pixel.fill(grey);
        }
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_become_grey_and_grey_stays() {
        let colours = Array3::from_shape_vec((3, 1, 2), vec![1.0, 0.5, 0.0, 0.5, 0.0, 0.5]).unwrap();
        let made = grey(colours);
        assert!(
            (made[[2, 0, 0]] - 0.2989).abs() < 1e-6 && (made[[0, 0, 1]] - 0.49995).abs() < 1e-6,
            "{made}"
        );
        let same = Array3::from_elem((3, 1, 2), 0.3);
        assert_eq!(grey(same.clone()), same);
    }

    #[test]
    fn an_odd_rest_lies_before_the_middle() {
        assert_eq!(overlap(5, 2).collect::<Vec<_>>(), [(1, 0), (2, 1)]);
        assert_eq!(overlap(2, 5).collect::<Vec<_>>(), [(0, 2), (1, 3)]);
        let image = RgbImage::from_fn(4, 1, |x, _| Rgb([x as u8; 3]));
        let middle = center_crop(&image, (3, 2));
        let row = |y| [middle[(0, y)].0[0], middle[(1, y)].0[0]];
        assert_eq!([row(0), row(1), row(2)], [[0, 0], [1, 2], [0, 0]]);
    }

    #[test]
    fn edges_grow_to_multiples_by_zeros_or_by_what_is_mirrored() {
        let image = ndarray::array![[[1.0, 2.0, 3.0]]];
        let row = |image: &Array3<f32>| image.iter().copied().collect::<Vec<_>>();
        let mirrored = symmetric_to_multiple(&image, 2);
        assert_eq!(mirrored.dim(), (1, 2, 4));
        assert_eq!(row(&mirrored), [1.0, 2.0, 3.0, 3.0, 1.0, 2.0, 3.0, 3.0]);
        let whole = symmetric_to_multiple(&mirrored, 4);
        assert_eq!(whole.dim(), (1, 4, 8));
        assert_eq!(row(&whole)[..8], [1.0, 2.0, 3.0, 3.0, 3.0, 3.0, 2.0, 1.0]);
        // Further than the image is long.
        assert_eq!(row(&symmetric_to_multiple(&image, 7))[..7], [1.0, 2.0, 3.0, 3.0, 2.0, 1.0, 1.0]);
        assert_eq!(row(&padded_to_multiple(&image, 2).unwrap()), [1.0, 2.0, 3.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
    }

    #[test]
    fn each_channel_has_its_mean_and_deviation() {
        let numbers = rescaled(&RgbImage::from_pixel(1, 1, Rgb([0, 51, 255])), 1.0 / 255.0, false);
        let numbers = normalized(numbers, &[0.5, 0.2, 0.0], &[0.5, 1.0, 0.25]);
        assert_eq!(numbers.into_raw_vec_and_offset().0, [-1.0, 0.0, 4.0]);
    }
}
