//! Text-to-image, image-to-image and inpainting: inputs are texts or an image, answers the files that the images were written to.

use std::ops::ControlFlow;
use std::path::Path;

use serde_json::{Value as Json, json};

use super::parameters::Parameters;
use super::shapes::texts;
use super::{JsonPipeline, OnText};
use crate::any_model::DynModel;
use crate::clock::Instant;
use crate::image::Image;
use crate::tasks::{
    DenoisingStep, GeneratedImage, ImageToImage, ImageToImageOptions, Inpainting, TextToImage,
    TextToImageOptions,
};
use crate::{Error, Result};

impl JsonPipeline for TextToImage<DynModel> {
    fn run_json(&self, inputs: &Json, parameters: &Json) -> Result<Json> {
        self.run_streaming(inputs, parameters, &mut |_| ControlFlow::Continue(()))
    }

    fn run_streaming(&self, inputs: &Json, parameters: &Json, on_text: &mut OnText<'_>) -> Result<Json> {
        let parameters = Parameters::new(parameters)?;
        let options = generation(&parameters)?;
        let out = out(&parameters)?;
        parameters.finish()?;
        let prompts = texts(inputs)?;
        written(&out, &self.run_with(&prompts, &options, &mut told(on_text))?)
    }
}

impl JsonPipeline for ImageToImage<DynModel> {
    fn run_json(&self, inputs: &Json, parameters: &Json) -> Result<Json> {
        self.run_streaming(inputs, parameters, &mut |_| ControlFlow::Continue(()))
    }

    fn run_streaming(&self, inputs: &Json, parameters: &Json, on_text: &mut OnText<'_>) -> Result<Json> {
        let parameters = Parameters::new(parameters)?;
        let options = from_image(&parameters)?;
        let (prompt, out) = (prompt(&parameters)?, out(&parameters)?);
        parameters.finish()?;
        let image = one_image(inputs)?;
        written(&out, &self.run_with(&[&prompt], &image, &options, &mut told(on_text))?)
    }
}

impl JsonPipeline for Inpainting<DynModel> {
    fn run_json(&self, inputs: &Json, parameters: &Json) -> Result<Json> {
        self.run_streaming(inputs, parameters, &mut |_| ControlFlow::Continue(()))
    }

    fn run_streaming(&self, inputs: &Json, parameters: &Json, on_text: &mut OnText<'_>) -> Result<Json> {
        let parameters = Parameters::new(parameters)?;
        let options = from_image(&parameters)?;
        let (prompt, out) = (prompt(&parameters)?, out(&parameters)?);
        let mask: Option<String> = parameters.get("mask")?;
        parameters.finish()?;
        let help = "give an image that is white where the other is to be made anew: `--set mask=mask.png`";
        let mask = Image::open(mask.ok_or_else(|| Error::input("mask", "is missing", help))?)?;
        let image = one_image(inputs)?;
        written(&out, &self.run_with(&[&prompt], (&image, &mask), &options, &mut told(on_text))?)
    }
}

/// The options of tasks that begin with an image.
fn from_image(parameters: &Parameters<'_>) -> Result<ImageToImageOptions> {
    Ok(ImageToImageOptions { strength: parameters.get("strength")?, generation: generation(parameters)? })
}

fn prompt(parameters: &Parameters<'_>) -> Result<String> {
    let help = "say what the image is to become: `--set prompt=\"A loom at night.\"`";
    parameters.get("prompt")?.ok_or_else(|| Error::input("prompt", "is missing", help))
}

fn one_image(inputs: &Json) -> Result<Image> {
    let [image] = texts(inputs)?[..] else {
        return Err(Error::input("inputs", "are not one image", "give the path of one image"));
    };
    Image::open(image)
}

/// The options of all tasks.
fn generation(parameters: &Parameters<'_>) -> Result<TextToImageOptions> {
    let defaults = TextToImageOptions::default();
    let images = parameters.get("num_images_per_prompt")?.unwrap_or(defaults.num_images_per_prompt);
    let control_image: Option<String> = parameters.get("control_image")?;
    Ok(TextToImageOptions {
        negative_prompt: parameters.get("negative_prompt")?,
        num_inference_steps: parameters.get("num_inference_steps")?,
        guidance_scale: parameters.get("guidance_scale")?,
        prompt_weighting: parameters.get("prompt_weighting")?.unwrap_or(defaults.prompt_weighting),
        guidance_rescale: parameters.get("guidance_rescale")?.unwrap_or(defaults.guidance_rescale),
        height: parameters.get("height")?,
        width: parameters.get("width")?,
        use_resolution_binning: parameters
            .get("use_resolution_binning")?
            .unwrap_or(defaults.use_resolution_binning),
        num_images_per_prompt: images,
        max_sequence_length: parameters.get("max_sequence_length")?,
        vae_tiling: parameters.get("vae_tiling")?.unwrap_or(defaults.vae_tiling),
        seed: parameters.get("seed")?,
        seeds: parameters.get("seeds")?.unwrap_or_default(),
        latents: None,
        control_image: control_image.map(Image::open).transpose()?,
        image_guidance_scale: parameters
            .get("image_guidance_scale")?
            .unwrap_or(defaults.image_guidance_scale),
        controlnet_conditioning_scale: parameters
            .get("controlnet_conditioning_scale")?
            .unwrap_or(defaults.controlnet_conditioning_scale),
        control_guidance_start: parameters
            .get("control_guidance_start")?
            .unwrap_or(defaults.control_guidance_start),
        control_guidance_end: parameters
            .get("control_guidance_end")?
            .unwrap_or(defaults.control_guidance_end),
    })
}

fn out(parameters: &Parameters<'_>) -> Result<String> {
    let out: Option<String> = parameters.get("out")?;
    let help = "say where the image is to be written: `--out image.png`";
    out.ok_or_else(|| Error::input("out", "is missing", help))
}

/// Tells of each step and of the time left.
fn told(on_text: &mut OnText<'_>) -> impl FnMut(&DenoisingStep<'_>) -> ControlFlow<()> {
    let start = Instant::now();
    move |step| {
        let done = step.index + 1;
        let left = start.elapsed().as_secs_f64() / done as f64 * (step.count - done) as f64;
        on_text(&format!("\nstep {done} of {}, {left:.1} s left", step.count))
    }
}

/// Writes the images, and says where.
fn written(out: &str, made: &[GeneratedImage]) -> Result<Json> {
    let mut files = vec![];
    for (index, image) in made.iter().enumerate() {
        let file = if made.len() > 1 { numbered(out, index) } else { out.to_owned() };
        image.save(&file)?;
        files.push(json!({"image": file, "parameters": image.parameters}));
    }
    Ok(files.into())
}

/// `image.png` as `image-2.png`, counted from 1.
fn numbered(out: &str, index: usize) -> String {
    let path = Path::new(out);
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let ending = path.extension().map(|ending| format!(".{}", ending.to_string_lossy())).unwrap_or_default();
    path.with_file_name(format!("{stem}-{}{ending}", index + 1)).to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_images_are_numbered() {
        assert_eq!(numbered("a/image.png", 1), "a/image-2.png");
        assert_eq!(numbered("image", 0), "image-1");
    }
}
