//! The pipelines of `diffusers` that are read, a row for each class.

use super::pipelines::{Autoencoder, Conditioning, Guidance, Layout, PipelineClass, Shift, Time};
use super::text_encoders::{
    AURA_FLOW, BRIA, CHROMA, CLIP, CLIP_2, COGVIEW_4, ERNIE_IMAGE, FLUX_2, FLUX_2_KLEIN, HUNYUAN_DIT,
    LUMINA_2, OVIS_IMAGE, PIXART_ALPHA, QWEN_IMAGE, SANA, T5_3, TextEncoder, Z_IMAGE,
};
use crate::diffusion::schedulers::SigmaSpacing;

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
    sigmas: None,
    text_axes: &[],
    empty_is_zeros: false,
    apart: false,
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
    sigmas: Some((SigmaSpacing::Even, Shift::Tokens)),
    ..TRANSFORMER
};
/// A token for each place, whose latents are normalised.
const FLUX2: PipelineClass = PipelineClass {
    guidance_scale: 4.0,
    sample_size: SAMPLE_SIZE / 2,
    layout: Layout::Tokens,
    autoencoder: Autoencoder::Patched,
    sigmas: Some((SigmaSpacing::Even, Shift::Empirical)),
    text_axes: &[3],
    ..PACKED
};
const PIXART: PipelineClass =
    PipelineClass { steps: 20, guidance_scale: 4.5, conditioning: Conditioning::Masked, ..TRANSFORMER };
/// PixArt's, with deeper compressed latents and a decoder's hidden states.
const SANA_DEEP: PipelineClass =
    PipelineClass { text_encoders: &[SANA], sample_size: 32, autoencoder: Autoencoder::Deep, ..PIXART };

/// All of them.
pub(super) const CLASSES: &[PipelineClass] = &[
    PipelineClass { names: &["StableDiffusionPipeline", "StableDiffusionInpaintPipeline"], ..UNET },
    PipelineClass {
        names: &["LatentConsistencyModelPipeline"],
        steps: 4,
        guidance_scale: 8.5,
        guidance: Guidance::Embedded,
        ..UNET
    },
    PipelineClass { names: &["StableDiffusionXLPipeline", "StableDiffusionXLInpaintPipeline"], ..UNET_XL },
    PipelineClass { names: &["StableDiffusionXLImg2ImgPipeline"], text_encoders: &[CLIP_2], ..UNET_XL },
    PipelineClass {
        names: &["StableDiffusionInstructPix2PixPipeline"],
        steps: 100,
        guidance: Guidance::Image,
        ..UNET
    },
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
        names: &["Flux2Pipeline"],
        text_encoders: &[FLUX_2],
        guidance: Guidance::Embedded,
        ..FLUX2
    },
    PipelineClass {
        names: &["Flux2KleinPipeline"],
        text_encoders: &[FLUX_2_KLEIN],
        guidance: Guidance::Undistilled,
        ..FLUX2
    },
    PipelineClass {
        names: &["OvisImagePipeline"],
        text_encoders: &[OVIS_IMAGE],
        guidance_scale: 5.0,
        text_axes: &[1, 2],
        ..PACKED
    },
    PipelineClass {
        names: &["BriaPipeline"],
        text_encoders: &[BRIA],
        steps: 30,
        guidance_scale: 5.0,
        time: Time::Timestep,
        sigmas: Some((SigmaSpacing::Original, Shift::Tokens)),
        empty_is_zeros: true,
        ..PACKED
    },
    PipelineClass {
        names: &["CogView4Pipeline"],
        text_encoders: &[COGVIEW_4],
        guidance_scale: 5.0,
        conditioning: Conditioning::Pairs,
        sigmas: Some((SigmaSpacing::Whole, Shift::Tokens)),
        apart: true,
        ..TRANSFORMER
    },
    PipelineClass {
        names: &["ErnieImagePipeline"],
        text_encoders: &[ERNIE_IMAGE],
        guidance_scale: 4.0,
        sample_size: SAMPLE_SIZE / 2,
        conditioning: Conditioning::Lengths,
        autoencoder: Autoencoder::Patched,
        sigmas: Some((SigmaSpacing::Remaining, Shift::Fixed)),
        ..TRANSFORMER
    },
    PipelineClass { names: &["PixArtAlphaPipeline"], text_encoders: &[PIXART_ALPHA], ..PIXART },
    PipelineClass {
        names: &["PixArtSigmaPipeline"],
        text_encoders: &[TextEncoder { length: Some(300), ..PIXART_ALPHA }],
        ..PIXART
    },
    PipelineClass { names: &["SanaPipeline"], ..SANA_DEEP },
    PipelineClass {
        names: &["SanaSprintPipeline"],
        steps: 2,
        time: Time::Angle,
        guidance: Guidance::Embedded,
        ..SANA_DEEP
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
        sigmas: Some((SigmaSpacing::Even, Shift::Channels)),
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
        sigmas: Some((SigmaSpacing::Even, Shift::Tokens)),
        ..TRANSFORMER
    },
    PipelineClass {
        names: &["HunyuanDiTPipeline"],
        text_encoders: &HUNYUAN_DIT,
        guidance_scale: 5.0,
        conditioning: Conditioning::Bilingual,
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
