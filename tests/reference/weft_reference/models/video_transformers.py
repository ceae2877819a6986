"""Diffusion transformers over latents of several frames: two in a batch, non-square, all tensors filled."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from weft_reference.diffusion import ModelCase
from weft_reference.inputs import floats

MODELS = ("wan-transformer-3d",)
ROOTS = MODELS


def goldens() -> Iterator[ModelCase]:
    yield from wan()


def wan() -> Iterator[ModelCase]:
    def case(name: str, notes: str, size: tuple[int, int, int], words: int = 5, **changes: Any) -> ModelCase:
        config = {
            "num_attention_heads": 2,
            "attention_head_dim": 12,
            "in_channels": 4,
            "out_channels": 4,
            "text_dim": 6,
            "freq_dim": 16,
            "ffn_dim": 20,
            "num_layers": 2,
        } | changes
        inputs = {
            "hidden_states": floats("latents", (2, 4, *size), -2.0, 2.0),
            "timestep": np.array([981.0, 20.5], np.float32),
            "encoder_hidden_states": floats("text", (2, words, 6), -2.0, 2.0),
        }
        if config.get("image_dim"):
            inputs["encoder_hidden_states_image"] = floats("image", (2, 3, config["image_dim"]), -2.0, 2.0)
        return ModelCase(f"wan-transformer-3d/{name}", "WanTransformer3DModel", config, inputs, notes)

    yield case("base", "Three frames, rows and columns in patches of two.", (3, 4, 6))
    yield case("frames", "Frames in patches of two, no norm before cross-attention, other channels.", (4, 2, 3),
               patch_size=(2, 1, 1), cross_attn_norm=False, out_channels=6, attention_head_dim=10)
    yield case("image", "An image before the text of 512 tokens.", (2, 4, 4), 512, image_dim=10, added_kv_proj_dim=24)
