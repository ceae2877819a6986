//! What may be asked of a pipeline, before anything is computed.

use serde_json::Value as Json;

use super::pipelines::{Autoencoder, Conditioning, Guidance, PipelineClass, Time};
use super::settings::Settings;
use super::text_encoders::TextEncoder;
use super::{TextToImage, TextToImageOptions, resolutions};
use crate::any_model::AnyModel;
use crate::hub::Checkpoint;
use crate::{Error, Result};

/// The most steps, and the most images of a prompt.
const MOST: usize = 1000;
/// The most rows or columns of pixels.
const LARGEST: usize = 1 << 16;

impl<A: AnyModel> TextToImage<A> {
    /// Height and width in pixels.
    pub(super) fn size(&self, options: &TextToImageOptions) -> Result<[usize; 2]> {
        let trained = self.settings.trained();
        let size = [options.height.unwrap_or(trained[0]), options.width.unwrap_or(trained[1])];
        let conditioning = self.class.conditioning;
        if conditioning == Conditioning::Bilingual && options.use_resolution_binning {
            check_size(size, 1)?;
            return Ok(resolutions::standard(size));
        }
        if conditioning == Conditioning::Classes && size != trained {
            let problem = format!("{size:?} is not what the model was trained on");
            return Err(Error::input("size", problem, format!("leave it out; it is {trained:?}")));
        }
        let binned = conditioning == Conditioning::Masked
            && options.use_resolution_binning
            && resolutions::trained(trained, size).is_some();
        check_size(size, if binned { 1 } else { self.settings.multiple() })?;
        Ok(size)
    }

    /// Refuses options that are out of range, or that the pipeline does not read.
    pub(super) fn check(&self, options: &TextToImageOptions) -> Result<()> {
        check_counts(self.steps(options), options.num_images_per_prompt)?;
        check_sequence_length(&self.class, options.max_sequence_length)?;
        check_guidance(self.guidance_scale(options), options.guidance_rescale)?;
        check_guidance(options.image_guidance_scale, 0.0)?;
        let without = self.class.conditioning == Conditioning::Classes
            || matches!(self.class.guidance, Guidance::Embedded | Guidance::Undistilled);
        if without && options.negative_prompt.is_some() {
            let help = "leave it out: this pipeline has none";
            return Err(Error::input("negative_prompt", "is not read", help));
        }
        let plain = |encoder: &TextEncoder| {
            let as_it_is = encoder.chat.is_none() && !encoder.lowercase && !encoder.longest;
            as_it_is && encoder.around.iter().all(|text| text.is_empty())
        };
        if options.prompt_weighting
            && !(self.class.conditioning != Conditioning::Classes
                && self.class.text_encoders.iter().all(plain))
        {
            let help = "leave it out: this pipeline's text encoder sees more than the prompt, or none";
            return Err(Error::input("prompt_weighting", "is not done", help));
        }
        if options.vae_tiling && self.class.autoencoder != Autoencoder::Blocks {
            let help = "leave it out: the autoencoder of this pipeline decodes whole images";
            return Err(Error::input("vae_tiling", "is not read", help));
        }
        Ok(())
    }
}

/// Sides must be multiples of the pixels for each row of tokens.
fn check_size(size: [usize; 2], multiple: usize) -> Result<()> {
    for (name, side) in ["height", "width"].into_iter().zip(size) {
        if side == 0 || side % multiple != 0 || side > LARGEST {
            let problem = format!("{side} is no multiple of {multiple}");
            let help = format!("give a multiple of {multiple} up to {LARGEST}");
            return Err(Error::input(name, problem, help));
        }
    }
    Ok(())
}

fn check_counts(steps: usize, images: usize) -> Result<()> {
    for (name, number) in [("num_inference_steps", steps), ("num_images_per_prompt", images)] {
        if number == 0 || number > MOST {
            let help = format!("give a number from 1 to {MOST}");
            return Err(Error::input(name, format!("is {number}"), help));
        }
    }
    Ok(())
}

fn check_guidance(scale: f32, rescale: f32) -> Result<()> {
    for (name, number) in [("guidance_scale", scale), ("guidance_rescale", rescale)] {
        if !number.is_finite() {
            return Err(Error::input(name, format!("is {number}"), "give a number, such as 7.5"));
        }
    }
    Ok(())
}

/// The tokens of T5, which only some pipelines have (`check_inputs`).
fn check_sequence_length(class: &PipelineClass, length: Option<usize>) -> Result<()> {
    const NAME: &str = "max_sequence_length";
    let Some(length) = length else { return Ok(()) };
    // Where the reference has no bound, attention's memory is bounded.
    let longest = match class.conditioning {
        Conditioning::Joined | Conditioning::Placed => 512,
        Conditioning::Shaped => 1024,
        _ => 2048,
    };
    let fixed = class.conditioning == Conditioning::Bilingual;
    if fixed || class.text_encoders.iter().all(|encoder| encoder.length.is_none()) {
        let help = "leave it out: the text encoders of this pipeline have one length";
        return Err(Error::input(NAME, "is not read", help));
    }
    if length == 0 || length > longest {
        let help = format!("give a number from 1 to {longest}");
        return Err(Error::input(NAME, format!("is {length}"), help));
    }
    Ok(())
}

/// Refuses latents that pipelines of the class scale channel by channel.
pub(super) fn check_vae(class: &PipelineClass, checkpoint: &Checkpoint, config: &Json) -> Result<()> {
    let scaled = ["latents_mean", "latents_std"].into_iter().find(|name| !config["vae"][*name].is_null());
    match scaled.filter(|_| class.conditioning == Conditioning::Sizes) {
        None => Ok(()),
        Some(name) => {
            let file = checkpoint.dir().join("vae").join("config.json");
            let problem = format!("`{name}`: latents are scaled channel by channel, which is not done here");
            Err(Error::config(file, problem, "take a pipeline whose latents have one `scaling_factor`"))
        }
    }
}

/// Refuses denoisers that no guidance scale is embedded in, where pipelines give one in place of a negative prompt.
pub(super) fn check_embedded_guidance(
    class: &PipelineClass,
    settings: &Settings,
    checkpoint: &Checkpoint,
) -> Result<()> {
    let (name, embedded) = match (class.conditioning, class.time) {
        (Conditioning::HiddenStates, _) => ("time_cond_proj_dim", settings.guidance_width.is_some()),
        (_, Time::Angle) => ("guidance_embeds", settings.guidance_embeds),
        _ => return Ok(()),
    };
    if embedded || class.guidance != Guidance::Embedded {
        return Ok(());
    }
    let file = checkpoint.dir().join(class.denoiser).join("config.json");
    let problem = format!("`{name}` is not given: the pipeline embeds the guidance scale");
    Err(Error::config(file, problem, "take a denoiser that is distilled for it"))
}

#[cfg(test)]
mod tests {
    use super::super::pipelines::class;
    use super::*;

    #[test]
    fn lengths_of_texts_are_bounded_as_by_the_reference() {
        let problem = |name: &str, length: usize| {
            let checked = check_sequence_length(&class(name).unwrap(), Some(length));
            checked.map_or_else(|error| error.to_string(), |()| String::new())
        };
        for name in ["StableDiffusion3Pipeline", "FluxPipeline"] {
            assert_eq!(problem(name, 512), "");
            assert!(problem(name, 513).contains("from 1 to 512"));
            assert!(problem(name, 0).contains("is 0"));
        }
        assert_eq!(problem("PixArtSigmaPipeline", 600), "");
        assert!(problem("PixArtSigmaPipeline", usize::MAX).contains("from 1 to 2048"));
        for name in ["StableDiffusionPipeline", "HunyuanDiTPipeline", "DiTPipeline"] {
            assert!(problem(name, 77).contains("is not read"));
        }
        assert!(check_sequence_length(&class("DiTPipeline").unwrap(), None).is_ok());
    }

    #[test]
    fn sides_and_counts_have_bounds() {
        assert!(check_size([16, 32], 16).is_ok());
        assert!(check_size([16, 24], 16).unwrap_err().to_string().contains("width"));
        assert!(check_size([1 << 17, 16], 16).unwrap_err().to_string().contains("height"));
        assert!(check_counts(1000, 1).is_ok());
        assert!(check_counts(1, 1001).unwrap_err().to_string().contains("num_images_per_prompt"));
        assert!(check_guidance(f32::NAN, 0.0).unwrap_err().to_string().contains("guidance_scale"));
    }
}
