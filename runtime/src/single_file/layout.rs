//! Which model a file is of, by the names and shapes of its tensors (`infer_diffusers_model_type`).

use serde_json::Value as Json;

use super::clip::{Clip, Projection};
use super::shapes::Shapes;
use super::{Tensor, clip, flux, qwen_image, sd3, t5, unet, vae, z_image};
use crate::{Error, Result};

/// A kind of file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    V1,
    Inpainting,
    V2,
    InpaintingV2,
    Xl,
    XlInpainting,
    Sd3,
    Sd35Medium,
    Sd35Large,
    FluxDev,
    FluxSchnell,
    ZImage,
    QwenImage,
}

/// A component that files of a layout may hold, and what its tensors' names begin with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Component {
    pub name: &'static str,
    prefixes: &'static [&'static str],
    kind: Kind,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Unet,
    Vae,
    Clip(Clip),
    T5,
    Flux,
    Sd3,
    ZImage,
    QwenImage,
}

const DENOISER: &str = "model.diffusion_model.";
/// User interfaces put this before transformers that are published without it.
const TRANSFORMER: &[&str] = &[DENOISER, ""];
const fn component(name: &'static str, prefixes: &'static [&'static str], kind: Kind) -> Component {
    Component { name, prefixes, kind }
}
const UNET: Component = component("unet", &[DENOISER], Kind::Unet);
const VAE: Component = component("vae", &["first_stage_model.", "vae."], Kind::Vae);
const CLIP_L: &[&str] = &["text_encoders.clip_l.transformer."];
const T5: &[&str] = &["text_encoders.t5xxl.transformer."];

/// What has no pipeline here: a mark of its names, and what it is.
const REFUSED: &[(&str, &str)] = &[
    ("conditioner.embedders.0.model.transformer.resblocks.", "the refiner of Stable Diffusion XL"),
    ("model.diffusion_model.input_blocks.10.0.skip_connection.bias#4", "the x4 upscaler of Stable Diffusion"),
    ("v_pred", "a Stable Diffusion XL that predicts `v`"),
    ("ztsnr", "a Stable Diffusion XL whose noise has no signal at its last step"),
    ("edm_mean", "Playground v2.5, whose latents are scaled channel by channel"),
    ("control_model.", "a ControlNet"),
    ("input_hint_block.", "a ControlNet"),
    ("controlnet_cond_embedding.", "a ControlNet"),
    ("clip_txt_mapper.", "Stable Cascade"),
    ("down_blocks.0.motion_modules.", "a motion module of AnimateDiff"),
    ("single_stream_modulation.", "FLUX.2"),
    ("distilled_guidance_layer.", "Chroma"),
    ("double_stream_blocks.", "HiDream"),
    ("cap_embedder.0.weight#", "Lumina 2"),
    ("patchify_proj.", "LTX-Video"),
    ("txt_in.individual_token_refiner.", "HunyuanVideo"),
    ("head.modulation", "Wan"),
    ("double_layers.", "AuraFlow"),
    ("net.blocks.", "Cosmos"),
    ("joint_transformer_blocks.", "a transformer"),
];

impl Layout {
    /// Of a file's tensors.
    ///
    /// # Errors
    /// When it is an adapter, of a model that has no pipeline here, or no such file at all.
    pub(super) fn of(shapes: &Shapes) -> Result<Self> {
        let refuse = |problem: String, help: &str| Err(Error::weights(shapes.path(), problem, help));
        let lora = |name: &str| {
            [".lora_", "_lora.", ".lora.", "lora_unet_", "lora_te", ".hada_w", ".lokr_w"]
                .iter()
                .any(|mark| name.contains(mark))
        };
        if let Some((name, _)) = shapes.iter().find(|(name, _)| lora(name) || name.starts_with("lora_")) {
            let problem = format!("holds `{name}`: it is a LoRA, which changes a checkpoint and is none");
            return refuse(
                problem,
                "open the checkpoint that it was trained on, with `--lora` and this file",
            );
        }
        let inner = shapes.below(DENOISER);
        let bare = if inner.is_empty() { shapes } else { &inner };
        if let Some((_, name)) = REFUSED.iter().find(|(mark, _)| match mark.split_once('#') {
            None => shapes.begins(mark) || bare.begins(mark),
            Some((name, "")) => bare.has(name) && !bare.has("layers.0.adaLN_modulation.0.weight"),
            // Seven channels go in, those of latents and of an image.
            Some((name, _)) => {
                shapes.has(name) && bare.axis("input_blocks.0.0.weight", 1).is_ok_and(|axis| axis == 7)
            }
        }) {
            let help =
                "open the folder of the pipeline where there is one here; `weft models` lists what is read";
            return refuse(format!("is {name}, whose single files are not read"), help);
        }
        Self::known(shapes, bare).map_or_else(
            || {
                let help = "give a checkpoint of Stable Diffusion 1, 2, XL or 3, FLUX.1, Z-Image or Qwen-Image; where the file is \
                            part of a folder, give the folder";
                refuse("is no checkpoint of a diffusion model that is read from one file".to_owned(), help)
            },
            |layout| layout.marked(shapes),
        )
    }

    fn known(shapes: &Shapes, bare: &Shapes) -> Option<Self> {
        if bare.has("input_blocks.0.0.weight") && bare.has("middle_block.0.in_layers.0.weight") {
            let inputs = bare.axis("input_blocks.0.0.weight", 1).unwrap_or_default();
            // Stable Diffusion 2 and XL have OpenCLIP's encoder; without it the width of texts tells.
            let context = bare.iter().find(|(name, _)| name.ends_with("attn2.to_k.weight"));
            let width = context.and_then(|(_, shape)| shape.get(1)).copied();
            let second = shapes.begins("cond_stage_model.model.") || width == Some(1024);
            let larger = bare.has("label_emb.0.0.weight");
            return Some(match (larger, second, inputs) {
                (true, _, 9) => Self::XlInpainting,
                (true, _, _) => Self::Xl,
                (_, true, 9) => Self::InpaintingV2,
                (_, true, _) => Self::V2,
                (_, _, 9) => Self::Inpainting,
                _ => Self::V1,
            });
        }
        if bare.begins("joint_blocks.0.context_block.") {
            return Some(match bare.axis("pos_embed", 1).unwrap_or_default() {
                _ if bare.count("joint_blocks.") > 24 => Self::Sd35Large,
                147_456 => Self::Sd35Medium,
                _ => Self::Sd3,
            });
        }
        if bare.has("double_blocks.0.img_attn.norm.key_norm.scale") {
            return Some(if bare.has("guidance_in.in_layer.bias") {
                Self::FluxDev
            } else {
                Self::FluxSchnell
            });
        }
        if bare.has("layers.0.adaLN_modulation.0.weight") && bare.begins("noise_refiner.0.") {
            return Some(Self::ZImage);
        }
        let qwen = bare.has("transformer_blocks.0.img_mod.1.weight") && bare.has("txt_norm.weight");
        qwen.then_some(Self::QwenImage)
    }

    /// Refuses files that say of themselves what is not done here.
    fn marked(self, shapes: &Shapes) -> Result<Self> {
        let inputs = |prefix: &str| shapes.axis(&format!("{prefix}input_blocks.0.0.weight"), 1).ok();
        let problem = match self {
            Self::V1 | Self::V2 | Self::Xl => match inputs(DENOISER) {
                None | Some(4) => None,
                Some(channels) => Some(format!(
                    "is a denoiser of {channels} channels (such as InstructPix2Pix), whose single files are not read"
                )),
            },
            _ => None,
        };
        match problem {
            None => Ok(self),
            Some(problem) => Err(Error::weights(
                shapes.path(),
                problem,
                "open a checkpoint of four channels, or of nine for inpainting",
            )),
        }
    }

    /// The components that such files may hold.
    pub(super) fn components(self) -> Vec<Component> {
        let own = Kind::Clip(Clip::Plain(Projection::None));
        match self {
            Self::V1 | Self::Inpainting => {
                vec![component("text_encoder", &["cond_stage_model.transformer."], own), UNET, VAE]
            }
            Self::V2 | Self::InpaintingV2 => {
                let open = Kind::Clip(Clip::Penultimate);
                vec![component("text_encoder", &["cond_stage_model.model."], open), UNET, VAE]
            }
            Self::Xl | Self::XlInpainting => vec![
                component("text_encoder", &["conditioner.embedders.0.transformer."], own),
                component("text_encoder_2", &["conditioner.embedders.1.model."], Kind::Clip(Clip::Open)),
                UNET,
                VAE,
            ],
            Self::Sd3 | Self::Sd35Medium | Self::Sd35Large => vec![
                component("text_encoder", CLIP_L, Kind::Clip(Clip::Plain(Projection::Identity))),
                component(
                    "text_encoder_2",
                    &["text_encoders.clip_g.transformer."],
                    Kind::Clip(Clip::Plain(Projection::Own)),
                ),
                component("text_encoder_3", T5, Kind::T5),
                component("transformer", TRANSFORMER, Kind::Sd3),
                VAE,
            ],
            Self::FluxDev | Self::FluxSchnell => vec![
                component("text_encoder", CLIP_L, own),
                component("text_encoder_2", T5, Kind::T5),
                component("transformer", TRANSFORMER, Kind::Flux),
                VAE,
            ],
            Self::ZImage => vec![component("transformer", TRANSFORMER, Kind::ZImage), VAE],
            Self::QwenImage => vec![component("transformer", TRANSFORMER, Kind::QwenImage)],
        }
    }

    /// Where such files, or the folders that they were made of, are published (`DIFFUSERS_DEFAULT_PIPELINE_PATHS`).
    pub(super) fn repository(self) -> &'static str {
        match self {
            Self::V1 => "stable-diffusion-v1-5/stable-diffusion-v1-5",
            Self::Inpainting => "stable-diffusion-v1-5/stable-diffusion-inpainting",
            Self::V2 => "stabilityai/stable-diffusion-2-1",
            Self::InpaintingV2 => "stabilityai/stable-diffusion-2-inpainting",
            Self::Xl => "stabilityai/stable-diffusion-xl-base-1.0",
            Self::XlInpainting => "diffusers/stable-diffusion-xl-1.0-inpainting-0.1",
            Self::Sd3 => "stabilityai/stable-diffusion-3-medium-diffusers",
            Self::Sd35Medium => "stabilityai/stable-diffusion-3.5-medium",
            Self::Sd35Large => "stabilityai/stable-diffusion-3.5-large",
            Self::FluxDev => "black-forest-labs/FLUX.1-dev",
            Self::FluxSchnell => "black-forest-labs/FLUX.1-schnell",
            Self::ZImage => "Tongyi-MAI/Z-Image-Turbo",
            Self::QwenImage => "Qwen/Qwen-Image",
        }
    }

    /// The rows of latents that the U-Net was trained on.
    pub(super) fn sample_size(self) -> usize {
        self.image_size() / 8
    }

    /// The rows of pixels that the model was trained on.
    pub(super) fn image_size(self) -> usize {
        match self {
            Self::V1 | Self::Inpainting | Self::InpaintingV2 => 512,
            Self::V2 => 768,
            _ => 1024,
        }
    }

    /// Attention heads in each of the U-Net's layers, where these are as many; else they are 64 wide.
    pub(super) fn unet_heads(self) -> Option<usize> {
        matches!(self, Self::V1 | Self::Inpainting).then_some(8)
    }

    /// Whether attention is in single precision in any case (`upcast_attention`).
    pub(super) fn upcasts_attention(self) -> bool {
        self == Self::V2
    }

    /// What latents are multiplied with, and what is taken from them before.
    pub(super) fn latents(self) -> (f64, Option<f64>) {
        match self {
            Self::V1 | Self::Inpainting | Self::V2 | Self::InpaintingV2 => (0.18215, None),
            Self::Xl | Self::XlInpainting => (0.13025, None),
            Self::Sd3 | Self::Sd35Medium | Self::Sd35Large => (1.5305, Some(0.0609)),
            Self::FluxDev | Self::FluxSchnell | Self::ZImage | Self::QwenImage => (0.3611, Some(0.1159)),
        }
    }
}

impl Component {
    /// Its configuration and its tensors; `None` where the file does not hold it.
    pub(super) fn read(&self, shapes: &Shapes, layout: Layout) -> Result<Option<(Json, Vec<Tensor>)>> {
        let Some(prefix) = self.prefixes.iter().find(|prefix| shapes.begins(prefix)) else { return Ok(None) };
        let own = shapes.below(prefix);
        let (config, mut tensors) = match self.kind {
            Kind::Unet => (unet::config(&own, layout)?, unet::tensors(&own)?),
            Kind::Vae => (vae::config(&own, layout)?, vae::tensors(&own)?),
            Kind::Clip(kind) => (clip::config(&own, kind)?, clip::tensors(&own, kind)?),
            Kind::T5 => (t5::config(&own)?, t5::tensors(&own)),
            Kind::Flux => (flux::config(&own)?, flux::tensors(&own)?),
            Kind::Sd3 => (sd3::config(&own)?, sd3::tensors(&own)?),
            Kind::ZImage => (z_image::config(&own)?, z_image::tensors(&own)?),
            Kind::QwenImage => (qwen_image::config(&own)?, qwen_image::tensors(&own)),
        };
        for tensor in &mut tensors {
            tensor.stored.insert_str(0, own.prefix());
        }
        Ok(Some((config, tensors)))
    }
}
