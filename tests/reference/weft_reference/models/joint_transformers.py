"""Diffusion transformers in which an image sees a text, and one over audio: two in a batch, all tensors filled."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from weft_reference.diffusion import ModelCase
from weft_reference.inputs import floats

MODELS = (
    *("prx-transformer-2d", "ernie-image-transformer-2d", "stable-audio-dit", "hunyuan-image-transformer-2d"),
    *("krea2-transformer-2d",),
)
ROOTS = MODELS

PADDED = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]], np.int64)


def goldens() -> Iterator[ModelCase]:
    yield from prx()
    yield from ernie()
    yield from stable_audio()
    yield from hunyuan_image()
    yield from krea2()


def prx() -> Iterator[ModelCase]:
    def case(name: str, notes: str, mask: bool = False, **changes: Any) -> ModelCase:
        config = {
            "in_channels": 4,
            "context_in_dim": 6,
            "hidden_size": 24,
            "num_heads": 3,
            "depth": 2,
            "axes_dim": [4, 4],
        } | changes
        inputs = {
            "hidden_states": floats("latents", (2, 4, 4, 6), -2.0, 2.0),
            "timestep": np.array([0.5, 0.03125], np.float32),
            "encoder_hidden_states": floats("text", (2, 5, 6), -2.0, 2.0),
        } | ({"attention_mask": PADDED} if mask else {})
        return ModelCase(f"prx-transformer-2d/{name}", "PRXTransformer2DModel", config, inputs, notes)

    yield case("base", "A text with padding.", True)
    yield case(
        "sizes",
        "Height and width, a narrow entrance, other frequencies.",
        resolution_embeds=True,
        bottleneck_size=5,
        patch_size=1,
        theta=100,
        time_factor=500.0,
        mlp_ratio=2.3,
    )
    yield case(
        "wide", "Turns of the width that is the default.", True, axes_dim=None, hidden_size=64, num_heads=1, depth=1
    )


def ernie() -> Iterator[ModelCase]:
    def case(name: str, notes: str, **changes: Any) -> ModelCase:
        config = {
            "hidden_size": 24,
            "num_attention_heads": 2,
            "num_layers": 2,
            "ffn_hidden_size": 20,
            "in_channels": 4,
            "out_channels": 4,
            "text_in_dim": 6,
            "rope_axes_dim": (4, 4, 4),
        } | changes
        inputs = {
            "hidden_states": floats("latents", (2, 4, 4, 6), -2.0, 2.0),
            "timestep": np.array([981.0, 20.5], np.float32),
            "text_bth": floats("text", (2, 5, config["text_in_dim"]), -2.0, 2.0),
            "text_lens": np.array([5, 3]),
        }
        return ModelCase(f"ernie-image-transformer-2d/{name}", "ErnieImageTransformer2DModel", config, inputs, notes)

    yield case("base", "A text with padding.")
    yield case(
        "patches",
        "Patches of two, a text of the blocks' width, other channels.",
        patch_size=2,
        text_in_dim=24,
        out_channels=3,
        rope_theta=100,
        eps=1e-4,
    )


def turned(model: torch.nn.Module, inputs: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Cosines and sines as the reference takes them, as a pair."""
    tables = (inputs.pop("freqs_cos"), inputs.pop("freqs_sin"))
    return {"sample": model(**inputs, rotary_embedding=tables).sample}


def stable_audio() -> Iterator[ModelCase]:
    def case(name: str, notes: str, frames: int, **changes: Any) -> ModelCase:
        config = {
            "in_channels": 4,
            "out_channels": 4,
            "num_layers": 2,
            "attention_head_dim": 8,
            "num_attention_heads": 4,
            "num_key_value_attention_heads": 2,
            "cross_attention_dim": 16,
            "time_proj_dim": 10,
            "global_states_input_dim": 12,
            "cross_attention_input_dim": 16,
        } | changes
        angles = np.tile(floats("angles", (frames + 1, 2), -3.0, 3.0), (1, 2))
        inputs = {
            "hidden_states": floats("latents", (2, 4, frames), -2.0, 2.0),
            "timestep": np.array([1.5, 0.25], np.float32),
            "encoder_hidden_states": floats("text", (2, 5, config["cross_attention_input_dim"]), -2.0, 2.0),
            "global_hidden_states": floats("durations", (2, 1, 12), -2.0, 2.0),
            "freqs_cos": np.cos(angles),
            "freqs_sin": np.sin(angles),
        }
        return ModelCase(f"stable-audio-dit/{name}", "StableAudioDiTModel", config, inputs, notes, call=turned)

    yield case("base", "Grouped heads of cross-attention.", 7)
    yield case(
        "other",
        "Other channels, as many heads, another width of texts.",
        4,
        out_channels=5,
        num_key_value_attention_heads=4,
        cross_attention_input_dim=6,
        num_layers=1,
    )


def hunyuan_image() -> Iterator[ModelCase]:
    def case(name: str, notes: str, more: dict[str, np.ndarray] | None = None, **changes: Any) -> ModelCase:
        config = {
            "in_channels": 4,
            "out_channels": 4,
            "num_attention_heads": 2,
            "attention_head_dim": 8,
            "num_layers": 1,
            "num_single_layers": 2,
            "num_refiner_layers": 1,
            "text_embed_dim": 6,
            "rope_axes_dim": (4, 4),
        } | changes
        inputs = {
            "hidden_states": floats("latents", (2, 4, 4, 6), -2.0, 2.0),
            "timestep": np.array([981.0, 20.0], np.float32),
            "encoder_hidden_states": floats("text", (2, 5, 6), -2.0, 2.0),
            "encoder_attention_mask": PADDED,
        } | (more or {})
        return ModelCase(
            f"hunyuan-image-transformer-2d/{name}", "HunyuanImageTransformer2DModel", config, inputs, notes
        )

    yield case("base", "A text with padding.")
    glyphs = {
        "encoder_hidden_states_2": floats("glyphs", (2, 3, 10), -2.0, 2.0),
        "encoder_attention_mask_2": np.array([[1, 0, 0], [1, 1, 1]], np.int64),
    }
    distilled = {"timestep_r": np.array([900.0, 0.0], np.float32), "guidance": np.array([3250.0, 1000.0], np.float32)}
    yield case(
        "distilled",
        "Letters, the timestep that a step leads to, a guidance scale, patches of two.",
        glyphs | distilled,
        text_embed_2_dim=10,
        use_meanflow=True,
        guidance_embeds=True,
        patch_size=(2, 2),
        mlp_ratio=2.5,
        num_layers=2,
    )


def krea2() -> Iterator[ModelCase]:
    def case(name: str, notes: str, mask: bool = False, **changes: Any) -> ModelCase:
        config = {
            "in_channels": 4,
            "num_layers": 2,
            "attention_head_dim": 8,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "intermediate_size": 20,
            "timestep_embed_dim": 16,
            "text_hidden_dim": 12,
            "num_text_layers": 3,
            "text_num_attention_heads": 3,
            "text_num_key_value_heads": 3,
            "text_intermediate_size": 10,
            "num_layerwise_text_blocks": 1,
            "num_refiner_text_blocks": 1,
            "axes_dims_rope": (4, 2, 2),
        } | changes
        places = [(word, 0, 0) for word in range(5)] + [(0, row, column) for row in range(2) for column in range(3)]
        inputs = {
            "hidden_states": floats("latents", (2, 6, 4), -2.0, 2.0),
            "encoder_hidden_states": floats("text", (2, 5, config["num_text_layers"], 12), -2.0, 2.0),
            "timestep": np.array([0.5, 0.03125], np.float32),
            "position_ids": np.array(places, np.int64),
        } | ({"encoder_attention_mask": PADDED} if mask else {})
        return ModelCase(f"krea2-transformer-2d/{name}", "Krea2Transformer2DModel", config, inputs, notes, call=masked)

    yield case("base", "A text with padding, grouped heads.", True)
    yield case(
        "more",
        "More blocks of the text, whose heads are grouped, other frequencies.",
        num_layerwise_text_blocks=2,
        num_refiner_text_blocks=2,
        text_num_attention_heads=2,
        text_num_key_value_heads=1,
        rope_theta=50.0,
        norm_eps=1e-3,
    )


def masked(model: torch.nn.Module, inputs: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """With a mask of truth values, as pipelines give it."""
    if "encoder_attention_mask" in inputs:
        inputs["encoder_attention_mask"] = inputs["encoder_attention_mask"].bool()
    return {"sample": model(**inputs).sample}
