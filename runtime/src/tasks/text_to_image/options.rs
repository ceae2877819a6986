//! How images are made, and what is told of it.

use std::path::Path;

use ndarray::Array4;

use super::png;
use crate::Result;
use crate::image::Image;

/// How images are made.
#[derive(Clone, Debug)]
pub struct TextToImageOptions {
    /// What images are to be unlike; where not given the empty text, or zeros in its place where the pipeline says so.
    pub negative_prompt: Option<String>,
    /// Whether brackets in prompts are weights: `(word:1.2)`, `(word)` for 1.1, `[word]` for 1 over 1.1. Hidden states are moved that
    /// much away from the empty text's, as in user interfaces; the reference's pipelines have no weights.
    pub prompt_weighting: bool,
    /// The number of steps; that of the reference's pipeline where not given.
    pub num_inference_steps: Option<usize>,
    /// How far what is predicted is moved away from what is predicted for the negative prompt; none at 1 and below. That of the
    /// reference's pipeline where not given.
    pub guidance_scale: Option<f32>,
    /// How far what is predicted for an image that is edited is moved away from what is predicted without it; no guidance below 1.
    pub image_guidance_scale: f32,
    /// How much of guidance's higher contrast is taken back (arXiv:2305.08891, section 3.4).
    pub guidance_rescale: f32,
    /// The height in pixels; what the model was trained on where not given.
    pub height: Option<usize>,
    /// The width in pixels; what the model was trained on where not given.
    pub width: Option<usize>,
    /// Whether PixArt makes images of the size that it was trained on for their aspect ratio, which are then resized and cut.
    pub use_resolution_binning: bool,
    /// Images for each prompt.
    pub num_images_per_prompt: usize,
    /// The tokens that T5 makes of a text; those of the reference's pipeline where not given.
    pub max_sequence_length: Option<usize>,
    /// The seed of all noise; one that the time gives where not given.
    pub seed: Option<u64>,
    /// A seed for each image, in place of one for all.
    pub seeds: Vec<u64>,
    /// The first latents, `[images, channels, height / 8, width / 8]`, in place of noise that the seed gives.
    pub latents: Option<Array4<f32>>,
    /// Whether the autoencoder sees images larger than it was trained on in tiles, with less memory (`enable_vae_tiling`).
    pub vae_tiling: bool,
    /// The control image of a pipeline with a ControlNet; height and width are its own where not given, less what is left of a row of
    /// latents.
    pub control_image: Option<Image>,
    /// What is multiplied with all that a ControlNet adds.
    pub controlnet_conditioning_scale: f32,
    /// The share of the steps before a ControlNet begins.
    pub control_guidance_start: f64,
    /// The share of the steps after which it ends.
    pub control_guidance_end: f64,
}

impl Default for TextToImageOptions {
    fn default() -> Self {
        Self {
            negative_prompt: None,
            prompt_weighting: false,
            num_inference_steps: None,
            guidance_scale: None,
            image_guidance_scale: 1.5,
            guidance_rescale: 0.0,
            height: None,
            width: None,
            use_resolution_binning: true,
            num_images_per_prompt: 1,
            max_sequence_length: None,
            seed: None,
            seeds: vec![],
            latents: None,
            vae_tiling: false,
            control_image: None,
            controlnet_conditioning_scale: 1.0,
            control_guidance_start: 0.0,
            control_guidance_end: 1.0,
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
    /// What the scheduler has for its timestep.
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
    /// Writes it as a PNG file with [`GeneratedImage::parameters`] in a text chunk. There is a whole file of that name, or the one that
    /// was there before.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        png::save(&self.image, &self.parameters, path.as_ref())
    }
}
