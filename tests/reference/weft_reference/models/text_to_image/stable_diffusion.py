"""Stable Diffusion 1 and 2."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from weft_reference.byte_pairs import clip_tokenizer
from weft_reference.diffusion import diffusers
from weft_reference.models.schedulers import STABLE_DIFFUSION
from weft_reference.models.stable_diffusion import UNET, controlnet
from weft_reference.models.text_to_image.components import POSITIONS, autoencoder, clip, denoiser
from weft_reference.models.text_to_image.pipelines import PipelineCase, Run

RUNS = (
    Run("pndm", "PNDMScheduler", {"skip_prk_steps": True, "steps_offset": 1}, options={"height": 24, "width": 16}),
    Run(
        "euler-ancestral",
        "EulerAncestralDiscreteScheduler",
        {"timestep_spacing": "leading", "steps_offset": 1},
        ("A red disc", "Blue bars, and more of them than a tokenizer takes: " + "bars " * 20),
        {"negative_prompt": "rain", "num_images_per_prompt": 2, "guidance_rescale": 0.7},
        7,
    ),
    Run(
        "ddim",
        "DDIMScheduler",
        {"clip_sample": False, "set_alpha_to_one": False, "steps_offset": 1},
        options={"guidance_scale": 1.0, "num_inference_steps": 4},
    ),
    Run(
        "weighted",
        "DDIMScheduler",
        {"clip_sample": False, "steps_offset": 1},
        ("A (red:1.5) disc, ((blue)) [bars]",),
        {"height": 24, "width": 16, "num_inference_steps": 4},
        weighted=(("A ", 1.0), ("red", 1.5), (" disc, ", 1.0), ("blue", 1.1 * 1.1), (" ", 1.0), ("bars", 1 / 1.1)),
    ),
    Run("image-ddim", "DDIMScheduler", {"clip_sample": False, "steps_offset": 1}, options={"strength": 0.6}, image=True),
    Run("image-pndm", "PNDMScheduler", {"skip_prk_steps": True, "steps_offset": 1}, options={"strength": 0.5}, image=True),
    Run("image-lms", "LMSDiscreteScheduler", options={"strength": 0.75, "num_inference_steps": 8}, image=True),
    Run(
        "image-heun",
        "HeunDiscreteScheduler",
        {},
        ("A red disc", "Blue bars"),
        {"negative_prompt": "rain", "num_images_per_prompt": 2, "strength": 0.35},
        7,
        image=True,
    ),
    Run(
        "tiled",
        "DDIMScheduler",
        {"clip_sample": False},
        ("A red disc", "Blue bars"),
        {"height": 40, "width": 24, "num_inference_steps": 2},
        tiled=True,
    ),
    Run(
        "image-tiled",
        "DDIMScheduler",
        {"clip_sample": False},
        options={"strength": 0.6, "num_inference_steps": 4},
        image=True,
        tiled=True,
    ),
)

LORA = (Run("with-lora", "DDIMScheduler", {"clip_sample": False}, options={"num_inference_steps": 4}, lora=0.7),)
INPAINT = (
    Run("mask", "PNDMScheduler", {"skip_prk_steps": True, "steps_offset": 1}, mask=True),
    Run(
        "mask-euler",
        "EulerAncestralDiscreteScheduler",
        {"timestep_spacing": "leading", "steps_offset": 1},
        ("A red disc", "Blue bars"),
        {"negative_prompt": "rain", "num_images_per_prompt": 2, "strength": 0.6},
        7,
        mask=True,
    ),
)


def build(name: str = "StableDiffusionPipeline", added: Mapping[str, Any] | None = None, **config: Any) -> Any:
    return getattr(diffusers, name)(
        **(added or {}),
        vae=autoencoder(),
        text_encoder=clip(),
        tokenizer=clip_tokenizer(POSITIONS),
        unet=denoiser("UNet2DConditionModel", **UNET | config),
        scheduler=diffusers.PNDMScheduler(**STABLE_DIFFUSION, **RUNS[0].fields),
        safety_checker=None,
        feature_extractor=None,
        requires_safety_checker=False,
    )


CONTROLLED = (
    Run("control", "PNDMScheduler", {"skip_prk_steps": True, "steps_offset": 1}, control=True),
    Run(
        "share",
        "DDIMScheduler",
        {"clip_sample": False, "steps_offset": 1},
        ("A red disc", "Blue bars"),
        {
            "height": 24,
            "width": 16,
            "negative_prompt": "rain",
            "num_images_per_prompt": 2,
            "controlnet_conditioning_scale": 0.6,
            "control_guidance_start": 0.2,
            "control_guidance_end": 0.7,
        },
        7,
        control=True,
    ),
)


def with_control() -> Any:
    name = "StableDiffusionControlNetPipeline"
    return build(name, added={"controlnet": denoiser("ControlNetModel", **controlnet(UNET))})


# Latent consistency: the guidance scale is embedded.
CONSISTENT = (
    Run("four-steps", "LCMScheduler", options={"height": 24, "width": 16, "num_inference_steps": 4}),
    Run(
        "several",
        "LCMScheduler",
        {"original_inference_steps": 20, "clip_sample": True, "clip_sample_range": 2.0},
        ("A red disc", "Blue bars"),
        {"num_images_per_prompt": 2, "guidance_scale": 1.5},
        7,
    ),
)


def consistent() -> Any:
    return build("LatentConsistencyModelPipeline", time_cond_proj_dim=6)


# InstructPix2Pix: the image's latents stand beside noise.
EDITED = (
    Run("edited", "EulerAncestralDiscreteScheduler", {"timestep_spacing": "leading", "steps_offset": 1}, image=True),
    Run(
        "several",
        "DDIMScheduler",
        {"clip_sample": False, "steps_offset": 1},
        ("Make it red", "Make it night"),
        {"negative_prompt": "rain", "num_images_per_prompt": 2, "image_guidance_scale": 1.1, "guidance_scale": 5.0},
        7,
        image=True,
    ),
    Run("unguided", "DDIMScheduler", {"clip_sample": False}, options={"guidance_scale": 1.0, "num_inference_steps": 4}, image=True),
)


def cases() -> list[PipelineCase]:
    path, inpaint = "text-to-image/stable-diffusion", "StableDiffusionInpaintPipeline"
    trained = partial(build, inpaint, in_channels=9)
    edits = partial(build, "StableDiffusionInstructPix2PixPipeline", in_channels=8)
    return [
        PipelineCase(path, build, RUNS + INPAINT[1:] + LORA, "StableDiffusionImg2ImgPipeline", inpaint, STABLE_DIFFUSION),
        PipelineCase(f"{path}-controlnet", with_control, CONTROLLED, given=STABLE_DIFFUSION),
        PipelineCase(f"{path}-instruct-pix2pix", edits, EDITED, given=STABLE_DIFFUSION),
        PipelineCase("text-to-image/latent-consistency-model", consistent, CONSISTENT, given=STABLE_DIFFUSION),
        PipelineCase(f"{path}-inpainting", trained, INPAINT, inpaint=inpaint, given=STABLE_DIFFUSION),
    ]
