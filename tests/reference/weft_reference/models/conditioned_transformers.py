"""Diffusion transformers with cross-attention, a prior and adapters: two in a batch, non-square, all tensors filled."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from weft_reference.diffusion import ModelCase
from weft_reference.inputs import floats

MODELS = ("hunyuan-dit-2d", "sana-transformer-2d", "prior-transformer", "t2i-adapter")
ROOTS = MODELS


def goldens() -> Iterator[ModelCase]:
    yield from hunyuan()
    yield from sana()
    yield from prior()
    yield from adapters()


def rotated(model: torch.nn.Module, inputs: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Cosines and sines as the reference takes them, as a pair."""
    tables = (inputs.pop("freqs_cos"), inputs.pop("freqs_sin"))
    return {"sample": model(**inputs, image_rotary_emb=tables).sample}


def hunyuan() -> Iterator[ModelCase]:
    def case(name: str, notes: str, more: dict[str, np.ndarray] | None = None, **changes: Any) -> ModelCase:
        config = {
            "num_attention_heads": 3,
            "attention_head_dim": 8,
            "in_channels": 4,
            "patch_size": 2,
            "hidden_size": 24,
            "num_layers": 6,
            "cross_attention_dim": 12,
            "cross_attention_dim_t5": 16,
            "pooled_projection_dim": 10,
            "text_len": 4,
            "text_len_t5": 5,
        } | changes
        inputs = {
            "hidden_states": floats("latents", (2, 4, 6, 8), -2.0, 2.0),
            "timestep": np.array([981.0, 20.0], np.float32),
            "encoder_hidden_states": floats("clip", (2, 4, 12), -2.0, 2.0),
            "text_embedding_mask": np.array([[1, 1, 1, 1], [1, 1, 0, 0]], np.int64),
            "encoder_hidden_states_t5": floats("t5", (2, 5, 16), -2.0, 2.0),
            "text_embedding_mask_t5": np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.int64),
        } | (more or {})
        patches = 48 // config["patch_size"] ** 2
        angles = np.repeat(floats("angles", (patches, 4), -3.0, 3.0), 2, axis=1)
        inputs |= {"freqs_cos": np.cos(angles), "freqs_sin": np.sin(angles)}
        return ModelCase(f"hunyuan-dit-2d/{name}", "HunyuanDiT2DModel", config, inputs, notes, call=rotated)

    sizes = {
        "image_meta_size": np.array([[512, 768, 640, 512, 0, 16], [1024, 1024, 1024, 1024, 8, 0]], np.float32),
        "style": np.zeros(2, np.int64),
    }
    yield case("base", "Sizes and a style, texts with padding, two skip connections.", sizes)
    yield case("plain", "As version 1.2, without the variance, four blocks, wider feed-forward layers.",
               use_style_cond_and_image_meta_size=False, learn_sigma=False, num_layers=4, mlp_ratio=4.3637, patch_size=1)


def sana() -> Iterator[ModelCase]:
    def case(name: str, notes: str, more: dict[str, np.ndarray] | None = None, **changes: Any) -> ModelCase:
        config = {
            "in_channels": 4,
            "out_channels": 4,
            "num_attention_heads": 3,
            "attention_head_dim": 8,
            "num_layers": 2,
            "num_cross_attention_heads": 2,
            "cross_attention_head_dim": 12,
            "cross_attention_dim": 24,
            "caption_channels": 10,
            "sample_size": 8,
        } | changes
        inputs = {
            "hidden_states": floats("latents", (2, 4, 6, 8), -2.0, 2.0),
            "encoder_hidden_states": floats("text", (2, 5, 10), -2.0, 2.0),
            "timestep": np.array([981.0, 20.0], np.float32),
            "encoder_attention_mask": np.array([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0]], np.int64),
        } | (more or {})
        return ModelCase(f"sana-transformer-2d/{name}", "SanaTransformer2DModel", config, inputs, notes)

    yield case("base", "A text with padding.")
    yield case("sprint", "A guidance scale, queries and keys normalised, as Sprint.",
               {"guidance": np.array([0.45, 0.1], np.float32)}, guidance_embeds=True, qk_norm="rms_norm_across_heads")
    yield case("places", "Places, biases, weights of the norm, patches of two, other channels.", interpolation_scale=2,
               attention_bias=True, norm_elementwise_affine=True, patch_size=2, out_channels=6, mlp_ratio=3.3)


def predicted(model: torch.nn.Module, inputs: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """As pipelines call it, which always give a mask."""
    mask = inputs.setdefault("attention_mask", torch.ones(inputs["encoder_hidden_states"].shape[:2]))
    return {"predicted_image_embedding": model(**inputs | {"attention_mask": mask.bool()}).predicted_image_embedding}


def scaled(model: torch.nn.Module, inputs: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {"latents": model.post_process_latents(inputs["prior_latents"])}


def prior() -> Iterator[ModelCase]:
    small = {"num_attention_heads": 3, "attention_head_dim": 8, "num_layers": 2, "embedding_dim": 12, "num_embeddings": 5}

    def case(name: str, notes: str, width: int = 12, mask: bool = True, **changes: Any) -> ModelCase:
        inputs = {
            "hidden_states": floats("image", (2, 12), -2.0, 2.0),
            "timestep": np.array([981.0, 20.0], np.float32),
            "proj_embedding": floats("pooled", (2, width), -2.0, 2.0),
            "encoder_hidden_states": floats("text", (2, 5, 12), -2.0, 2.0),
        }
        if mask:
            inputs["attention_mask"] = np.array([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0]], np.int64)
        return ModelCase(f"prior-transformer/{name}", "PriorTransformer", small | changes, inputs, notes, call=predicted)

    yield case("base", "A text with padding.")
    yield case("norms", "More norms, other widths and activation, no padding.", 10, False, norm_in_type="layer", embedding_proj_norm_type="layer",
               embedding_proj_dim=10, clip_embed_dim=14, time_embed_dim=20, time_embed_act_fn="gelu")
    inputs = {"prior_latents": floats("made", (2, 12), -2.0, 2.0)}
    others = ("time_embedding", "proj_", "embedding_proj", "encoder_", "positional", "prd", "transformer_", "norm_")
    yield ModelCase("prior-transformer/latents", "PriorTransformer", small, inputs, "Mean and deviation of CLIP's embeddings.",
                    call=scaled, head="PriorTransformerLatents", without=others)


def mapped(model: torch.nn.Module, inputs: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {f"feature_maps.{index}": made for index, made in enumerate(model(inputs["x"]))}


def adapters() -> Iterator[ModelCase]:
    def case(name: str, notes: str, size: tuple[int, int], **changes: Any) -> ModelCase:
        config = {"channels": (8, 12, 16), "num_res_blocks": 2, "downscale_factor": 2} | changes
        inputs = {"x": floats("control", (2, config.get("in_channels", 3), *size), 0.0, 1.0)}
        return ModelCase(f"t2i-adapter/{name}", "T2IAdapter", config, inputs, notes, call=mapped)

    yield case("base", "Rows and columns that two halves do not make up.", (10, 14))
    yield case("xl", "As of SDXL, one channel, four widths, one of them the same.", (12, 8), adapter_type="full_adapter_xl",
               channels=(8, 8, 12, 12), in_channels=1, num_res_blocks=1)
    yield case("light", "A quarter of the width between.", (12, 18), adapter_type="light_adapter", downscale_factor=3)
