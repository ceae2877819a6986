//! Inpainting: what a mask covers is made anew, by a U-Net that takes the mask and the masked image, or by one that is given the
//! image's latents again after each step.
//!
//! Reference: `StableDiffusionInpaintPipeline`, `FluxInpaintPipeline` and their relatives of `diffusers`.

use std::ops::ControlFlow;

use ndarray::{Array2, Array4, ArrayView4, Axis, concatenate};

use super::denoise::Noise;
use super::image_to_image::{InitialLatents, Start, normalized};
use super::{DenoisingStep, GeneratedImage, ImageToImageOptions, TextToImage, misshapen};
use crate::any_model::AnyModel;
use crate::diffusion::schedulers::Scheduler;
use crate::image::{Filter, Image};
use crate::tasks::builder::opened;
use crate::tasks::{Pipeline, Task};
use crate::{Error, Result};

/// Makes what a mask covers of an image anew, by a text.
#[derive(Debug)]
pub struct Inpainting<A> {
    within: TextToImage<A>,
}

impl<A: AnyModel> Pipeline<A> for Inpainting<A> {
    const TASK: Task = Task::Inpainting;

    fn from_model(model: A) -> Result<Self> {
        Ok(Self { within: TextToImage::from_model(model)? })
    }
}

opened!(Inpainting: within.model);

impl<A: AnyModel> Inpainting<A> {
    /// The images of some prompts, one after the other, in which `mask` is white; where it is black they are `image`. Models that were
    /// trained for this take a `strength` of 1, with which the first latents are noise alone.
    ///
    /// # Errors
    /// When the strength leaves no step, or as [`TextToImage::run`].
    pub fn run(
        &self,
        prompts: &[&str],
        (image, mask): (&Image, &Image),
        options: &ImageToImageOptions,
    ) -> Result<Vec<GeneratedImage>> {
        self.run_with(prompts, (image, mask), options, &mut |_| ControlFlow::Continue(()))
    }

    /// The same, and tells of each step; `Break` ends with an error that says so.
    ///
    /// # Errors
    /// As [`Inpainting::run`].
    pub fn run_with(
        &self,
        prompts: &[&str],
        (image, mask): (&Image, &Image),
        options: &ImageToImageOptions,
        on_step: &mut dyn FnMut(&DenoisingStep<'_>) -> ControlFlow<()>,
    ) -> Result<Vec<GeneratedImage>> {
        self.within.make_from(prompts, (image, Some(mask)), options, on_step)
    }
}

/// What a mask leaves of the image.
#[derive(Debug)]
pub(super) struct Preserved {
    /// 1 where the image is made anew: `[rows, columns]`.
    mask: Array2<f32>,
    latents: PreservedLatents,
}

#[derive(Debug)]
enum PreservedLatents {
    /// `masked_image_latents`, of the image without what is masked: the denoiser takes them.
    Masked(Array4<f32>),
    /// `image_latents` of an image that is edited: the denoiser takes them, and no mask.
    Edited(Array4<f32>),
    /// `image_latents`, and the noise that is added to them: they take the place of the denoiser's.
    Image { image_latents: Array4<f32>, noise: Array4<f32> },
}

impl<A: AnyModel> TextToImage<A> {
    /// As [`TextToImage::noised`], and what is preserved of the image. Noise is drawn for the image's latents, where these are needed,
    /// for the first ones, and for those of the masked image, even if nothing takes them.
    pub(super) fn masked(
        &self,
        (start, mask): (&Start<'_>, &Image),
        begin: usize,
        (scheduler, shape): (&dyn Scheduler, [usize; 4]),
        noise: &mut Noise,
    ) -> Result<InitialLatents> {
        let takes_mask = self.settings.in_channels != self.settings.channels;
        let size = [shape[2], shape[3]].map(|side| side * self.settings.scale);
        let pixels = normalized(start.image, size)?;
        let whole = start.strength >= 1.0;
        let image_latents = match takes_mask && whole {
            true => None,
            false => Some(in_batch(&self.posterior(&pixels, noise.first(), start.tiled)?, shape)?),
        };
        let drawn = Array4::from_shape_vec(shape, noise.randn(shape.iter().product()));
        let drawn = drawn.map_err(|error| misshapen(&error))?;
        let latents = match &image_latents {
            Some(image_latents) if !whole => {
                let (kept, added) = scheduler.noise_scales(begin);
                image_latents * kept + &drawn * added
            }
            _ => &drawn * scheduler.init_noise_sigma(),
        };
        let covered = binary(mask, size)?;
        let preserved = match image_latents {
            Some(image_latents) if !takes_mask => {
                // The reference encodes the masked image here too, of which the noise alone is seen.
                noise
                    .first()
                    .iter_mut()
                    .for_each(|generator| drop(generator.randn(shape[1..].iter().product())));
                PreservedLatents::Image { image_latents, noise: drawn }
            }
            _ => {
                let masked = self.posterior(&uncovered(pixels, &covered), noise.first(), start.tiled)?;
                PreservedLatents::Masked(in_batch(&masked, shape)?)
            }
        };
        let scale = self.settings.scale;
        let mask = Array2::from_shape_fn((shape[2], shape[3]), |(row, column)| {
            covered[[row * scale, column * scale]]
        });
        let preserved = Some(Preserved { mask, latents: preserved });
        Ok(InitialLatents { begin, latents, preserved })
    }
}

impl Preserved {
    /// The latents of an image that is edited.
    pub(super) fn edited(image_latents: Array4<f32>) -> Self {
        Self { mask: Array2::zeros((0, 0)), latents: PreservedLatents::Edited(image_latents) }
    }

    /// What the denoiser takes: behind the latents the mask and those of the masked image, or those of the image.
    pub(super) fn beside(&self, sample: Array4<f32>) -> Result<Array4<f32>> {
        if let PreservedLatents::Edited(image) = &self.latents {
            return concatenate(Axis(1), &[sample.view(), image.view()]).map_err(|error| misshapen(&error));
        }
        let PreservedLatents::Masked(masked) = &self.latents else { return Ok(sample) };
        let (images, _, rows, columns) = sample.dim();
        let mask = self.mask.broadcast((images, 1, rows, columns));
        let help = "open a model that is made for this task";
        let mask = mask.ok_or_else(|| Error::input("mask", "has latents of another size", help))?;
        concatenate(Axis(1), &[sample.view(), mask, masked.view()]).map_err(|error| misshapen(&error))
    }

    /// The latents after a step, which outside the mask are the image's with noise for the next timestep.
    pub(super) fn restored(&self, latents: Array4<f32>, scales: Option<(f32, f32)>) -> Array4<f32> {
        let PreservedLatents::Image { image_latents, noise } = &self.latents else { return latents };
        let (kept, added) = scales.unwrap_or((1.0, 0.0));
        let preserved = image_latents * kept + noise * added;
        let mut blended = latents;
        for (mut latents, preserved) in blended.outer_iter_mut().zip(preserved.outer_iter()) {
            for (mut channel, preserved) in latents.outer_iter_mut().zip(preserved.outer_iter()) {
                let all = ndarray::Zip::from(&mut channel).and(&preserved).and(&self.mask);
                all.for_each(|latent, preserved, mask| {
                    *latent = (1.0 - mask) * preserved + mask * *latent;
                });
            }
        }
        blended
    }
}

/// Pixels `[1, 3, height, width]` without those that a mask covers.
fn uncovered(mut pixels: Array4<f32>, covered: &Array2<f32>) -> Array4<f32> {
    for (mut channels, covered) in pixels.lanes_mut(Axis(1)).into_iter().zip(covered) {
        channels.mapv_inplace(|x| x * (1.0 - covered));
    }
    pixels
}

/// Latents of one image for all images that are made.
pub(super) fn in_batch(latents: &Array4<f32>, shape: [usize; 4]) -> Result<Array4<f32>> {
    let broadcast: Option<ArrayView4<'_, f32>> = latents.broadcast(shape);
    let help = "open a model that is made for this task";
    let missing = || Error::input("image", "has latents of another size", help);
    broadcast.map(|latents| latents.to_owned()).ok_or_else(missing)
}

/// 1 where a mask is at least half white, else 0: `[height, width]`.
fn binary(mask: &Image, [height, width]: [usize; 2]) -> Result<Array2<f32>> {
    let pixels = mask.resize(height, width, Filter::Lanczos)?;
    let pixels = pixels.pixels();
    Ok(Array2::from_shape_fn((height, width), |(y, x)| {
        // Pillow's luma of ITU-R 601.
        let [red, green, blue] = [0, 1, 2].map(|c| u32::from(pixels[[y, x, c]]));
        let luma = (red * 19_595 + green * 38_470 + blue * 7_471 + (1 << 15)) >> 16;
        if luma >= 128 { 1.0 } else { 0.0 }
    }))
}

#[cfg(test)]
mod tests {
    use ndarray::{Array3, array};

    use super::*;

    #[test]
    fn half_white_is_made_anew() {
        let levels = [[255, 255, 255], [128, 128, 128], [127, 127, 127], [255, 0, 0], [0, 255, 0]];
        let mask = Array3::from_shape_fn((1, 5, 3), |(_, x, c)| levels[x][c]);
        let mask = Image::from_pixels(&mask).unwrap();
        assert_eq!(binary(&mask, [1, 5]).unwrap(), array![[1.0, 1.0, 0.0, 0.0, 1.0]]);
    }

    #[test]
    fn what_is_preserved_takes_the_place_of_what_was_predicted() {
        let latents = PreservedLatents::Image {
            image_latents: Array4::from_elem((1, 1, 1, 2), 4.0),
            noise: Array4::from_elem((1, 1, 1, 2), 1.0),
        };
        let preserved = Preserved { mask: array![[1.0, 0.0]], latents };
        let predicted = Array4::from_elem((1, 1, 1, 2), 9.0);
        assert_eq!(
            preserved.restored(predicted.clone(), Some((0.5, 3.0))).into_raw_vec_and_offset().0,
            [9.0, 5.0]
        );
        assert_eq!(preserved.restored(predicted, None).into_raw_vec_and_offset().0, [9.0, 4.0]);
    }
}
