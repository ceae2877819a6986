"""Diffusion transformers whose text and image share weights, or are refined apart: two in a batch, non-square, all tensors filled."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from weft_reference.diffusion import ModelCase
from weft_reference.inputs import floats
from weft_reference.models.stable_diffusion import AUTOENCODER

MODELS = (
    *("cogview4-transformer-2d", "cogview3-plus-transformer-2d", "lumina2-transformer-2d", "z-image-transformer-2d"),
    "z-image",
)
ROOTS = MODELS


def goldens() -> Iterator[ModelCase]:
    yield from cogview()
    yield from lumina2()
    yield from z_image()
    text = {"model_type": "qwen3", "hidden_size": 12, "intermediate_size": 20, "num_hidden_layers": 2, "num_attention_heads": 2}
    index = {"_class_name": "ZImagePipeline", "text_encoder": text, "vae": AUTOENCODER}
    denoiser = next(z_image())
    yield replace(denoiser, path="z-image/base", notes="The denoiser of a pipeline.", head="ZImagePipeline", within=("transformer", index))


def cogview() -> Iterator[ModelCase]:
    small = {
        "num_layers": 2,
        "attention_head_dim": 8,
        "num_attention_heads": 3,
        "text_embed_dim": 12,
        "time_embed_dim": 20,
        "condition_dim": 6,
        "in_channels": 4,
        "out_channels": 4,
    }

    def case(path: str, cls: str, notes: str, size: tuple[int, int], **changes: Any) -> ModelCase:
        inputs = {
            "hidden_states": floats("latents", (2, 4, *size), -2.0, 2.0),
            "encoder_hidden_states": floats("text", (2, 5, 12), -2.0, 2.0),
            "timestep": np.array([981.0, 20.5], np.float32),
            "original_size": np.array([[512, 768], [1024, 1024]], np.float32),
            "target_size": np.array([[640, 512], [1024, 1024]], np.float32),
            "crop_coords": np.array([[0, 16], [8, 0]], np.float32),
        }
        return ModelCase(path, cls, small | changes, inputs, notes)

    four = ("cogview4-transformer-2d", "CogView4Transformer2DModel")
    yield case(f"{four[0]}/base", four[1], "Rows and columns stretched to a square.", (6, 10))
    yield case(f"{four[0]}/narrow", four[1], "Fewer rows than of the image, other channels, patches of one.", (7, 4),
               rope_axes_dim=(5, 9), patch_size=1, out_channels=6)
    three = ("cogview3-plus-transformer-2d", "CogView3PlusTransformer2DModel")
    yield case(f"{three[0]}/base", three[1], "Places of rows and columns.", (6, 10), pos_embed_max_size=8)
    yield case(f"{three[0]}/pixels", three[1], "Patches of one position, as many as there may be.", (7, 4),
               pos_embed_max_size=7, patch_size=1, out_channels=6)


def lumina2() -> Iterator[ModelCase]:
    small = {
        "in_channels": 4,
        "hidden_size": 24,
        "num_layers": 2,
        "num_refiner_layers": 1,
        "num_attention_heads": 4,
        "num_kv_heads": 2,
        "multiple_of": 10,
        "axes_dim_rope": (2, 2, 2),
        "axes_lens": (20, 20, 20),
        "cap_feat_dim": 12,
    }

    def case(name: str, notes: str, mask: list[list[int]], size: tuple[int, int] = (6, 10), **changes: Any) -> ModelCase:
        inputs = {
            "hidden_states": floats("latents", (2, 4, *size), -2.0, 2.0),
            "timestep": np.array([0.5, 0.25], np.float32),
            "encoder_hidden_states": floats("text", (2, 5, 12), -2.0, 2.0),
            "encoder_attention_mask": np.array(mask, np.int64),
        }
        return ModelCase(f"lumina2-transformer-2d/{name}", "Lumina2Transformer2DModel", small | changes, inputs, notes)

    whole = [[1] * 5] * 2
    yield case("base", "A text with padding, grouped heads.", [[1] * 5, [1, 1, 1, 0, 0]])
    yield case("whole", "Texts of one length, more blocks before, other channels.", whole, num_refiner_layers=2, out_channels=6)
    yield case("wide", "Wider feed-forward layers, patches of one position, as many heads.", whole, (3, 4),
               ffn_dim_multiplier=1.3, patch_size=1, num_kv_heads=4, norm_eps=1e-3)


def listed(model: torch.nn.Module, inputs: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Latents and texts as the reference takes them, lists of which each has a length of its own."""
    sizes = {"patch_size": model.config.all_patch_size[0], "f_patch_size": model.config.all_f_patch_size[0]}
    features = inputs["cap_feats"]
    mask = inputs.get("cap_mask", torch.ones(features.shape[:2], dtype=torch.long))
    texts = [text[: int(seen.sum())] for text, seen in zip(features, mask, strict=True)]
    return {"sample": torch.stack(model(list(inputs["x"]), inputs["t"], texts, **sizes).sample)}


def z_image() -> Iterator[ModelCase]:
    small = {
        "in_channels": 4,
        "dim": 24,
        "n_layers": 2,
        "n_refiner_layers": 1,
        "n_heads": 3,
        "n_kv_heads": 3,
        "cap_feat_dim": 12,
        "axes_dims": [4, 2, 2],
        "axes_lens": [128, 32, 32],
    }

    def case(name: str, notes: str, words: tuple[int, int], size: tuple[int, int, int] = (1, 8, 12), **changes: Any) -> ModelCase:
        longest = max(words)
        inputs = {
            "x": floats("latents", (2, 4, *size), -2.0, 2.0),
            "t": np.array([0.5, 0.25], np.float32),
            "cap_feats": floats("text", (2, longest, 12), -2.0, 2.0),
        }
        if words[0] != words[1]:
            inputs["cap_mask"] = (np.arange(longest)[None] < np.array(words)[:, None]).astype(np.int64)
        return ModelCase(f"z-image-transformer-2d/{name}", "ZImageTransformer2DModel", small | changes, inputs, notes, call=listed)

    yield case("base", "Texts of one length; text and image padded.", (5, 5))
    yield case("lengths", "Texts of several lengths, one beyond the multiple.", (40, 7), (1, 6, 10))
    yield case("even", "A text and an image that need no padding, two frames in each patch, no norm of queries and keys.", (32, 32),
               (4, 8, 8), all_f_patch_size=(2,), qk_norm=False, n_refiner_layers=2, t_scale=500.0, rope_theta=100.0)
