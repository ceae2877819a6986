//! Text-to-image: latents of noise, from which a denoiser takes a little at each step, and the images that they stand for.
//!
//! Reference: `StableDiffusionPipeline` of `diffusers`. Noise is drawn as it draws it, so that a seed gives the same image.

mod guidance;
mod image_to_image;
mod png;
mod prompt;

pub use image_to_image::{ImageToImage, ImageToImageOptions};

use std::ops::ControlFlow;

use ndarray::{Array3, Array4, ArrayD, Axis, Ix4, concatenate};
use serde_json::Value as Json;

use super::builder::opened;
use super::{Pipeline, Task};
use crate::any_model::AnyModel;
use crate::diffusion::Generator;
use crate::diffusion::schedulers::{self, Scheduler};
use crate::image::Image;
use crate::text::Tokenizer;
use crate::{Error, GraphKind, Result, Value, Values};
use image_to_image::Start;

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
    tokenizer: Tokenizer,
    settings: Settings,
}

/// How images are made.
#[derive(Clone, Debug)]
pub struct TextToImageOptions {
    /// What images are to be unlike; the empty text where not given.
    pub negative_prompt: Option<String>,
    /// The number of steps.
    pub num_inference_steps: usize,
    /// How far what is predicted is moved away from what is predicted for the negative prompt; none at 1 and below.
    pub guidance_scale: f32,
    /// How much of guidance's higher contrast is taken back (arXiv:2305.08891, section 3.4).
    pub guidance_rescale: f32,
    /// The height in pixels; what the model was trained on where not given.
    pub height: Option<usize>,
    /// The width in pixels; what the model was trained on where not given.
    pub width: Option<usize>,
    /// Images for each prompt.
    pub num_images_per_prompt: usize,
    /// The seed of all noise; one that the time gives where not given.
    pub seed: Option<u64>,
    /// The first latents, `[images, channels, height / 8, width / 8]`, in place of noise that the seed gives.
    pub latents: Option<Array4<f32>>,
}

impl Default for TextToImageOptions {
    fn default() -> Self {
        Self {
            negative_prompt: None,
            num_inference_steps: 50,
            guidance_scale: 7.5,
            guidance_rescale: 0.0,
            height: None,
            width: None,
            num_images_per_prompt: 1,
            seed: None,
            latents: None,
        }
    }
}

/// What was done when a step ends.
#[derive(Debug)]
pub struct DenoisingStep<'a> {
    /// Its place among the denoiser's runs, from 0.
    pub index: usize,
    /// How many runs there are.
    pub count: usize,
    /// What the denoiser was told.
    pub timestep: f64,
    /// The latents after it, `[images, channels, rows, columns]`.
    pub latents: &'a Array4<f32>,
}

/// An image that was made.
#[derive(Clone, Debug)]
pub struct GeneratedImage {
    /// The image.
    pub image: Image,
    /// The prompt and the options that made it, as image viewers show them.
    pub parameters: String,
}

impl GeneratedImage {
    /// Writes it as a PNG file with [`GeneratedImage::parameters`] in a text chunk.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn save(&self, path: impl AsRef<std::path::Path>) -> Result<()> {
        png::save(&self.image, &self.parameters, path.as_ref())
    }
}

/// What the checkpoint says of sizes and scales.
#[derive(Debug)]
struct Settings {
    channels: usize,
    sample_size: Option<[usize; 2]>,
    /// Pixels for each row of latents.
    scale: usize,
    scaling_factor: f32,
    shift_factor: f32,
    /// The width of the embedded guidance scale.
    guidance_width: Option<usize>,
}

/// Components that say nothing of the numbers: what they do is done, or only judges the images.
const OTHERS: [&str; 4] = ["tokenizer", "scheduler", "safety_checker", "feature_extractor"];
const MODELS: [&str; 3] = ["text_encoder", "unet", "vae"];

impl<A: AnyModel> Pipeline<A> for TextToImage<A> {
    const TASK: Task = Task::TextToImage;

    fn from_model(model: A) -> Result<Self> {
        let checkpoint = model.checkpoint();
        if let Some(index) = checkpoint.json("model_index.json")? {
            let present = |value: &Json| value.as_array().is_some_and(|pair| !pair.iter().all(Json::is_null));
            let components = index.as_object().into_iter().flatten().filter(|(_, value)| present(value));
            let unknown =
                |name: &&String| !OTHERS.contains(&name.as_str()) && !MODELS.contains(&name.as_str());
            if let Some(name) = components.map(|(name, _)| name).find(unknown) {
                let help = "take a pipeline of text encoder, U-Net and autoencoder alone";
                let path = checkpoint.dir().join("model_index.json");
                return Err(Error::config(
                    path,
                    format!("has a component `{name}`, which is not read"),
                    help,
                ));
            }
        }
        let tokenizer = Tokenizer::from_checkpoint(&checkpoint.component("tokenizer"))?;
        let settings = Settings::read(model.raw_config());
        let pipeline = Self { model, tokenizer, settings };
        pipeline.scheduler()?;
        Ok(pipeline)
    }
}

opened!(TextToImage: model);

impl Settings {
    fn read(config: &Json) -> Self {
        let (unet, vae) = (&config["unet"], &config["vae"]);
        let size = |json: &Json| json.as_u64().map(|n| n as usize);
        let sample_size = match &unet["sample_size"] {
            Json::Array(sides) => {
                sides.first().and_then(size).zip(sides.get(1).and_then(size)).map(<[_; 2]>::from)
            }
            one => size(one).map(|side| [side; 2]),
        };
        let blocks = vae["block_out_channels"].as_array().map_or(1, Vec::len);
        Self {
            channels: size(&unet["in_channels"]).unwrap_or(4),
            sample_size,
            scale: 1 << blocks.saturating_sub(1).min(16),
            scaling_factor: vae["scaling_factor"].as_f64().unwrap_or(0.18215) as f32,
            shift_factor: vae["shift_factor"].as_f64().unwrap_or_default() as f32,
            guidance_width: size(&unet["time_cond_proj_dim"]),
        }
    }
}

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
        start: Option<&Start<'_>>,
        on_step: &mut dyn FnMut(&DenoisingStep<'_>) -> ControlFlow<()>,
    ) -> Result<Vec<GeneratedImage>> {
        let [height, width] = self.size(options)?;
        let since = || crate::clock::now().duration_since(std::time::UNIX_EPOCH);
        let now = || since().map_or(0, |since| u64::from(since.subsec_nanos()));
        let seed = options.seed.unwrap_or_else(now);
        let latents = self.denoise(prompts, options, (start, [height, width], seed), on_step)?;
        let images = self.decode(&latents)?;
        let parameters = |index: usize| {
            png::parameters(prompts[index / options.num_images_per_prompt], options, seed, [height, width])
        };
        let made = images.into_iter().enumerate();
        Ok(made.map(|(index, image)| GeneratedImage { image, parameters: parameters(index) }).collect())
    }

    /// The latents after the last step, `[images, channels, rows, columns]`.
    fn denoise(
        &self,
        prompts: &[&str],
        options: &TextToImageOptions,
        (start, [height, width], seed): (Option<&Start<'_>>, [usize; 2], u64),
        on_step: &mut dyn FnMut(&DenoisingStep<'_>) -> ControlFlow<()>,
    ) -> Result<Array4<f32>> {
        let images = prompts.len() * options.num_images_per_prompt;
        let shape =
            [images, self.settings.channels, height / self.settings.scale, width / self.settings.scale];
        let mut generator = Generator::new(seed);
        let mut scheduler = self.scheduler()?;
        scheduler.set_timesteps(options.num_inference_steps)?;
        let guided = options.guidance_scale > 1.0 && self.settings.guidance_width.is_none();
        let text = self.text(prompts, options, guided)?;
        let (begin, mut latents) = match start {
            Some(start) => self.noised(start, options, (&*scheduler, shape), &mut generator)?,
            None => {
                let scale = scheduler.init_noise_sigma();
                (0, first_latents(options, shape, &mut generator)?.mapv(|x| x * scale))
            }
        };
        let timesteps = scheduler.timesteps().to_vec();
        let count = timesteps.len() - begin;
        for (index, &timestep) in timesteps.iter().enumerate().skip(begin) {
            let sample: Vec<f32> = latents.iter().copied().collect();
            let seen = scheduler.scale_model_input(index, &sample);
            let seen = Array4::from_shape_vec(shape, seen).map_err(|error| misshapen(&error))?;
            let predicted = self.predict(&seen, timestep, &text, options, guided)?;
            let mut noise = |count: usize| generator.randn(count);
            let next = scheduler.step(index, &predicted, &sample, &mut noise);
            latents = Array4::from_shape_vec(shape, next).map_err(|error| misshapen(&error))?;
            let step = DenoisingStep { index: index - begin, count, timestep, latents: &latents };
            if on_step(&step).is_break() {
                let problem = format!("was cancelled after step {} of {count}", step.index + 1);
                return Err(Error::input("text-to-image", problem, "run it again"));
            }
        }
        Ok(latents)
    }

    /// What the denoiser predicts, with guidance.
    fn predict(
        &self,
        seen: &Array4<f32>,
        timestep: f64,
        text: &ArrayD<f32>,
        options: &TextToImageOptions,
        guided: bool,
    ) -> Result<Vec<f32>> {
        let both = || concatenate(Axis(0), &[seen.view(), seen.view()]).map_err(|error| misshapen(&error));
        let sample = if guided { both()? } else { seen.clone() };
        let rows = sample.shape()[0];
        let mut inputs = Values::new();
        inputs.insert("sample".to_owned(), sample.into_dyn().into());
        inputs.insert("timestep".to_owned(), ArrayD::from_elem(vec![rows], timestep as f32).into());
        inputs.insert("encoder_hidden_states".to_owned(), text.clone().into());
        if let Some(width) = self.settings.guidance_width {
            let embedded = guidance::embedding(options.guidance_scale - 1.0, width, rows);
            inputs.insert("timestep_cond".to_owned(), embedded.into_dyn().into());
        }
        let predicted = floats(self.model.run_graph(GraphKind::Forward, inputs)?, "sample")?;
        let predicted: Vec<f32> = predicted.iter().copied().collect();
        if !guided {
            return Ok(predicted);
        }
        let (away, towards) = predicted.split_at(predicted.len() / 2);
        let mut moved = guidance::moved(away, towards, options.guidance_scale);
        if options.guidance_rescale > 0.0 {
            let images = rows / 2;
            guidance::rescale(&mut moved, towards, images, options.guidance_rescale);
        }
        Ok(moved)
    }

    /// The images that latents stand for.
    fn decode(&self, latents: &Array4<f32>) -> Result<Vec<Image>> {
        let Settings { scaling_factor, shift_factor, .. } = self.settings;
        let latents = latents.mapv(|x| x / scaling_factor + shift_factor);
        let inputs = Values::from([("latents".to_owned(), Value::from(latents.into_dyn()))]);
        let decoded = floats(self.model.run_graph(GraphKind::LatentDecoder, inputs)?, "sample")?;
        let decoded = decoded.into_dimensionality::<Ix4>().map_err(|error| misshapen(&error))?;
        let image = |pixels: ndarray::ArrayView3<'_, f32>| {
            let level = |x: f32| ((x / 2.0 + 0.5).clamp(0.0, 1.0) * 255.0).round_ties_even() as u8;
            let (_, height, width) = pixels.dim();
            let levels = Array3::from_shape_fn((height, width, 3), |(y, x, c)| level(pixels[[c, y, x]]));
            Image::from_pixels(&levels)
        };
        decoded.outer_iter().map(image).collect()
    }

    /// A scheduler of its own for each run.
    fn scheduler(&self) -> Result<Box<dyn Scheduler>> {
        const FILE: &str = "scheduler_config.json";
        let folder = self.model.checkpoint().component("scheduler");
        let path = folder.require(FILE)?;
        schedulers::read(&folder.json(FILE)?.unwrap_or_default(), &path)
    }

    /// Height and width in pixels.
    fn size(&self, options: &TextToImageOptions) -> Result<[usize; 2]> {
        let scale = self.settings.scale;
        let trained = self.settings.sample_size.unwrap_or([64; 2]).map(|side| side * scale);
        let size = [options.height.unwrap_or(trained[0]), options.width.unwrap_or(trained[1])];
        for (name, side) in ["height", "width"].into_iter().zip(size) {
            if side == 0 || side % scale != 0 || side > 1 << 16 {
                let problem = format!("{side} is no multiple of {scale}");
                return Err(Error::input(name, problem, format!("give a multiple of {scale} up to 65536")));
            }
        }
        for (name, number) in [
            ("num_inference_steps", options.num_inference_steps),
            ("num_images_per_prompt", options.num_images_per_prompt),
        ] {
            if number == 0 || number > 1000 {
                return Err(Error::input(name, format!("is {number}"), "give a number from 1 to 1000"));
            }
        }
        Ok(size)
    }
}

/// The latents that are given, or noise.
fn first_latents(
    options: &TextToImageOptions,
    shape: [usize; 4],
    generator: &mut Generator,
) -> Result<Array4<f32>> {
    match &options.latents {
        Some(latents) if latents.shape() == shape => Ok(latents.clone()),
        Some(latents) => {
            let problem = format!("has shape {:?}, not {shape:?}", latents.shape());
            Err(Error::input("latents", problem, "give a batch of latents for the images' size"))
        }
        None => Array4::from_shape_vec(shape, generator.randn(shape.iter().product()))
            .map_err(|error| misshapen(&error)),
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
