//! NaFlex patches of SigLIP 2: images in as many patches as keep their aspect ratio, padded to `max_num_patches`
//! (`Siglip2ImageProcessor`).
//!
//! Reference: `Siglip2ImageProcessor`, `get_image_size_for_max_num_patches`, `convert_image_to_patches`.

use ndarray::{Array2, Array3};

use super::Pixels;
use crate::{Error, Result};

/// The patches of an image, row by row, and zeros.
#[derive(Debug)]
pub(super) struct Patches {
    /// `[patches, values]`, where values are those of a patch row after row, all channels of a pixel together.
    pub(super) values: Array2<f32>,
    pub(super) rows: usize,
    pub(super) columns: usize,
}

/// An image `[3, height, width]` in patches of this edge, and zeros up to the most.
pub(super) fn patchified(image: &Array3<f32>, edge: usize, most: usize) -> Result<Patches> {
    let (channels, height, width) = image.dim();
    let (rows, columns) = (height / edge, width / edge);
    if rows * columns == 0 || rows * columns > most || height % edge + width % edge != 0 {
        let problem = format!("{height} x {width} pixels are not 1 to {most} patches of {edge} x {edge}");
        return Err(Error::input("image", problem, "leave `do_resize` true, or give it in such a size"));
    }
    let mut values = Array2::zeros((most, edge * edge * channels));
    for ((channel, y, x), number) in image.indexed_iter() {
        let (patch, within) = (y / edge * columns + x / edge, y % edge * edge + x % edge);
        values[(patch, within * channels + channel)] = *number;
    }
    Ok(Patches { values, rows, columns })
}

/// Patches behind their row and column, counted from 1; what is no patch stays zeros.
pub(super) fn numbered(patches: &Patches) -> Patches {
    let (count, width) = patches.values.dim();
    let mut values = Array2::zeros((count, width + 2));
    values.slice_mut(ndarray::s![.., 2..]).assign(&patches.values);
    for index in 0..patches.rows * patches.columns {
        values[(index, 0)] = (index / patches.columns + 1) as f32;
        values[(index, 1)] = (index % patches.columns + 1) as f32;
    }
    Patches { values, rows: patches.rows, columns: patches.columns }
}

/// An image `[3, height, width]` in patches of this edge, `frames` times the same, as [`patchified_frames`].
pub(super) fn patchified_by_squares(
    image: &Array3<f32>,
    edge: usize,
    merge: usize,
    frames: usize,
) -> Result<Patches> {
    patchified_frames(&vec![image; frames], edge, merge)
}

/// Patches of one frame of three channels, with all channels of a pixel together.
pub(super) fn channels_last(patches: &Patches) -> Patches {
    let plane = patches.values.ncols() / 3;
    let mut values = Array2::zeros((patches.values.nrows(), 3 * plane));
    for ((patch, at), number) in patches.values.indexed_iter() {
        values[(patch, at % plane * 3 + at / plane)] = *number;
    }
    Patches { values, rows: patches.rows, columns: patches.columns }
}

/// Patches whose values stand so many times one after the other.
pub(super) fn repeated(patches: &Patches, times: usize) -> Patches {
    let (count, width) = patches.values.dim();
    let values =
        Array2::from_shape_fn((count, width * times), |(patch, at)| patches.values[(patch, at % width)]);
    Patches { values, rows: patches.rows, columns: patches.columns }
}

/// Frames of one size `[3, height, width]` in patches of this edge of all of them, square after square of `merge` by `merge`
/// patches; values are those of a channel, frame by frame (`Qwen2VLImageProcessor.patchify`).
pub(super) fn patchified_frames(images: &[&Array3<f32>], edge: usize, merge: usize) -> Result<Patches> {
    let (channels, height, width) = images.first().map_or((0, 0, 0), |image| image.dim());
    let frames = images.len();
    let (rows, columns) = (height / edge, width / edge);
    if rows * columns == 0 || height % (edge * merge) + width % (edge * merge) != 0 {
        let problem = format!(
            "{height} x {width} pixels are no squares of {merge} x {merge} patches of {edge} x {edge}"
        );
        return Err(Error::input("image", problem, "leave `do_resize` true, or give it in such a size"));
    }
    let plane = edge * edge;
    let mut values = Array2::zeros((rows * columns, channels * frames * plane));
    for (frame, image) in images.iter().enumerate() {
        if image.dim() != (channels, height, width) {
            return Err(Error::input("videos", "have frames of different sizes", "give frames of one size"));
        }
        for ((channel, y, x), number) in image.indexed_iter() {
            let (row, column) = (y / edge, x / edge);
            let square = row / merge * (columns / merge) + column / merge;
            let patch = (square * merge + row % merge) * merge + column % merge;
            values[(patch, (channel * frames + frame) * plane + y % edge * edge + x % edge)] = *number;
        }
    }
    Ok(Patches { values, rows, columns })
}

/// [`smart_resize`] of PaddleOCR-VL (`PaddleOCRVLImageProcessor`): edges shorter than a square's grow first, one after the other.
pub(super) fn smart_resize_edges(
    (mut height, mut width): Pixels,
    factor: usize,
    limits: (usize, usize),
) -> Option<Pixels> {
    let along =
        |other: usize, edge: usize| ((other * factor) as f64 / edge as f64).round_ties_even() as usize;
    if height < factor {
        (height, width) = (factor, along(width, height));
    }
    if width < factor {
        (height, width) = (along(height, width), factor);
    }
    smart_resize((height, width), factor, limits)
}

/// [`smart_resize`] of GLM-4.1V (`Glm4vImageProcessor`): images smaller than a square grow first, and so many frames of an image
/// count towards the limits.
pub(super) fn smart_resize_frames(
    (height, width): Pixels,
    factor: usize,
    (least, most): (usize, usize),
    frames: usize,
) -> Option<Pixels> {
    let frames = frames.max(1);
    let scale = (factor as f64 / height as f64).max(factor as f64 / width as f64).max(1.0);
    let grown = |length: usize| (length as f64 * scale) as usize;
    smart_resize_within((grown(height), grown(width)), factor, (least, most), [frames; 2])
}

/// [`smart_resize`] of videos of so many frames, of which `each` are one patch together (`Qwen3VLVideoProcessor`): limits are those
/// of all frames; none of fewer than those.
pub(super) fn smart_resize_video(
    (height, width): Pixels,
    factor: usize,
    limits: (usize, usize),
    (count, each): (usize, usize),
) -> Option<Pixels> {
    if count < each {
        return None;
    }
    let scale = (factor as f64 / height as f64).max(factor as f64 / width as f64).max(1.0);
    let grown = |length: usize| (length as f64 * scale) as usize;
    let whole = (count as f64 / each as f64).round_ties_even() as usize * each;
    smart_resize_within((grown(height), grown(width)), factor, limits, [whole, count])
}

/// The size of about the image's form whose edges are multiples of `factor` and whose pixels are within the limits
/// (`smart_resize`); none of images more than 200 times as long as wide.
pub(super) fn smart_resize(size: Pixels, factor: usize, limits: (usize, usize)) -> Option<Pixels> {
    smart_resize_within(size, factor, limits, [1; 2])
}

fn smart_resize_within(
    (height, width): Pixels,
    factor: usize,
    (least, most): (usize, usize),
    [counted, frames]: [usize; 2],
) -> Option<Pixels> {
    if height.max(width) > 200 * height.min(width) {
        return None;
    }
    let factored = |length: usize| (length as f64 / factor as f64).round_ties_even() as usize * factor;
    let (rows, columns) = (factored(height), factored(width));
    let area = (frames * height * width) as f64;
    if counted * rows * columns > most {
        let beta = (area / most as f64).sqrt();
        let down =
            |length: usize| ((length as f64 / beta / factor as f64).floor() as usize * factor).max(factor);
        return Some((down(height), down(width)));
    }
    if counted * rows * columns < least {
        let beta = (least as f64 / area).sqrt();
        let up = |length: usize| (length as f64 * beta / factor as f64).ceil() as usize * factor;
        return Some((up(height), up(width)));
    }
    Some((rows, columns))
}

/// The largest size of about the image's form whose patches are no more than `most`, as the reference searches for it.
pub(super) fn fitted((height, width): Pixels, edge: usize, most: usize) -> Pixels {
    const NEAR: f64 = 1e-5;
    let scaled = |scale: f64| {
        let of = |length: usize| ((length as f64 * scale / edge as f64).ceil() as usize).max(1);
        (of(height), of(width))
    };
    let (mut low, mut high) = (NEAR / 10.0, 100.0);
    while high - low >= NEAR {
        let scale = (low + high) / 2.0;
        let (rows, columns) = scaled(scale);
        if rows.saturating_mul(columns) <= most {
            low = scale;
        } else {
            high = scale;
        }
    }
    let (rows, columns) = scaled(low);
    (rows * edge, columns * edge)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_become_multiples_within_limits_of_pixels() {
        assert_eq!(smart_resize((480, 640), 28, (3136, 1_003_520)), Some((476, 644)));
        assert_eq!(smart_resize((2000, 3000), 28, (3136, 1_003_520)), Some((812, 1204)));
        assert_eq!(smart_resize((20, 10), 28, (3136, 1_003_520)), Some((84, 56)));
        assert_eq!(smart_resize((2, 401), 28, (3136, 1_003_520)), None);
        assert_eq!(smart_resize_edges((12, 10), 28, (3136, 300_000)), Some((84, 56)));
        // `smart_resize(2, 480, 640, factor=28, max_pixels=300_000)`, and of small images of 12 by 10 pixels.
        assert_eq!(smart_resize_frames((480, 640), 28, (3136, 300_000), 2), Some((308, 420)));
        assert_eq!(smart_resize_frames((12, 10), 28, (12_544, 300_000), 2), Some((112, 84)));
    }

    #[test]
    fn patches_stand_square_after_square_frame_by_frame() {
        let image = Array3::from_shape_fn((3, 2, 4), |(channel, y, x)| (100 * channel + 10 * y + x) as f32);
        let patches = patchified_by_squares(&image, 1, 2, 2).unwrap();
        assert_eq!((patches.rows, patches.columns), (2, 4));
        let first: Vec<_> = patches.values.column(0).to_vec();
        assert_eq!(first, [0.0, 1.0, 10.0, 11.0, 2.0, 3.0, 12.0, 13.0]);
        assert_eq!(patches.values.row(1).to_vec(), [1.0, 1.0, 101.0, 101.0, 201.0, 201.0]);
        assert!(patchified_by_squares(&image, 2, 2, 1).is_err());
        let patches = channels_last(&patchified_by_squares(&image, 2, 1, 1).unwrap());
        assert_eq!(patches.values.row(1).to_vec()[..6], [2.0, 102.0, 202.0, 3.0, 103.0, 203.0]);
        let frames = repeated(&patchified_by_squares(&image, 1, 1, 1).unwrap(), 2);
        assert_eq!(frames.values.row(4).to_vec(), [10.0, 110.0, 210.0, 10.0, 110.0, 210.0]);
    }

    #[test]
    fn sizes_keep_their_form_as_far_as_patches_allow() {
        assert_eq!(fitted((224, 224), 16, 256), (256, 256));
        assert_eq!(fitted((480, 640), 16, 256), (224, 288));
        assert_eq!(fitted((10, 1000), 16, 256), (32, 2048));
    }
}
