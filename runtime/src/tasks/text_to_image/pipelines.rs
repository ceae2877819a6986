//! What tells pipelines of `diffusers` apart, which `model_index.json` names by their class: their components, what they are called
//! with where callers do not say, and how latents and texts reach the denoiser.

use serde_json::Value as Json;

use super::classes::CLASSES;
use super::text_encoders::TextEncoder;
use crate::diffusion::schedulers::SigmaSpacing;
use crate::hub::Checkpoint;
use crate::{Error, Result};

/// A pipeline class.
#[derive(Clone, Copy, Debug)]
pub(super) struct PipelineClass {
    /// Its name, and those of its classes for other tasks, under which checkpoints trained for these are published.
    pub names: &'static [&'static str],
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
    /// How sigmas are spaced and what shifts them, where the pipeline says.
    pub sigmas: Option<(SigmaSpacing, Shift)>,
    /// The axes of a token's place along which those of texts are counted.
    pub text_axes: &'static [usize],
    /// Whether zeros stand for the hidden states of an empty negative prompt.
    pub empty_is_zeros: bool,
    /// Whether the denoiser is run for prompts and for negative ones apart, whose texts have lengths of their own.
    pub apart: bool,
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
    /// The hidden states of two text encoders with masks of padding, rotary position embeddings, and sizes with a style.
    Bilingual,
    /// Classes, and no text at all.
    Classes,
    /// The hidden states of a chat with a mask of padding.
    Chat,
    /// Hidden states, and pairs of pixels: the original size, where it was cropped and the size.
    Pairs,
    /// Hidden states, and how many of their tokens are no padding.
    Lengths,
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
    /// The share of noise that an angle between image and noise stands for (`SCMScheduler`), whose velocity is made of what is
    /// predicted.
    Angle,
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
    /// Away from what is predicted for the image that is edited and the negative prompt, and that away from what is predicted without
    /// the image, by `image_guidance_scale` (arXiv:2211.09800).
    Image,
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
    /// Nothing that the pipeline says.
    Fixed,
}

/// Components that say nothing of the numbers: what they do is done, only judges the images, or writes other prompts (`use_pe`).
const OTHERS: [&str; 5] = ["scheduler", "safety_checker", "feature_extractor", "pe", "pe_tokenizer"];

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
