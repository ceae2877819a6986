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
    fn sizes_keep_their_form_as_far_as_patches_allow() {
        assert_eq!(fitted((224, 224), 16, 256), (256, 256));
        assert_eq!(fitted((480, 640), 16, 256), (224, 288));
        assert_eq!(fitted((10, 1000), 16, 256), (32, 2048));
    }
}
