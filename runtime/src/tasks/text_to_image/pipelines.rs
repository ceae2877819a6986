//! Pipelines of `diffusers` that are read, by the class that `model_index.json` names: their components, what they are called with
//! where callers do not say, and how latents and texts reach the denoiser.

use serde_json::Value as Json;

use crate::hub::Checkpoint;
use crate::{Error, GraphKind, Result};

/// A pipeline class.
#[derive(Clone, Copy, Debug)]
pub(super) struct PipelineClass {
    /// The classes that are so.
    names: &'static [&'static str],
    /// The component that denoises.
    pub denoiser: &'static str,
    /// The text encoders, in the order of their graphs.
    pub text_encoders: &'static [TextEncoder],
    /// `num_inference_steps` where it is not given.
    pub steps: usize,
    /// `guidance_scale` where it is not given.
    pub guidance_scale: f32,
    pub conditioning: Conditioning,
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
}

/// What a denoiser takes besides the text's hidden states, and how it takes latents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Conditioning {
    /// The hidden states of one text encoder.
    HiddenStates,
    /// Those of two, the pooled text and sizes (`time_ids`).
    Sizes,
}

const CLIP: TextEncoder = TextEncoder {
    name: "text_encoder",
    tokenizer: "tokenizer",
    kind: GraphKind::TextEncoder,
    length: None,
    optional: false,
};
const CLIP_2: TextEncoder =
    TextEncoder { name: "text_encoder_2", tokenizer: "tokenizer_2", kind: GraphKind::TextEncoder2, ..CLIP };

const CLASSES: &[PipelineClass] = &[
    PipelineClass {
        names: &["StableDiffusionPipeline"],
        denoiser: "unet",
        text_encoders: &[CLIP],
        steps: 50,
        guidance_scale: 7.5,
        conditioning: Conditioning::HiddenStates,
    },
    PipelineClass {
        names: &["StableDiffusionXLPipeline"],
        denoiser: "unet",
        text_encoders: &[CLIP, CLIP_2],
        steps: 50,
        guidance_scale: 5.0,
        conditioning: Conditioning::Sizes,
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
        let Some(class) = CLASSES.iter().find(|class| class.names.contains(&name)) else {
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
        Ok(*class)
    }

    /// The components that are read.
    fn components(&self) -> impl Iterator<Item = &'static str> {
        let texts = self.text_encoders.iter().flat_map(|encoder| [encoder.name, encoder.tokenizer]);
        texts.chain([self.denoiser, "vae"])
    }
}

/// Whether a pipeline has a component.
pub(super) fn has(index: &Json, name: &str) -> bool {
    index.get(name).is_some_and(|value| !value.is_null())
}
