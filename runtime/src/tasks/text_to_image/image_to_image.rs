//! Image-to-image: noise is added to an image's latents, and only the last steps are run.
//!
//! Reference: `StableDiffusionImg2ImgPipeline`, `FluxImg2ImgPipeline` and their relatives of `diffusers`.

use std::ops::ControlFlow;

use ndarray::{Array4, ArrayBase, Axis, Ix4, concatenate};

use super::denoise::Noise;
use super::inpainting::{Preserved, in_batch};
use super::pipelines::{Conditioning, Guidance};
use super::settings::Settings;
use super::tiling::Tiles;
use super::{DenoisingStep, GeneratedImage, TextToImage, TextToImageOptions, floats, misshapen};
use crate::any_model::AnyModel;
use crate::diffusion::Generator;
use crate::diffusion::schedulers::Scheduler;
use crate::image::{Filter, Image};
use crate::tasks::builder::opened;
use crate::tasks::{Pipeline, Task};
use crate::{Error, GraphKind, Result, Value, Values};

/// Makes images of texts that are like an image.
#[derive(Debug)]
pub struct ImageToImage<A> {
    within: TextToImage<A>,
}

/// How images are made of an image.
#[derive(Clone, Debug, Default)]
pub struct ImageToImageOptions {
    /// How much of the image is made anew: the share of the steps that is run, above 0 and up to 1; that of the reference's pipeline
    /// for the task where not given.
    pub strength: Option<f64>,
    /// How images are made of texts; height and width are the image's where not given, less what is left of a row of tokens, and
    /// there are no latents of one's own.
    pub generation: TextToImageOptions,
}

/// What images begin with: an image, how much of it is made anew, and where.
#[derive(Clone, Copy)]
pub(super) struct Start<'a> {
    pub image: &'a Image,
    pub strength: f64,
    pub mask: Option<&'a Image>,
    /// Whether the image is encoded in tiles.
    pub tiled: bool,
}

/// The first of the timesteps that are run, the latents there, and what is preserved of an image.
#[derive(Debug)]
pub(super) struct InitialLatents {
    pub begin: usize,
    pub latents: Array4<f32>,
    pub preserved: Option<Preserved>,
}

impl<A: AnyModel> Pipeline<A> for ImageToImage<A> {
    const TASK: Task = Task::ImageToImage;

    fn from_model(model: A) -> Result<Self> {
        Ok(Self { within: TextToImage::from_model(model)? })
    }
}

opened!(ImageToImage: within.model);

impl<A: AnyModel> ImageToImage<A> {
    /// The images of some prompts that are like `image`, one after the other.
    ///
    /// # Errors
    /// When the strength leaves no step, or as [`TextToImage::run`].
    pub fn run(
        &self,
        prompts: &[&str],
        image: &Image,
        options: &ImageToImageOptions,
    ) -> Result<Vec<GeneratedImage>> {
        self.run_with(prompts, image, options, &mut |_| ControlFlow::Continue(()))
    }

    /// The same, and tells of each step; `Break` ends with an error that says so.
    ///
    /// # Errors
    /// As [`ImageToImage::run`].
    pub fn run_with(
        &self,
        prompts: &[&str],
        image: &Image,
        options: &ImageToImageOptions,
        on_step: &mut dyn FnMut(&DenoisingStep<'_>) -> ControlFlow<()>,
    ) -> Result<Vec<GeneratedImage>> {
        self.within.make_from(prompts, (image, None), options, on_step)
    }
}

impl<A: AnyModel> TextToImage<A> {
    /// Images that begin with an image.
    pub(super) fn make_from(
        &self,
        prompts: &[&str],
        (image, mask): (&Image, Option<&Image>),
        options: &ImageToImageOptions,
        on_step: &mut dyn FnMut(&DenoisingStep<'_>) -> ControlFlow<()>,
    ) -> Result<Vec<GeneratedImage>> {
        let (strength, guidance_scale) = defaults(self.class.conditioning, mask.is_some());
        if self.class.guidance == Guidance::Image && options.strength.is_some() {
            let problem = "is not read: the image is edited, and the first latents are noise alone";
            return Err(Error::input(
                "strength",
                problem,
                "leave it out, and give an `image_guidance_scale`",
            ));
        }
        let strength = options.strength.unwrap_or(strength);
        let mut options = options.generation.clone();
        if self.class.conditioning == Conditioning::Joined {
            options.num_inference_steps.get_or_insert(50);
        }
        options.guidance_scale.get_or_insert(guidance_scale);
        if !(strength > 0.0 && strength <= 1.0) {
            let help = "give a number above 0, and up to 1 for an image that is made anew";
            return Err(Error::input("strength", format!("is {strength}"), help));
        }
        if options.latents.is_some() {
            let problem = "are those of the image already";
            return Err(Error::input("latents", problem, "leave them out, or make images of texts alone"));
        }
        let tiled = options.vae_tiling;
        let multiple = self.settings.multiple();
        options.height.get_or_insert(image.height() / multiple * multiple);
        options.width.get_or_insert(image.width() / multiple * multiple);
        self.make(prompts, &options, Some(Start { image, strength, mask, tiled }), on_step)
    }

    /// The first of the timesteps that are run, and the latents there: those of the image, of which one is drawn from their
    /// distribution, with noise.
    pub(super) fn noised(
        &self,
        start: &Start<'_>,
        steps: usize,
        (scheduler, shape): (&dyn Scheduler, [usize; 4]),
        noise: &mut Noise,
    ) -> Result<InitialLatents> {
        if self.class.guidance == Guidance::Image {
            return self.edited(start, (scheduler, shape), noise);
        }
        let share = steps as f64 * start.strength;
        // Pipelines of transformers leave out whole steps, others run whole ones.
        let run = match self.class.denoiser {
            "transformer" => steps - (steps as f64 - share).max(0.0) as usize,
            _ => (share as usize).min(steps),
        };
        if run == 0 {
            let problem = format!("{} of {steps} steps is none", start.strength);
            return Err(Error::input("strength", problem, "give more steps, or a higher strength"));
        }
        let begin = (steps - run) * scheduler.order();
        if let Some(mask) = start.mask {
            return self.masked((start, mask), begin, (scheduler, shape), noise);
        }
        let size = [shape[2], shape[3]].map(|side| side * self.settings.scale);
        // Pipelines of transformers encode one image for all that are made.
        let generators = if self.class.denoiser == "transformer" { noise.first() } else { noise.all() };
        let drawn = self.posterior(&normalized(start.image, size)?, generators, start.tiled)?;
        let noise = Array4::from_shape_vec(shape, noise.randn(shape.iter().product()));
        let noise = noise.map_err(|error| misshapen(&error))?;
        let drawn = drawn.broadcast(shape).map(|drawn| drawn.to_owned());
        let help = "open a model that is made for this task";
        let drawn = drawn.ok_or_else(|| Error::input("image", "has latents of another size", help))?;
        let (kept, added) = scheduler.noise_scales(begin);
        Ok(InitialLatents { begin, latents: drawn * kept + noise * added, preserved: None })
    }

    /// Noise, and beside it the latents of the image that is edited, the mean of their distribution, which the reference does not scale.
    fn edited(
        &self,
        start: &Start<'_>,
        (scheduler, shape): (&dyn Scheduler, [usize; 4]),
        noise: &mut Noise,
    ) -> Result<InitialLatents> {
        let size = [shape[2], shape[3]].map(|side| side * self.settings.scale);
        let pixels = normalized(start.image, size)?;
        let inputs = Values::from([("images".to_owned(), Value::from(pixels.into_dyn()))]);
        let mean = floats(self.model.run_graph(GraphKind::LatentEncoder, inputs)?, "mean")?;
        let mean = mean.into_dimensionality::<Ix4>().map_err(|error| misshapen(&error))?;
        let latents = Array4::from_shape_vec(shape, noise.randn(shape.iter().product()));
        let latents = latents.map_err(|error| misshapen(&error))? * scheduler.init_noise_sigma();
        let preserved = Some(Preserved::edited(in_batch(&mean, shape)?));
        Ok(InitialLatents { begin: 0, latents, preserved })
    }

    /// Latents of pixels, drawn from their distribution (`DiagonalGaussianDistribution.sample`): by each generator once.
    pub(super) fn posterior(
        &self,
        pixels: &Array4<f32>,
        generators: &mut [Generator],
        tiled: bool,
    ) -> Result<Array4<f32>> {
        // Means before logarithms of variances, as the reference has them in one (`parameters`).
        let mut encode = |pixels: Array4<f32>| {
            let inputs = Values::from([("images".to_owned(), Value::from(pixels.into_dyn()))]);
            let mut outputs = self.model.run_graph(GraphKind::LatentEncoder, inputs)?;
            let logvar = outputs.remove("logvar").map(|logvar| ("logvar".to_owned(), logvar));
            let logvar = floats(Values::from_iter(logvar), "logvar")?;
            let mean = floats(outputs, "mean")?;
            let moments = concatenate(Axis(1), &[mean.view(), logvar.view()]);
            let moments = moments.and_then(ArrayBase::into_dimensionality::<Ix4>);
            moments.map_err(|error| misshapen(&error))
        };
        let Settings { tile, scale, .. } = self.settings;
        let moments = match tiled {
            true => Tiles::new(tile, tile / scale).run(pixels, &mut encode)?,
            false => encode(pixels.clone())?,
        };
        let channels = moments.dim().1 / 2;
        let (mean, logvar) = moments.view().split_at(Axis(1), channels);
        let (_, _, rows, columns) = mean.dim();
        let shape = (generators.len(), channels, rows, columns);
        let noise = generators.iter_mut().flat_map(|generator| generator.randn(mean.len()));
        let moments = mean.iter().zip(logvar).cycle().zip(noise);
        let Settings { scaling_factor, shift_factor, .. } = self.settings;
        let drawn = moments.map(|((mean, logvar), noise)| {
            (mean + (0.5 * logvar).exp() * noise - shift_factor) * scaling_factor
        });
        Array4::from_shape_vec(shape, drawn.collect()).map_err(|error| misshapen(&error))
    }
}

/// `strength` and `guidance_scale` of the reference's pipelines for image-to-image, or for inpainting.
fn defaults(conditioning: Conditioning, masked: bool) -> (f64, f32) {
    match (conditioning, masked) {
        (Conditioning::Sizes, false) => (0.3, 5.0),
        (Conditioning::Sizes, true) => (0.9999, 7.5),
        (Conditioning::Joined | Conditioning::Placed, _) => (0.6, 7.0),
        (_, false) => (0.8, 7.5),
        (_, true) => (1.0, 7.5),
    }
}

/// An image in this size, between -1 and 1: `[1, 3, height, width]`.
pub(super) fn normalized(image: &Image, [height, width]: [usize; 2]) -> Result<Array4<f32>> {
    let image = image.resize(height, width, Filter::Lanczos)?;
    let pixels = image.pixels();
    let at = |(_, c, y, x): (usize, usize, usize, usize)| 2.0 * (f32::from(pixels[[y, x, c]]) / 255.0) - 1.0;
    Ok(Array4::from_shape_fn((1, 3, height, width), at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pipeline_has_a_strength_of_its_own() {
        assert_eq!(defaults(Conditioning::HiddenStates, false), (0.8, 7.5));
        assert_eq!(defaults(Conditioning::HiddenStates, true), (1.0, 7.5));
        assert_eq!(defaults(Conditioning::Sizes, false), (0.3, 5.0));
        assert_eq!(defaults(Conditioning::Sizes, true), (0.9999, 7.5));
        assert_eq!(defaults(Conditioning::Placed, true), (0.6, 7.0));
    }
}
