"""PixArt: T5 with a mask, sizes as trained for each aspect ratio, and a variance that is dropped."""

from __future__ import annotations

from functools import partial
from typing import Any

from weft_reference.diffusion import diffusers
from weft_reference.models.diffusion_transformers import BLOCKS
from weft_reference.models.schedulers import STABLE_DIFFUSION
from weft_reference.models.text_to_image.components import autoencoder, denoiser, t5, t5_tokenizer
from weft_reference.models.text_to_image.pipelines import PipelineCase, Run

SIZE = {"height": 24, "width": 16, "max_sequence_length": 9, "use_resolution_binning": False}
ALPHA = (
    Run("solver", "DPMSolverMultistepScheduler", {}, ("  A red DISC ",), SIZE),
    Run(
        "negative",
        "DDIMScheduler",
        {"clip_sample": False},
        ("A red disc", "Blue bars, and more of them than a tokenizer takes: " + "bars " * 20),
        {**SIZE, "negative_prompt": "rain", "num_images_per_prompt": 2, "num_inference_steps": 5},
        7,
    ),
)
SIGMA = (
    Run("binned", "DPMSolverMultistepScheduler", {}, ("A red disc",), options={"height": 90, "width": 120, "max_sequence_length": 9, "num_inference_steps": 2}),
)


def build(name: str, blocks: int, **config: Any) -> Any:
    channels = (4,) * blocks
    return getattr(diffusers, name)(
        tokenizer=t5_tokenizer(),
        text_encoder=t5(),
        vae=autoencoder(
            block_out_channels=channels,
            down_block_types=("DownEncoderBlock2D",) * blocks,
            up_block_types=("UpDecoderBlock2D",) * blocks,
        ),
        transformer=denoiser("PixArtTransformer2DModel", **BLOCKS | {"cross_attention_dim": 24, "caption_channels": 12} | config),
        scheduler=diffusers.DPMSolverMultistepScheduler(**STABLE_DIFFUSION),
    )


def cases() -> list[PipelineCase]:
    alpha = partial(build, "PixArtAlphaPipeline", 2, sample_size=128)
    sigma = partial(build, "PixArtSigmaPipeline", 4, sample_size=32, num_layers=1)
    path = "text-to-image/pixart"
    return [
        PipelineCase(f"{path}-alpha", alpha, ALPHA, given=STABLE_DIFFUSION),
        PipelineCase(f"{path}-sigma", sigma, SIGMA, given=STABLE_DIFFUSION),
    ]
