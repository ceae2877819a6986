"""Stable Diffusion XL: two text encoders, whose second one also gives the pooled text, and sizes."""

from __future__ import annotations

from typing import Any

from weft_reference.byte_pairs import clip_tokenizer
from weft_reference.diffusion import diffusers
from weft_reference.models.schedulers import STABLE_DIFFUSION
from weft_reference.models.stable_diffusion import UNET, controlnet
from weft_reference.models.text_to_image.components import POSITIONS, autoencoder, clip, denoiser
from weft_reference.models.text_to_image.pipelines import PipelineCase, Run

XL = UNET | {
    "addition_embed_type": "text_time",
    "addition_time_embed_dim": 4,
    "projection_class_embeddings_input_dim": 34,
    "cross_attention_dim": 20,
    "use_linear_projection": True,
    "transformer_layers_per_block": (2, 1),
}
LEADING = {"timestep_spacing": "leading", "steps_offset": 1}
RUNS = (
    Run("euler", "EulerDiscreteScheduler", LEADING, options={"height": 24, "width": 16}),
    Run(
        "negative",
        "EulerAncestralDiscreteScheduler",
        LEADING,
        ("A red disc", "Blue bars, and more of them than a tokenizer takes: " + "bars " * 20),
        {"negative_prompt": "rain", "num_images_per_prompt": 2, "guidance_rescale": 0.7, "guidance_scale": 7.5},
        7,
    ),
    Run(
        "weighted",
        "EulerDiscreteScheduler",
        LEADING,
        ("A (red:1.5) disc, ((blue)) [bars]",),
        {"height": 24, "width": 16, "num_inference_steps": 4, "negative_prompt": ""},
        weighted=(("A ", 1.0), ("red", 1.5), (" disc, ", 1.0), ("blue", 1.1 * 1.1), (" ", 1.0), ("bars", 1 / 1.1)),
    ),
    Run("turbo", "EulerAncestralDiscreteScheduler", {"timestep_spacing": "trailing"}, options={"guidance_scale": 0.0, "num_inference_steps": 2}),
    Run(
        "seeds",
        "DPMSolverMultistepScheduler",
        {"algorithm_type": "sde-dpmsolver++", "use_karras_sigmas": True},
        options={"num_images_per_prompt": 3, "num_inference_steps": 5},
        seed=(3, 42, 3),
    ),
    Run("mask", "EulerDiscreteScheduler", LEADING, options={"strength": 0.9999, "guidance_scale": 5.0}, mask=True),
    Run("image", "EulerDiscreteScheduler", LEADING, options={"strength": 0.6, "negative_prompt": "rain"}, image=True),
)


CONTROLLED = (
    Run("control", "EulerDiscreteScheduler", LEADING, options={"controlnet_conditioning_scale": 0.8, "negative_prompt": "rain"}, control=True),
)


def build(name: str = "StableDiffusionXLPipeline", **added: Any) -> Any:
    first = clip_tokenizer(POSITIONS)
    second = clip_tokenizer(POSITIONS, pad_token="!")
    return getattr(diffusers, name)(
        **added,
        vae=autoencoder(scaling_factor=0.13025),
        text_encoder=clip(),
        text_encoder_2=clip(projected=True, hidden_size=8, num_hidden_layers=3, hidden_act="gelu"),
        tokenizer=first,
        tokenizer_2=second,
        unet=denoiser("UNet2DConditionModel", **XL),
        scheduler=diffusers.EulerDiscreteScheduler(**STABLE_DIFFUSION, **LEADING),
        add_watermarker=False,
    )


def with_control() -> Any:
    return build("StableDiffusionXLControlNetPipeline", controlnet=denoiser("ControlNetModel", **controlnet(XL)))


def refiner() -> Any:
    """One text encoder, and a score in place of the size."""
    pipeline = build("StableDiffusionXLImg2ImgPipeline", requires_aesthetics_score=True)
    text = pipeline.text_encoder_2.config
    width = {"cross_attention_dim": text.hidden_size, "projection_class_embeddings_input_dim": text.projection_dim + 20}
    pipeline.register_modules(text_encoder=None, tokenizer=None, unet=denoiser("UNet2DConditionModel", **XL | width))
    pipeline.register_to_config(force_zeros_for_empty_prompt=False)
    return pipeline


REFINED = (
    Run("refined", "EulerDiscreteScheduler", LEADING, image=True),
    Run(
        "several",
        "EulerDiscreteScheduler",
        LEADING,
        ("A red disc", "Blue bars"),
        {"negative_prompt": "rain", "strength": 0.6, "guidance_scale": 7.5, "num_images_per_prompt": 2},
        7,
        image=True,
    ),
    Run("unguided", "EulerDiscreteScheduler", LEADING, options={"strength": 0.5, "guidance_scale": 1.0}, image=True),
)


def cases() -> list[PipelineCase]:
    path = "text-to-image/stable-diffusion-xl"
    classes = ("StableDiffusionXLImg2ImgPipeline", "StableDiffusionXLInpaintPipeline")
    return [
        PipelineCase(path, build, RUNS, *classes, STABLE_DIFFUSION),
        PipelineCase(f"{path}-controlnet", with_control, CONTROLLED, given=STABLE_DIFFUSION),
        PipelineCase(f"{path}-refiner", refiner, REFINED, given=STABLE_DIFFUSION),
    ]
