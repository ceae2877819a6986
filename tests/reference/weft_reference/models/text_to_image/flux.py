"""Flux: CLIP's pooled text and T5's hidden states, latents packed two by two, sigmas shifted by the number of tokens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from weft_reference.byte_pairs import clip_tokenizer
from weft_reference.diffusion import diffusers
from weft_reference.models.diffusion_transformers import FLUX
from weft_reference.models.text_to_image.components import POSITIONS, autoencoder, clip, denoiser, t5, t5_tokenizer
from weft_reference.models.text_to_image.pipelines import PipelineCase, Run

DYNAMIC = {"use_dynamic_shifting": True, "shift": 3.0, "base_shift": 0.5, "max_shift": 1.15}
SIZE = {"height": 24, "width": 16, "max_sequence_length": 9}
RUNS = (
    Run("dev", "FlowMatchEulerDiscreteScheduler", DYNAMIC, options=SIZE),
    Run(
        "schnell",
        "FlowMatchEulerDiscreteScheduler",
        {"shift": 1.0},
        ("A red disc", "Blue bars, and more of them than a tokenizer takes: " + "bars " * 20),
        {**SIZE, "num_images_per_prompt": 2, "guidance_scale": 0.0, "num_inference_steps": 4},
        7,
    ),
    Run(
        "image",
        "FlowMatchEulerDiscreteScheduler",
        DYNAMIC,
        ("A red disc", "Blue bars"),
        {**SIZE, "strength": 0.55, "num_images_per_prompt": 2},
        image=True,
    ),
    Run(
        "mask",
        "FlowMatchEulerDiscreteScheduler",
        DYNAMIC,
        options={**SIZE, "strength": 0.85, "num_inference_steps": 5},
        mask=True,
    ),
    Run(
        "anew",
        "FlowMatchEulerDiscreteScheduler",
        {"shift": 3.0},
        options={**SIZE, "strength": 1.0, "num_inference_steps": 3},
        mask=True,
    ),
)


def build() -> Any:
    return diffusers.FluxPipeline(
        scheduler=diffusers.FlowMatchEulerDiscreteScheduler(**DYNAMIC),
        vae=autoencoder(shift_factor=0.1159, scaling_factor=0.3611, use_quant_conv=False, use_post_quant_conv=False),
        text_encoder=clip(),
        tokenizer=clip_tokenizer(POSITIONS),
        text_encoder_2=t5(),
        tokenizer_2=t5_tokenizer(),
        transformer=denoiser(
            "FluxTransformer2DModel", **FLUX | {"in_channels": 16, "pooled_projection_dim": 12, "guidance_embeds": True}
        ),
    )


def unpacked(latents: torch.Tensor, options: Mapping[str, Any]) -> torch.Tensor:
    return diffusers.FluxPipeline._unpack_latents(latents, options["height"], options["width"], 2)


def case() -> PipelineCase:
    classes = {"from_image": "FluxImg2ImgPipeline", "inpaint": "FluxInpaintPipeline"}
    return PipelineCase("text-to-image/flux", build, RUNS, latents=unpacked, **classes)
