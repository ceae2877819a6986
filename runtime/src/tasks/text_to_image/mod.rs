//! Text-to-image: latents of noise, from which a denoiser takes a little at each step, and the images that they stand for.
//!
//! Reference: `StableDiffusionPipeline` of `diffusers` and its relatives. Noise is drawn as they draw it, so that a seed gives the
//! same image.

mod angles;
mod checks;
mod classes;
mod conditioning;
mod controlnet;
mod denoise;
mod guidance;
mod image_to_image;
mod inpainting;
mod latents;
mod options;
mod pipelines;
mod png;
mod prompt_weights;
mod prompts;
mod resolutions;
mod rotary;
mod settings;
mod text_encoders;
mod tiling;

pub use image_to_image::{ImageToImage, ImageToImageOptions};
pub use inpainting::Inpainting;
pub use options::{DenoisingStep, GeneratedImage, TextToImageOptions};

use std::ops::ControlFlow;

use ndarray::ArrayD;

use super::builder::opened;
use super::{Pipeline, Task};
use crate::any_model::AnyModel;
use crate::diffusion::schedulers::{self, Scheduler};
use crate::{Error, Result, Value, Values};
use denoise::Request;
use image_to_image::Start;
use pipelines::{Conditioning, Guidance, PipelineClass, Time};
use prompts::TextInput;
use settings::Settings;

/// Makes images of texts.
///
/// ```no_run
/// # fn example<A: weft::Architecture>() -> weft::Result<()> {
/// use weft::tasks::{TextToImage, TextToImageOptions};
///
/// let pipeline = TextToImage::<A>::open("stable-diffusion-v1-5/stable-diffusion-v1-5")?.load()?;
/// let options = TextToImageOptions { seed: Some(42), ..TextToImageOptions::default() };
/// pipeline.run(&["A loom at night."], &options)?[0].save("image.png")?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct TextToImage<A> {
    model: A,
    class: PipelineClass,
    texts: Vec<TextInput>,
    settings: Settings,
}

impl<A: AnyModel> Pipeline<A> for TextToImage<A> {
    const TASK: Task = Task::TextToImage;

    fn from_model(model: A) -> Result<Self> {
        let (checkpoint, config) = (model.checkpoint(), model.raw_config());
        let class = PipelineClass::read(checkpoint)?;
        let texts = class
            .text_encoders
            .iter()
            .map(|encoder| TextInput::read(*encoder, checkpoint, config).transpose());
        let texts = texts.flatten().collect::<Result<_>>()?;
        let settings = Settings::read(&class, config);
        checks::check_vae(&class, checkpoint, config)?;
        checks::check_embedded_guidance(&class, &settings, checkpoint)?;
        let pipeline = Self { model, class, texts, settings };
        let scheduler = pipeline.scheduler()?;
        if pipeline.class.time == Time::Angle && scheduler.sigma_data().is_none() {
            let path = pipeline.model.checkpoint().component("scheduler").require("scheduler_config.json")?;
            let problem = "`_class_name` is of no scheduler whose timesteps are angles";
            return Err(Error::config(path, problem, "take the published one, SCMScheduler"));
        }
        Ok(pipeline)
    }
}

opened!(TextToImage: model);

impl<A: AnyModel> TextToImage<A> {
    /// The images of some prompts, one after the other.
    ///
    /// # Errors
    /// When a size is no multiple of what a row of latents stands for, a number is 0, or the model fails.
    pub fn run(&self, prompts: &[&str], options: &TextToImageOptions) -> Result<Vec<GeneratedImage>> {
        self.run_with(prompts, options, &mut |_| ControlFlow::Continue(()))
    }

    /// The same, and tells of each step; `Break` ends with an error that says so.
    ///
    /// # Errors
    /// As [`TextToImage::run`].
    pub fn run_with(
        &self,
        prompts: &[&str],
        options: &TextToImageOptions,
        on_step: &mut dyn FnMut(&DenoisingStep<'_>) -> ControlFlow<()>,
    ) -> Result<Vec<GeneratedImage>> {
        self.make(prompts, options, None, on_step)
    }

    /// Images from noise, or from an image with noise.
    fn make(
        &self,
        prompts: &[&str],
        options: &TextToImageOptions,
        start: Option<Start<'_>>,
        on_step: &mut dyn FnMut(&DenoisingStep<'_>) -> ControlFlow<()>,
    ) -> Result<Vec<GeneratedImage>> {
        if prompts.is_empty() {
            return Ok(vec![]);
        }
        let options = &*self.sized_by_control(options)?;
        self.check(options)?;
        let asked = self.size(options)?;
        let Settings { channels, in_channels, .. } = self.settings;
        let masked = start.is_some_and(|start| start.mask.is_some());
        let edits = self.class.guidance == Guidance::Image;
        let taken = match (start.is_some(), edits) {
            (true, true) => in_channels == 2 * channels,
            (_, false) => in_channels == channels || (masked && in_channels == 2 * channels + 1),
            (false, true) => false,
        };
        if !taken {
            let problem =
                format!("are missing: the denoiser takes {in_channels} channels, latents have {channels}");
            let (name, help) = match edits {
                true => ("image", "open the published checkpoint for image-to-image"),
                false => ("image and mask", "open the checkpoint for inpainting"),
            };
            return Err(Error::input(name, problem, help));
        }
        let size = match options.use_resolution_binning && self.class.conditioning == Conditioning::Masked {
            true => resolutions::trained(self.settings.trained(), asked).unwrap_or(asked),
            false => asked,
        };
        let seeds = self.seeds(prompts, options)?;
        let request = Request { prompts, options, start, size, seeds: &seeds };
        let latents = self.denoise(&request, on_step)?;
        let (steps, scale) = (self.steps(options), self.guidance_scale(options));
        let made = self
            .decode(&latents, self.shift_factor(masked), asked, options.vae_tiling)?
            .into_iter()
            .enumerate()
            .map(|(index, image)| {
                let parameters = png::Parameters {
                    prompt: prompts[index / options.num_images_per_prompt],
                    negative_prompt: options.negative_prompt.as_deref().unwrap_or_default(),
                    steps,
                    scale,
                    seed: seeds[index.min(seeds.len() - 1)],
                    size: asked,
                };
                GeneratedImage { image, parameters: parameters.to_string() }
            });
        Ok(made.collect())
    }

    /// A scheduler of its own for each run.
    fn scheduler(&self) -> Result<Box<dyn Scheduler>> {
        const FILE: &str = "scheduler_config.json";
        let folder = self.model.checkpoint().component("scheduler");
        let path = folder.require(FILE)?;
        schedulers::read(&folder.json(FILE)?.unwrap_or_default(), &path)
    }

    /// One seed, or one for each image.
    fn seeds(&self, prompts: &[&str], options: &TextToImageOptions) -> Result<Vec<u64>> {
        let images = prompts.len() * options.num_images_per_prompt;
        if options.seeds.is_empty() {
            let since = || crate::clock::now().duration_since(std::time::UNIX_EPOCH);
            let now = || since().map_or(0, |since| u64::from(since.subsec_nanos()));
            return Ok(vec![options.seed.unwrap_or_else(now)]);
        }
        if options.seed.is_some() || options.seeds.len() != images {
            let problem = format!("has {} seeds for {images} images", options.seeds.len());
            let help = "give as many as there are images, and no `seed` beside them";
            return Err(Error::input("seeds", problem, help));
        }
        Ok(options.seeds.clone())
    }
}

/// An output that must be there.
fn floats(mut outputs: Values, name: &str) -> Result<ArrayD<f32>> {
    match outputs.remove(name) {
        Some(Value::F32(array)) => Ok(array),
        _ => Err(Error::input(name, "is not given by the model", "open a model that is made for this task")),
    }
}

fn misshapen(error: &ndarray::ShapeError) -> Error {
    Error::input("latents", error.to_string(), "open a model that is made for this task")
}
