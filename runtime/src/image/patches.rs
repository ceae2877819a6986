//! Pictures as patches: each of as many as keep its form, filled up to one number.
//!
//! Reference: `Siglip2ImageProcessor`.

use std::borrow::Cow;

use ndarray::{Array2, Array3};

use super::normalize::floats;
use super::resize::resize;
use super::{Image, Pixels, Settings};
use crate::{Error, Result, Values};

/// `pixel_values` f32 `[batch, patches, values]`, where values are those of a patch row after row, all channels of a pixel
/// together; `pixel_attention_mask` i64 `[batch, patches]`; `spatial_shapes` i64 `[batch, 2]`: rows and columns of patches.
pub(super) fn patched(images: &[Image], settings: &Settings) -> Result<Values> {
    let (edge, most) = settings.filled.unwrap_or((1, 1));
    let mut pixels = Array3::<f32>::zeros((images.len(), most, edge * edge * 3));
    let mut mask = Array2::<i64>::zeros((images.len(), most));
    let mut shapes = Array2::<i64>::zeros((images.len(), 2));
    for (index, image) in images.iter().enumerate() {
        let mut image = Cow::Borrowed(image.rgb());
        if settings.resize.is_some() {
            let (height, width) = fitted((image.height() as usize, image.width() as usize), edge, most);
            image = Cow::Owned(resize(&image, height, width, settings.resample)?);
        }
        let plane = floats(&image, settings);
        let (_, height, width) = plane.dim();
        let (rows, columns) = (height / edge, width / edge);
        if rows * columns == 0 || rows * columns > most || height % edge + width % edge != 0 {
            let problem = format!("{height} x {width} pixels are not 1 to {most} patches of {edge} x {edge}");
            return Err(Error::input("image", problem, "leave `do_resize` true, or give it in such a size"));
        }
        for ((channel, y, x), level) in plane.indexed_iter() {
            let (patch, within) = (y / edge * columns + x / edge, y % edge * edge + x % edge);
            pixels[(index, patch, within * 3 + channel)] = *level;
        }
        (0..rows * columns).for_each(|patch| mask[(index, patch)] = 1);
        (shapes[(index, 0)], shapes[(index, 1)]) = (rows as i64, columns as i64);
    }
    Ok(Values::from([
        ("pixel_values".to_owned(), pixels.into_dyn().into()),
        ("pixel_attention_mask".to_owned(), mask.into_dyn().into()),
        ("spatial_shapes".to_owned(), shapes.into_dyn().into()),
    ]))
}

/// The largest size of about the picture's form whose patches are no more than `most`, as the reference searches for it.
fn fitted((height, width): Pixels, edge: usize, most: usize) -> Pixels {
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
