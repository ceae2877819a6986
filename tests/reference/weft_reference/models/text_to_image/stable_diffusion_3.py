"""Stable Diffusion 3: two text encoders of CLIP side by side, and T5 behind them, which may be left out."""

from __future__ import annotations

from functools import partial
from typing import Any

from weft_reference.byte_pairs import clip_tokenizer
from weft_reference.diffusion import diffusers
from weft_reference.models.diffusion_transformers import SD3
from weft_reference.models.text_to_image.components import POSITIONS, autoencoder, clip, denoiser, t5, t5_tokenizer
from weft_reference.models.text_to_image.pipelines import PipelineCase, Run

SIZE = {"height": 24, "width": 16, "max_sequence_length": 9}
RUNS = (
    Run("shift", "FlowMatchEulerDiscreteScheduler", {"shift": 3.0}, options=SIZE),
    Run(
        "dynamic",
        "FlowMatchEulerDiscreteScheduler",
        {"use_dynamic_shifting": True},
        ("A red disc", "Blue bars, and more of them than a tokenizer takes: " + "bars " * 20),
        {"max_sequence_length": 7, "negative_prompt": "rain", "num_images_per_prompt": 2, "guidance_scale": 3.0, "num_inference_steps": 5},
        7,
    ),
    Run(
        "image",
        "FlowMatchEulerDiscreteScheduler",
        {"shift": 3.0},
        ("A red disc", "Blue bars"),
        {**SIZE, "strength": 0.55, "num_images_per_prompt": 2},
        image=True,
    ),
)
INPAINTING = (
    Run(
        "mask",
        "FlowMatchEulerDiscreteScheduler",
        {"shift": 3.0},
        options={**SIZE, "strength": 0.85, "num_inference_steps": 4},
        mask=True,
    ),
    Run(
        "anew",
        "FlowMatchEulerDiscreteScheduler",
        {"shift": 3.0},
        options={**SIZE, "strength": 1.0, "num_inference_steps": 2},
        mask=True,
    ),
)
WITHOUT = (Run("without", "FlowMatchEulerDiscreteScheduler", {"shift": 3.0}, options={**SIZE, "num_inference_steps": 3}),)


def build(long_text: bool, channels: int = 4) -> Any:
    config = SD3 | {"in_channels": channels, "out_channels": channels}
    config |= {"sample_size": 8, "pos_embed_max_size": 13, "joint_attention_dim": 24, "pooled_projection_dim": 18}
    return diffusers.StableDiffusion3Pipeline(
        transformer=denoiser("SD3Transformer2DModel", **config | ({} if long_text else {"num_layers": 1})),
        scheduler=diffusers.FlowMatchEulerDiscreteScheduler(shift=3.0),
        vae=autoencoder(
            latent_channels=channels,
            shift_factor=0.0609,
            scaling_factor=1.5305,
            use_quant_conv=False,
            use_post_quant_conv=False,
        ),
        text_encoder=clip(projected=True),
        tokenizer=clip_tokenizer(POSITIONS),
        text_encoder_2=clip(projected=True, hidden_size=8, projection_dim=8, hidden_act="gelu"),
        tokenizer_2=clip_tokenizer(POSITIONS, pad_token="!"),
        text_encoder_3=t5(d_model=24) if long_text else None,
        tokenizer_3=t5_tokenizer() if long_text else None,
    )


def cases() -> list[PipelineCase]:
    path = "text-to-image/stable-diffusion-3"
    return [
        PipelineCase(path, partial(build, True), RUNS, from_image="StableDiffusion3Img2ImgPipeline"),
        PipelineCase(f"{path}-without-t5", partial(build, False), WITHOUT),
        # The reference's pipeline takes latents of 16 channels alone.
        PipelineCase(
            f"{path}-inpainting",
            partial(build, False, 16),
            INPAINTING,
            inpaint="StableDiffusion3InpaintPipeline",
        ),
    ]
