"""DiT: images of classes, which stand where other pipelines have texts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from weft_reference.diffusion import diffusers
from weft_reference.models.diffusion_transformers import BLOCKS
from weft_reference.models.text_to_image.components import autoencoder, denoiser
from weft_reference.models.text_to_image.pipelines import PipelineCase, Run

LABELS = {"0": "tench, Tinca tinca", "7": "cock", "1000": "none"}
# The reference's pipeline gives schedulers no generator, so that those which draw noise are not of its seed.
RUNS = (
    Run("ddim", "DDIMScheduler", {"clip_sample": False}, prompts=("Tinca tinca", "7")),
    Run("unguided", "DPMSolverMultistepScheduler", prompts=("tench",), options={"guidance_scale": 1.0, "num_inference_steps": 4}),
)


def build() -> Any:
    config = BLOCKS | {"num_attention_heads": 2, "num_embeds_ada_norm": 1000, "out_channels": 8}
    pipeline = diffusers.DiTPipeline(
        transformer=denoiser("DiTTransformer2DModel", **config),
        vae=autoencoder(),
        scheduler=diffusers.DDIMScheduler(),
        id2label=LABELS,
    )
    # As published files have them.
    pipeline.register_to_config(id2label=LABELS)
    return pipeline


def classes(pipeline: Any, run: Run) -> dict[str, Any]:
    return {"class_labels": [int(name) if name.isdigit() else pipeline.labels[name] for name in run.prompts]}


def first_half(latents: torch.Tensor, options: Mapping[str, Any]) -> torch.Tensor:
    """With guidance latents stand there twice."""
    return latents.chunk(2)[0] if options.get("guidance_scale", 4.0) > 1 else latents


def case() -> PipelineCase:
    return PipelineCase("text-to-image/dit", build, RUNS, call=classes, latents=first_half)
