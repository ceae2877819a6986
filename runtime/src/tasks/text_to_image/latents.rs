//! Latents on their way to a denoiser and back: packed two by two, places of tokens, images of another size than was trained.

use ndarray::{Array2, Array3, Array4, ArrayD, ArrayView3, Axis, Ix3, Ix4, Ix5, s};

use super::pipelines::{Conditioning, Layout};
use super::settings::Settings;
use super::tiling::Tiles;
use super::{TextToImage, floats, misshapen};
use crate::any_model::AnyModel;
use crate::image::{Image, Interpolated, Interpolation};
use crate::{GraphKind, Result, Value, Values};

impl Settings {
    /// The rows and columns of tokens.
    pub(super) fn grid(&self, size: [usize; 2]) -> [usize; 2] {
        size.map(|side| side / self.scale / self.patch_size)
    }

    /// How many tokens an image of this size has.
    pub(super) fn tokens(&self, size: [usize; 2]) -> usize {
        self.grid(size).iter().product()
    }

    /// The row and the column of each token behind a zero, and before another one where there is a fourth axis
    /// (`_prepare_latent_image_ids`, `_prepare_latent_ids`): `[tokens, axes]`.
    pub(super) fn token_places(&self, size: [usize; 2], axes: usize) -> Array2<i64> {
        let [_, columns] = self.grid(size);
        let columns = columns.max(1);
        Array2::from_shape_fn((self.tokens(size), axes), |(token, axis)| {
            [0, token / columns, token % columns].get(axis).map_or(0, |&place| place as i64)
        })
    }
}

/// Tokens of two rows and two columns, a channel's four after each other (`_pack_latents`): `[images, tokens, 4 * channels]`.
pub(super) fn packed(latents: &Array4<f32>) -> Array3<f32> {
    let (images, channels, rows, columns) = latents.dim();
    let across = (columns / 2).max(1);
    Array3::from_shape_fn((images, rows / 2 * (columns / 2), 4 * channels), |(image, token, place)| {
        let (row, column) = (2 * (token / across) + place % 4 / 2, 2 * (token % across) + place % 2);
        latents[[image, place / 4, row, column]]
    })
}

/// Latents of such tokens (`_unpack_latents`): `[images, channels, rows, columns]`.
pub(super) fn unpacked(tokens: &Array3<f32>, [rows, columns]: [usize; 2]) -> Array4<f32> {
    let (images, _, width) = tokens.dim();
    Array4::from_shape_fn((images, width / 4, rows, columns), |(image, channel, row, column)| {
        tokens[[image, row / 2 * (columns / 2) + column / 2, 4 * channel + row % 2 * 2 + column % 2]]
    })
}

/// A token for each place (`_pack_latents` of FLUX.2): `[images, tokens, channels]`.
pub(super) fn tokens(latents: &Array4<f32>) -> Array3<f32> {
    let (images, channels, rows, columns) = latents.dim();
    Array3::from_shape_fn((images, rows * columns, channels), |(image, token, channel)| {
        latents[[image, channel, token / columns, token % columns]]
    })
}

/// Latents of such tokens (`_unpack_latents_with_ids`): `[images, channels, rows, columns]`.
fn placed(tokens: &Array3<f32>, [rows, columns]: [usize; 2]) -> Array4<f32> {
    let (images, _, channels) = tokens.dim();
    Array4::from_shape_fn((images, channels, rows, columns), |(image, channel, row, column)| {
        tokens[[image, row * columns + column, channel]]
    })
}

/// A prediction for feature maps without the variance that some denoisers predict behind it.
pub(super) fn without_variance(predicted: ArrayD<f32>, channels: usize) -> ArrayD<f32> {
    match predicted.shape() {
        [_, both, _, _] if both / 2 == channels => {
            predicted.slice_axis(Axis(1), (..channels).into()).to_owned()
        }
        _ => predicted,
    }
}

/// A prediction for latents of so many rows and columns.
pub(super) fn prediction(predicted: ArrayD<f32>, layout: Layout, sides: [usize; 2]) -> Result<Array4<f32>> {
    let misshapen = |error| misshapen(&error);
    match layout {
        Layout::Maps => predicted.into_dimensionality::<Ix4>().map_err(misshapen),
        Layout::Frame => {
            let frame = predicted.into_dimensionality::<Ix5>().map_err(misshapen)?;
            Ok(frame.index_axis_move(Axis(2), 0))
        }
        Layout::Packed => Ok(unpacked(&predicted.into_dimensionality::<Ix3>().map_err(misshapen)?, sides)),
        Layout::Tokens => Ok(placed(&predicted.into_dimensionality::<Ix3>().map_err(misshapen)?, sides)),
    }
}

impl<A: AnyModel> TextToImage<A> {
    /// What is added to latents before they are decoded; the reference leaves it out where Stable Diffusion 3 inpaints.
    pub(super) fn shift_factor(&self, masked: bool) -> f32 {
        let unshifted = masked && self.class.conditioning == Conditioning::Joined;
        if unshifted { 0.0 } else { self.settings.shift_factor }
    }

    /// The images that latents stand for, of this size.
    pub(super) fn decode(
        &self,
        latents: &Array4<f32>,
        shift_factor: f32,
        size: [usize; 2],
        tiled: bool,
    ) -> Result<Vec<Image>> {
        let Settings { scaling_factor, .. } = self.settings;
        let latents = latents.mapv(|x| x / scaling_factor + shift_factor);
        let mut decode = |latents: Array4<f32>| {
            let inputs = Values::from([("latents".to_owned(), Value::from(latents.into_dyn()))]);
            let decoded = floats(self.model.run_graph(GraphKind::LatentDecoder, inputs)?, "sample")?;
            decoded.into_dimensionality::<Ix4>().map_err(|error| misshapen(&error))
        };
        let Settings { tile, scale, .. } = self.settings;
        let decoded = match tiled {
            true => Tiles::new(tile / scale, tile).run(&latents, &mut decode)?,
            false => decode(latents)?,
        };
        decoded.outer_iter().map(|pixels| levels(&resized(&pixels, size))).collect()
    }
}

/// 255 levels of numbers between -1 and 1.
fn levels(pixels: &Array3<f32>) -> Result<Image> {
    let level = |x: f32| ((x / 2.0 + 0.5).clamp(0.0, 1.0) * 255.0).round_ties_even() as u8;
    let (_, height, width) = pixels.dim();
    Image::from_pixels(&Array3::from_shape_fn((height, width, 3), |(y, x, c)| level(pixels[[c, y, x]])))
}

/// An image in another size, which it fills; what stands out is cut off (`resize_and_crop_tensor`).
fn resized(pixels: &ArrayView3<'_, f32>, [height, width]: [usize; 2]) -> Array3<f32> {
    let (_, rows, columns) = pixels.dim();
    if [rows, columns] == [height, width] {
        return pixels.to_owned();
    }
    let ratio = (height as f64 / rows as f64).max(width as f64 / columns as f64);
    let sides = [rows, columns].map(|side| (side as f64 * ratio) as usize);
    let [y, x] = [sides[0].saturating_sub(height) / 2, sides[1].saturating_sub(width) / 2];
    let resized = Interpolated::new(pixels, (sides[0], sides[1]), Interpolation::Bilinear).maps();
    resized.slice(s![.., y..(y + height).min(sides[0]), x..(x + width).min(sides[1])]).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_places_of_a_channel_stand_in_one_token() {
        let latents = Array4::from_shape_fn((1, 2, 2, 4), |(_, c, y, x)| (100 * c + 10 * y + x) as f32);
        let tokens = packed(&latents);
        assert_eq!(tokens.shape(), [1, 2, 8]);
        let second: Vec<f32> = tokens.slice(s![0, 1, ..]).to_vec();
        assert_eq!(second, [2.0, 3.0, 12.0, 13.0, 102.0, 103.0, 112.0, 113.0]);
        assert_eq!(unpacked(&tokens, [2, 4]), latents);
    }

    #[test]
    fn variance_behind_a_prediction_is_left_out() {
        let predicted = ArrayD::from_shape_vec(vec![1, 2, 1, 1], vec![1.0, 2.0]).unwrap();
        assert_eq!(without_variance(predicted.clone(), 1).into_raw_vec_and_offset().0, [1.0]);
        assert_eq!(without_variance(predicted, 2).shape(), [1, 2, 1, 1]);
    }

    #[test]
    fn an_image_fills_another_size_and_is_cut() {
        let pixels = Array3::from_shape_fn((1, 2, 4), |(_, _, x)| x as f32);
        assert_eq!(
            resized(&pixels.view(), [2, 2]),
            Array3::from_shape_fn((1, 2, 2), |(_, _, x)| x as f32 + 1.0)
        );
        assert_eq!(resized(&pixels.view(), [4, 4]).shape(), [1, 4, 4]);
    }
}
