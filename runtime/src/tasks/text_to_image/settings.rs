//! What a pipeline's configurations say of sizes and scales.

use serde_json::Value as Json;

use super::pipelines::{Autoencoder, Conditioning, Layout, PipelineClass, Time};

/// Sizes and scales of latents.
#[derive(Debug)]
pub(super) struct Settings {
    /// The channels of latents.
    pub channels: usize,
    /// The channels that the denoiser takes, which with those of a mask and a masked image are more.
    pub in_channels: usize,
    /// The rows and columns of latents that the denoiser was trained on.
    pub sample_size: [usize; 2],
    /// Pixels for each row of latents.
    pub scale: usize,
    /// The rows and columns of pixels that the autoencoder was trained on.
    pub tile: usize,
    pub scaling_factor: f32,
    pub shift_factor: f32,
    /// The width of the embedded guidance scale.
    pub guidance_width: Option<usize>,
    /// The rows and columns of latents that are one token, or 1.
    pub patch_size: usize,
    /// Whether the guidance scale is embedded (`guidance_embeds`).
    pub guidance_embeds: bool,
    /// What it is multiplied with before.
    pub guidance_embeds_scale: f32,
    /// The width of the text that the denoiser takes.
    pub text_width: usize,
    /// Whether the denoiser takes resolution and aspect ratio.
    pub takes_resolution: bool,
    /// Whether the denoiser takes sizes and a style (`use_style_cond_and_image_meta_size`).
    pub takes_style: bool,
    /// The width of attention heads, which rotary position embeddings are given for.
    pub head_width: usize,
    /// What timesteps are multiplied with.
    pub timestep_scale: f32,
    /// Whether the checkpoint is distilled, and there is no negative prompt.
    pub distilled: bool,
    /// Whether zeros stand for a negative prompt that is not given.
    pub zeros_for_empty_prompt: bool,
    /// Whether the denoiser is told how beautiful images are to be, in place of their size.
    pub requires_aesthetics_score: bool,
}

impl Settings {
    /// The height and width of the images that the denoiser was trained on.
    pub(super) fn trained(&self) -> [usize; 2] {
        self.sample_size.map(|side| side.saturating_mul(self.scale))
    }

    /// Pixels for each row of tokens, of which heights and widths are multiples.
    pub(super) fn multiple(&self) -> usize {
        self.scale.saturating_mul(self.patch_size)
    }

    pub(super) fn read(class: &PipelineClass, config: &Json) -> Self {
        let (denoiser, vae) = (&config[class.denoiser], &config["vae"]);
        let size = |json: &Json| json.as_u64().map(|n| n as usize);
        let sample_size = match &denoiser["sample_size"] {
            Json::Array(sides) => {
                sides.first().and_then(size).zip(sides.get(1).and_then(size)).map(<[_; 2]>::from)
            }
            one => size(one).map(|side| [side; 2]),
        };
        let count = |name: &str| vae[name].as_array().map(|entries| entries.len().min(15));
        let scale = match class.autoencoder {
            Autoencoder::Blocks => 1 << count("block_out_channels").unwrap_or(1).saturating_sub(1),
            Autoencoder::Deep => 1 << count("encoder_block_out_channels").unwrap_or(6).saturating_sub(1),
            Autoencoder::Video => 1 << count("temperal_downsample").unwrap_or(3),
            Autoencoder::Patched => 2 << count("block_out_channels").unwrap_or(4).saturating_sub(1),
        };
        let factor = |name: &str| vae[name].as_f64().map(|factor| factor as f32);
        let trained = sample_size.unwrap_or([class.sample_size; 2]);
        let patch_size = match class.layout {
            _ if class.denoiser == "unet" => 1,
            Layout::Tokens => 1,
            Layout::Packed => 2,
            Layout::Maps | Layout::Frame => {
                let default = if class.autoencoder == Autoencoder::Patched { 1 } else { 2 };
                size(&denoiser["patch_size"]).unwrap_or(default).max(1)
            }
        };
        let channels = match class.autoencoder {
            Autoencoder::Blocks => size(&vae["latent_channels"]).unwrap_or(4),
            Autoencoder::Deep => size(&vae["latent_channels"]).unwrap_or(32),
            Autoencoder::Video => size(&vae["z_dim"]).unwrap_or(16),
            Autoencoder::Patched => size(&vae["latent_channels"]).unwrap_or(32).saturating_mul(4),
        };
        let scaling_factor = match class.autoencoder {
            Autoencoder::Blocks => factor("scaling_factor").unwrap_or(0.18215),
            Autoencoder::Deep => factor("scaling_factor").unwrap_or(1.0),
            Autoencoder::Video | Autoencoder::Patched => 1.0,
        };
        let in_channels = match class.denoiser {
            "unet" => size(&denoiser["in_channels"]).unwrap_or(channels),
            _ => channels,
        };
        Self {
            channels,
            in_channels,
            sample_size: trained,
            scale,
            tile: size(vae["sample_size"].get(0).unwrap_or(&vae["sample_size"])).unwrap_or(32),
            scaling_factor,
            shift_factor: factor("shift_factor").unwrap_or_default(),
            guidance_width: size(&denoiser["time_cond_proj_dim"]),
            patch_size,
            guidance_embeds: denoiser["guidance_embeds"].as_bool().unwrap_or(class.layout == Layout::Tokens),
            guidance_embeds_scale: match class.time {
                Time::Angle => denoiser["guidance_embeds_scale"].as_f64().unwrap_or(0.1) as f32,
                _ => 1.0,
            },
            text_width: size(&denoiser["joint_attention_dim"]).unwrap_or(4096),
            takes_resolution: class.conditioning == Conditioning::Masked
                && class.autoencoder == Autoencoder::Blocks
                && denoiser["use_additional_conditions"].as_bool().unwrap_or(trained == [128; 2]),
            takes_style: denoiser["use_style_cond_and_image_meta_size"].as_bool().unwrap_or(true),
            head_width: size(&denoiser["attention_head_dim"]).unwrap_or(88),
            timestep_scale: denoiser["timestep_scale"].as_f64().unwrap_or(1.0) as f32,
            distilled: config["is_distilled"].as_bool().unwrap_or(false),
            zeros_for_empty_prompt: config["force_zeros_for_empty_prompt"].as_bool().unwrap_or(true),
            requires_aesthetics_score: config["requires_aesthetics_score"].as_bool().unwrap_or(false),
        }
    }
}
