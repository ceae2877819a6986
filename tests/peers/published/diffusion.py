"""Diffusion: the shapes of published checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import torch

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


def sdxl_unet() -> Checkpoint:
    """stabilityai/stable-diffusion-xl-base-1.0: a latent of an image of 1024 px."""
    sizes = {
        "sample_size": 128,
        "block_out_channels": [320, 640, 1280],
        "down_block_types": ["DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"],
        "up_block_types": ["CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"],
        "layers_per_block": 2,
        "transformer_layers_per_block": [1, 2, 10],
        "attention_head_dim": [5, 10, 20],
        "cross_attention_dim": 2048,
        "use_linear_projection": True,
        "addition_embed_type": "text_time",
        "addition_time_embed_dim": 256,
        "projection_class_embeddings_input_dim": 2816,
    }
    inputs = {
        "sample": floats(1, 4, 128, 128),
        "timestep": np.full(1, 500, np.float32),
        "encoder_hidden_states": floats(1, 77, 2048),
        "text_embeds": floats(1, 1280),
        "time_ids": np.array([[1024, 1024, 0, 0, 1024, 1024]], np.float32),
    }
    return Checkpoint("UNet2DConditionModel", sizes, inputs, torch.bfloat16)


def z_image() -> Checkpoint:
    """Tongyi-MAI/Z-Image-Turbo, 8 of its 30 layers: a latent of an image of 512 px and a text of 64 tokens."""
    sizes = {"n_layers": 8, "n_refiner_layers": 2, "dim": 3840, "n_heads": 30, "n_kv_heads": 30, "cap_feat_dim": 2560}
    inputs = {"x": floats(1, 16, 1, 64, 64), "t": np.full(1, 0.5, np.float32), "cap_feats": floats(1, 64, 2560)}
    return Checkpoint("ZImageTransformer2DModel", sizes, inputs, torch.bfloat16)


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
    "sdxl_unet": sdxl_unet,
    "z_image": z_image,
    "vae": vae,
}
