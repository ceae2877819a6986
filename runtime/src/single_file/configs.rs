//! `model_index.json` of the pipeline that a file is of.

use serde_json::{Map, Value as Json, json};

use super::layout::Layout;

/// The components, of which the third text encoder may be missing.
pub(super) fn index(layout: Layout, has: impl Fn(&str) -> bool) -> Json {
    const CLIP: &str = "CLIPTextModel";
    const PROJECTED: &str = "CLIPTextModelWithProjection";
    const T5: &str = "T5EncoderModel";
    let (class, denoiser, vae, text_encoders): (_, _, _, &[(&str, &str)]) = match layout {
        Layout::V1 | Layout::V2 => {
            ("StableDiffusionPipeline", "UNet2DConditionModel", "AutoencoderKL", &[(CLIP, "CLIPTokenizer")])
        }
        Layout::Inpainting | Layout::InpaintingV2 => (
            "StableDiffusionInpaintPipeline",
            "UNet2DConditionModel",
            "AutoencoderKL",
            &[(CLIP, "CLIPTokenizer")],
        ),
        Layout::Xl => (
            "StableDiffusionXLPipeline",
            "UNet2DConditionModel",
            "AutoencoderKL",
            &[(CLIP, "CLIPTokenizer"), (PROJECTED, "CLIPTokenizer")],
        ),
        Layout::XlInpainting => (
            "StableDiffusionXLInpaintPipeline",
            "UNet2DConditionModel",
            "AutoencoderKL",
            &[(CLIP, "CLIPTokenizer"), (PROJECTED, "CLIPTokenizer")],
        ),
        Layout::Sd3 | Layout::Sd35Medium | Layout::Sd35Large => (
            "StableDiffusion3Pipeline",
            "SD3Transformer2DModel",
            "AutoencoderKL",
            &[(PROJECTED, "CLIPTokenizer"), (PROJECTED, "CLIPTokenizer"), (T5, "T5TokenizerFast")],
        ),
        Layout::FluxDev | Layout::FluxSchnell => (
            "FluxPipeline",
            "FluxTransformer2DModel",
            "AutoencoderKL",
            &[(CLIP, "CLIPTokenizer"), (T5, "T5TokenizerFast")],
        ),
        Layout::ZImage => (
            "ZImagePipeline",
            "ZImageTransformer2DModel",
            "AutoencoderKL",
            &[("Qwen3Model", "Qwen2Tokenizer")],
        ),
        Layout::QwenImage => (
            "QwenImagePipeline",
            "QwenImageTransformer2DModel",
            "AutoencoderKLQwenImage",
            &[("Qwen2_5_VLForConditionalGeneration", "Qwen2Tokenizer")],
        ),
    };
    let scheduler = super::schedulers::config(layout)["_class_name"].clone();
    let mut index = Map::new();
    index.insert("_class_name".to_owned(), class.into());
    let name = if denoiser.starts_with("UNet") { "unet" } else { "transformer" };
    index.insert(name.to_owned(), json!(["diffusers", denoiser]));
    index.insert("vae".to_owned(), json!(["diffusers", vae]));
    index.insert("scheduler".to_owned(), json!(["diffusers", scheduler]));
    for (place, (encoder, tokenizer)) in text_encoders.iter().enumerate() {
        let ending = if place == 0 { String::new() } else { format!("_{}", place + 1) };
        let name = format!("text_encoder{ending}");
        let present = class != "StableDiffusion3Pipeline" || place < 2 || has(&name);
        let pair = |class: &str| if present { json!(["transformers", class]) } else { json!([null, null]) };
        index.insert(format!("tokenizer{ending}"), pair(tokenizer));
        index.insert(name, pair(encoder));
    }
    index.into()
}
