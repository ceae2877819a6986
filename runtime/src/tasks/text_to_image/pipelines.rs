//! Pipelines of `diffusers` that are read, by the class that `model_index.json` names: their components, what they are called with
//! where callers do not say, and how latents and texts reach the denoiser.

use serde_json::Value as Json;

use crate::hub::Checkpoint;
use crate::{Error, GraphKind, Result};

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
    /// Whether a ControlNet adds to the denoiser's feature maps.
    pub controlnet: bool,
}

/// A text encoder and its tokenizer.
#[derive(Clone, Copy, Debug)]
pub(super) struct TextEncoder {
    pub name: &'static str,
    pub tokenizer: &'static str,
    pub kind: GraphKind,
    /// `max_sequence_length` where it is not given; of CLIP as many tokens as it has positions.
    pub length: Option<usize>,
    /// Whether pipelines are published without it.
    pub optional: bool,
    /// Whether prompts are messages of a chat.
    pub chat: bool,
}

/// What a denoiser takes besides a timestep, and how it takes latents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Conditioning {
    /// The hidden states of one text encoder, which cross-attention sees.
    HiddenStates,
    /// Those of two, the pooled text and sizes (`time_ids`).
    Sizes,
    /// Those of CLIP side by side and T5's behind them, and the pooled texts.
    Joined,
    /// T5's hidden states and CLIP's pooled text; latents are packed two by two, and the guidance scale is embedded.
    Packed,
    /// T5's hidden states with a mask of padding; resolutions are those of the training.
    Masked,
    /// Classes, and no text at all.
    Classes,
    /// The hidden states of a chat with a mask of padding; time runs the other way, and what is predicted is negated.
    Chat,
}

const CLIP: TextEncoder = TextEncoder {
    name: "text_encoder",
    tokenizer: "tokenizer",
    kind: GraphKind::TextEncoder,
    length: None,
    optional: false,
    chat: false,
};
const CLIP_2: TextEncoder =
    TextEncoder { name: "text_encoder_2", tokenizer: "tokenizer_2", kind: GraphKind::TextEncoder2, ..CLIP };

const T5: TextEncoder = TextEncoder { length: Some(120), ..CLIP };

/// The size of latents, in rows and columns, that pipelines of transformers take where the configuration has none.
const SAMPLE_SIZE: usize = 128;

const CLASSES: &[PipelineClass] = &[
    PipelineClass {
        names: &["StableDiffusionPipeline", "StableDiffusionInpaintPipeline"],
        denoiser: "unet",
        text_encoders: &[CLIP],
        steps: 50,
        guidance_scale: 7.5,
        sample_size: 64,
        conditioning: Conditioning::HiddenStates,
        controlnet: false,
    },
    PipelineClass {
        names: &["StableDiffusionXLPipeline", "StableDiffusionXLInpaintPipeline"],
        denoiser: "unet",
        text_encoders: &[CLIP, CLIP_2],
        steps: 50,
        guidance_scale: 5.0,
        sample_size: SAMPLE_SIZE,
        conditioning: Conditioning::Sizes,
        controlnet: false,
    },
    PipelineClass {
        names: &["StableDiffusionControlNetPipeline"],
        denoiser: "unet",
        text_encoders: &[CLIP],
        steps: 50,
        guidance_scale: 7.5,
        sample_size: 64,
        conditioning: Conditioning::HiddenStates,
        controlnet: true,
    },
    PipelineClass {
        names: &["StableDiffusionXLControlNetPipeline"],
        denoiser: "unet",
        text_encoders: &[CLIP, CLIP_2],
        steps: 50,
        guidance_scale: 5.0,
        sample_size: SAMPLE_SIZE,
        conditioning: Conditioning::Sizes,
        controlnet: true,
    },
    PipelineClass {
        names: &["StableDiffusion3Pipeline"],
        denoiser: "transformer",
        text_encoders: &[
            CLIP,
            CLIP_2,
            TextEncoder {
                name: "text_encoder_3",
                tokenizer: "tokenizer_3",
                kind: GraphKind::TextEncoder3,
                length: Some(256),
                optional: true,
                chat: false,
            },
        ],
        steps: 28,
        guidance_scale: 7.0,
        sample_size: SAMPLE_SIZE,
        conditioning: Conditioning::Joined,
        controlnet: false,
    },
    PipelineClass {
        names: &["FluxPipeline"],
        denoiser: "transformer",
        text_encoders: &[CLIP, TextEncoder { length: Some(512), ..CLIP_2 }],
        steps: 28,
        guidance_scale: 3.5,
        sample_size: SAMPLE_SIZE,
        conditioning: Conditioning::Packed,
        controlnet: false,
    },
    PipelineClass {
        names: &["PixArtAlphaPipeline"],
        denoiser: "transformer",
        text_encoders: &[T5],
        steps: 20,
        guidance_scale: 4.5,
        sample_size: SAMPLE_SIZE,
        conditioning: Conditioning::Masked,
        controlnet: false,
    },
    PipelineClass {
        names: &["PixArtSigmaPipeline"],
        denoiser: "transformer",
        text_encoders: &[TextEncoder { length: Some(300), ..T5 }],
        steps: 20,
        guidance_scale: 4.5,
        sample_size: SAMPLE_SIZE,
        conditioning: Conditioning::Masked,
        controlnet: false,
    },
    PipelineClass {
        names: &["ZImagePipeline"],
        denoiser: "transformer",
        text_encoders: &[TextEncoder { length: Some(512), chat: true, ..CLIP }],
        steps: 50,
        guidance_scale: 5.0,
        sample_size: SAMPLE_SIZE,
        conditioning: Conditioning::Chat,
        controlnet: false,
    },
    PipelineClass {
        names: &["DiTPipeline"],
        denoiser: "transformer",
        text_encoders: &[],
        steps: 50,
        guidance_scale: 4.0,
        sample_size: 32,
        conditioning: Conditioning::Classes,
        controlnet: false,
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
