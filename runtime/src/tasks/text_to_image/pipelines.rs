//! Pipelines of `diffusers` that are read, by the class that `model_index.json` names: their components, what they are called with
//! where callers do not say, and how latents and texts reach the denoiser.

use serde_json::Value as Json;

use super::text_encoders::{
    AURA_FLOW, CHROMA, CLIP, CLIP_2, FLUX_2, LUMINA_2, PIXART_ALPHA, QWEN_IMAGE, SANA, T5_3, TextEncoder,
    Z_IMAGE,
};
use crate::hub::Checkpoint;
use crate::{Error, Result};

/// A pipeline class.
#[derive(Clone, Copy, Debug)]
pub(super) struct PipelineClass {
    /// Its name, and those of its classes for other tasks, under which checkpoints trained for these are published.
    names: &'static [&'static str],
    /// The component that denoises.
    pub denoiser: &'static str,
    /// The text encoders, in the order of their graphs.
    pub text_encoders: &'static [TextEncoder],
    /// `num_inference_steps` where it is not given.
    pub steps: usize,
    /// `guidance_scale` where it is not given.
    pub guidance_scale: f32,
    /// The rows and columns of latents where the denoiser's configuration has none.
    pub sample_size: usize,
    pub conditioning: Conditioning,
    pub layout: Layout,
    pub time: Time,
    pub guidance: Guidance,
    pub autoencoder: Autoencoder,
    /// What shifts sigmas, where the pipeline spaces them from 1 down to one step's share.
    pub even_sigmas: Option<Shift>,
    /// Whether a ControlNet adds to the denoiser's feature maps.
    pub controlnet: bool,
}

/// What a denoiser takes besides a timestep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Conditioning {
    /// The hidden states of one text encoder.
    HiddenStates,
    /// Those of two, the pooled text and sizes (`time_ids`).
    Sizes,
    /// Those of CLIP side by side and T5's behind them, and the pooled texts.
    Joined,
    /// The hidden states of the last text encoder, pooled texts of one before it, and the places of all tokens.
    Placed,
    /// T5's hidden states with a mask of padding; resolutions are those of the training.
    Masked,
    /// Classes, and no text at all.
    Classes,
    /// The hidden states of a chat with a mask of padding.
    Chat,
    /// Hidden states with a mask of padding, and how many rows and columns of tokens there are (`img_shapes`).
    Shaped,
}

/// How a denoiser takes latents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// As they are, in channels, rows and columns.
    Maps,
    /// The same, of a video's only frame.
    Frame,
    /// Tokens of two rows and two columns.
    Packed,
    /// A token for each place.
    Tokens,
}

/// What stands for a timestep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Time {
    /// The timestep itself, times what the configuration says (`timestep_scale`).
    Timestep,
    /// The share of noise: 1 at first.
    Noise,
    /// The share of the image: 1 in the end. What is predicted is negated.
    Image,
}

/// How what is predicted for a prompt is moved away from what is predicted for the negative one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Guidance {
    /// By the scale times the difference, above 1 (arXiv:2207.12598).
    ClassifierFree,
    /// The same for a negative prompt that is always empty, unless the checkpoint is distilled (`is_distilled`).
    Undistilled,
    /// The scale is embedded, and there is no negative prompt.
    Embedded,
    /// The difference is added to what is predicted for the prompt, above 0.
    Added,
    /// As classifier-free, then each row is made as long as what is predicted for the prompt; `asked` for by a negative prompt.
    Normalized { asked: bool },
}

/// What says how large latents are and how they are scaled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Autoencoder {
    /// Half as many rows behind each block but the last; `scaling_factor` and `shift_factor`.
    Blocks,
    /// The same, of the encoder's blocks (`AutoencoderDC`).
    Deep,
    /// Rows become fewer as `temperal_downsample` has entries; its graph scales each channel (`AutoencoderKLQwenImage`).
    Video,
    /// Blocks, and latents of two rows and two columns, which its graph scales (`AutoencoderKLFlux2`).
    Patched,
}

/// What sigmas are shifted by (`mu`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shift {
    /// The image's tokens.
    Tokens,
    /// The channels of latents, which the reference takes for the number of tokens.
    Channels,
    /// Tokens and steps (`compute_empirical_mu`).
    Empirical,
}

/// The size of latents, in rows and columns, that pipelines of transformers take where the configuration has none.
const SAMPLE_SIZE: usize = 128;

/// Latents in channels, rows and columns, and a text that cross-attention sees.
const UNET: PipelineClass = PipelineClass {
    names: &[],
    denoiser: "unet",
    text_encoders: &[CLIP],
    steps: 50,
    guidance_scale: 7.5,
    sample_size: 64,
    conditioning: Conditioning::HiddenStates,
    layout: Layout::Maps,
    time: Time::Timestep,
    guidance: Guidance::ClassifierFree,
    autoencoder: Autoencoder::Blocks,
    even_sigmas: None,
    controlnet: false,
};
const UNET_XL: PipelineClass = PipelineClass {
    text_encoders: &[CLIP, CLIP_2],
    guidance_scale: 5.0,
    sample_size: SAMPLE_SIZE,
    conditioning: Conditioning::Sizes,
    ..UNET
};
const TRANSFORMER: PipelineClass =
    PipelineClass { denoiser: "transformer", sample_size: SAMPLE_SIZE, ..UNET };
/// Tokens of two rows and two columns, whose places are given.
const PACKED: PipelineClass = PipelineClass {
    conditioning: Conditioning::Placed,
    layout: Layout::Packed,
    time: Time::Noise,
    even_sigmas: Some(Shift::Tokens),
    ..TRANSFORMER
};
const PIXART: PipelineClass =
    PipelineClass { steps: 20, guidance_scale: 4.5, conditioning: Conditioning::Masked, ..TRANSFORMER };

const CLASSES: &[PipelineClass] = &[
    PipelineClass { names: &["StableDiffusionPipeline", "StableDiffusionInpaintPipeline"], ..UNET },
    PipelineClass { names: &["StableDiffusionXLPipeline", "StableDiffusionXLInpaintPipeline"], ..UNET_XL },
    PipelineClass { names: &["StableDiffusionControlNetPipeline"], controlnet: true, ..UNET },
    PipelineClass { names: &["StableDiffusionXLControlNetPipeline"], controlnet: true, ..UNET_XL },
    PipelineClass {
        names: &["StableDiffusion3Pipeline"],
        text_encoders: &[CLIP, CLIP_2, T5_3],
        steps: 28,
        guidance_scale: 7.0,
        conditioning: Conditioning::Joined,
        ..TRANSFORMER
    },
    PipelineClass {
        names: &["FluxPipeline"],
        text_encoders: &[CLIP, TextEncoder { length: Some(512), ..CLIP_2 }],
        steps: 28,
        guidance_scale: 3.5,
        guidance: Guidance::Embedded,
        ..PACKED
    },
    PipelineClass {
        names: &["ChromaPipeline"],
        text_encoders: &[CHROMA],
        steps: 35,
        guidance_scale: 5.0,
        ..PACKED
    },
    PipelineClass {
        names: &["QwenImagePipeline"],
        text_encoders: &[QWEN_IMAGE],
        guidance_scale: 4.0,
        conditioning: Conditioning::Shaped,
        guidance: Guidance::Normalized { asked: true },
        autoencoder: Autoencoder::Video,
        ..PACKED
    },
    PipelineClass {
        names: &["Flux2KleinPipeline"],
        text_encoders: &[FLUX_2],
        guidance_scale: 4.0,
        sample_size: SAMPLE_SIZE / 2,
        layout: Layout::Tokens,
        guidance: Guidance::Undistilled,
        autoencoder: Autoencoder::Patched,
        even_sigmas: Some(Shift::Empirical),
        ..PACKED
    },
    PipelineClass { names: &["PixArtAlphaPipeline"], text_encoders: &[PIXART_ALPHA], ..PIXART },
    PipelineClass {
        names: &["PixArtSigmaPipeline"],
        text_encoders: &[TextEncoder { length: Some(300), ..PIXART_ALPHA }],
        ..PIXART
    },
    PipelineClass {
        names: &["SanaPipeline"],
        text_encoders: &[SANA],
        sample_size: 32,
        autoencoder: Autoencoder::Deep,
        ..PIXART
    },
    PipelineClass {
        names: &["AuraFlowPipeline"],
        text_encoders: &[AURA_FLOW],
        guidance_scale: 3.5,
        time: Time::Noise,
        ..TRANSFORMER
    },
    PipelineClass {
        names: &["Lumina2Pipeline"],
        text_encoders: &[LUMINA_2],
        steps: 30,
        guidance_scale: 4.0,
        time: Time::Image,
        guidance: Guidance::Normalized { asked: false },
        even_sigmas: Some(Shift::Channels),
        ..TRANSFORMER
    },
    PipelineClass {
        names: &["ZImagePipeline"],
        text_encoders: &[Z_IMAGE],
        guidance_scale: 5.0,
        conditioning: Conditioning::Chat,
        layout: Layout::Frame,
        time: Time::Image,
        guidance: Guidance::Added,
        even_sigmas: Some(Shift::Tokens),
        ..TRANSFORMER
    },
    PipelineClass {
        names: &["DiTPipeline"],
        text_encoders: &[],
        guidance_scale: 4.0,
        sample_size: 32,
        conditioning: Conditioning::Classes,
        ..TRANSFORMER
    },
];

/// Components that say nothing of the numbers: what they do is done, or only judges the images.
const OTHERS: [&str; 3] = ["scheduler", "safety_checker", "feature_extractor"];

impl PipelineClass {
    /// The class of a checkpoint, none of whose components is unknown and which lacks none.
    ///
    /// # Errors
    /// When the class is unknown, or has other components.
    pub(super) fn read(checkpoint: &Checkpoint) -> Result<Self> {
        const FILE: &str = "model_index.json";
        let path = checkpoint.require(FILE)?;
        let index = checkpoint.json(FILE)?.unwrap_or_default();
        let name = index["_class_name"].as_str().unwrap_or_default();
        let Some(class) = class(name) else {
            let known: Vec<&str> = CLASSES.iter().flat_map(|class| class.names).copied().collect();
            let help = format!("take one of {}", known.join(", "));
            return Err(Error::config(path, format!("`_class_name` is `{name}`, which is not here"), help));
        };
        let known: Vec<&str> = class.components().collect();
        let present = |value: &Json| value.as_array().is_some_and(|pair| !pair.iter().all(Json::is_null));
        let components = index.as_object().into_iter().flatten().filter(|(_, value)| present(value));
        let unknown = |name: &&String| !OTHERS.contains(&name.as_str()) && !known.contains(&name.as_str());
        if let Some(name) = components.map(|(name, _)| name).find(unknown) {
            let help = format!("take a pipeline of {} alone", known.join(", "));
            return Err(Error::config(path, format!("has a component `{name}`, which is not read"), help));
        }
        let optional = |name: &str| {
            class.text_encoders.iter().any(|e| e.optional && (e.name == name || e.tokenizer == name))
        };
        if let Some(name) = known.iter().find(|name| !optional(name) && !present(&index[**name])) {
            let help = "take a folder that has all components of the pipeline";
            return Err(Error::config(path, format!("lacks the component `{name}`"), help));
        }
        Ok(class)
    }

    /// The denoiser's name for latents.
    pub(super) fn sample(&self) -> &'static str {
        match self.conditioning {
            Conditioning::Chat => "x",
            _ if self.denoiser == "unet" => "sample",
            _ => "hidden_states",
        }
    }

    /// Its name for timesteps.
    pub(super) fn timestep(&self) -> &'static str {
        if self.conditioning == Conditioning::Chat { "t" } else { "timestep" }
    }

    /// The components that are read.
    fn components(&self) -> impl Iterator<Item = &'static str> {
        let texts = self.text_encoders.iter().flat_map(|encoder| [encoder.name, encoder.tokenizer]);
        texts.chain([self.denoiser, "vae"]).chain(self.controlnet.then_some("controlnet"))
    }
}

/// The class of this name.
pub(super) fn class(name: &str) -> Option<PipelineClass> {
    CLASSES.iter().find(|class| class.names.contains(&name)).copied()
}

/// Whether a pipeline has a component.
pub(super) fn has(index: &Json, name: &str) -> bool {
    index.get(name).is_some_and(|value| !value.is_null())
}
