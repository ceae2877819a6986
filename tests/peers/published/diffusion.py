"""Diffusion: the shapes of published checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from published.made import Checkpoint, floats


def unet() -> Checkpoint:
    """stable-diffusion-v1-5/stable-diffusion-v1-5: an image of 512 px, guided, so that two latents go through."""
    sizes = {"sample_size": 64, "cross_attention_dim": 768}
    inputs = {
        "sample": floats(2, 4, 64, 64),
        "timestep": np.full(2, 500, np.float32),
        "encoder_hidden_states": floats(2, 77, 768),
    }
    return Checkpoint("UNet2DConditionModel", sizes, inputs)


def vae() -> Checkpoint:
    """The autoencoder of stable-diffusion-v1-5/stable-diffusion-v1-5: an image of 512 px becomes a latent and is an image again."""
    sizes = {
        "block_out_channels": [128, 256, 512, 512],
        "down_block_types": ["DownEncoderBlock2D"] * 4,
        "up_block_types": ["UpDecoderBlock2D"] * 4,
        "layers_per_block": 2,
        "latent_channels": 4,
        "sample_size": 512,
    }
    return Checkpoint("AutoencoderKL", sizes, {"sample": floats(1, 3, 512, 512)})


CHECKPOINTS: Mapping[str, Callable[[], Checkpoint]] = {
    "unet": unet,
    "vae": vae,
}
