"""ControlNets of diffusion transformers: two in a batch, non-square, all tensors filled."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from weft_reference.diffusion import ModelCase
from weft_reference.inputs import floats

MODELS = ("qwen-image-controlnet", "sana-controlnet", "hunyuan-dit-2d-controlnet")
ROOTS = MODELS

PADDED = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]], np.int64)
HALF = {"conditioning_scale": np.array([0.5], np.float32)}


def goldens() -> Iterator[ModelCase]:
    yield from qwen_image()
    yield from sana()
    yield from hunyuan_dit()


def controlled(model: torch.nn.Module, inputs: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """What is added after each block, with scale, shapes and tables as the reference takes them."""
    scale = inputs.pop("conditioning_scale", torch.ones(1)).item()
    if "img_shapes" in inputs:
        shapes = [tuple(sides) for sides in inputs.pop("img_shapes").tolist()]
        inputs |= {"img_shapes": [shapes] * len(inputs["hidden_states"])}
    if "freqs_cos" in inputs:
        inputs["image_rotary_emb"] = (inputs.pop("freqs_cos"), inputs.pop("freqs_sin"))
    (samples,) = (model(**inputs, conditioning_scale=scale).controlnet_block_samples,)
    return {f"controlnet_block_samples.{index}": sample for index, sample in enumerate(samples)}


def qwen_image() -> Iterator[ModelCase]:
    def case(name: str, notes: str, more: dict[str, np.ndarray], **changes: Any) -> ModelCase:
        config = {
            "in_channels": 8,
            "num_layers": 2,
            "attention_head_dim": 8,
            "num_attention_heads": 3,
            "joint_attention_dim": 12,
            "axes_dims_rope": (2, 2, 4),
        } | changes
        inputs = {
            "hidden_states": floats("latents", (2, 15, 8), -2.0, 2.0),
            "controlnet_cond": floats("control", (2, 15, 8 + config.get("extra_condition_channels", 0)), -2.0, 2.0),
            "encoder_hidden_states": floats("text", (2, 5, 12), -2.0, 2.0),
            "timestep": np.array([1.0, 0.25], np.float32),
            "img_shapes": np.array([(1, 3, 5)], np.int64),
        } | more
        path, cls = "qwen-image-controlnet", "QwenImageControlNetModel"
        return ModelCase(f"{path}/{name}", cls, config, inputs, notes, call=controlled)

    yield case("base", "All of it added.", {})
    yield case(
        "inpainting",
        "A mask beside the control image, half of what is added, a text with padding.",
        HALF | {"encoder_hidden_states_mask": PADDED},
        extra_condition_channels=4,
    )


def sana() -> Iterator[ModelCase]:
    def case(name: str, notes: str, more: dict[str, np.ndarray], **changes: Any) -> ModelCase:
        config = {
            "in_channels": 4,
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
            "controlnet_cond": floats("control", (2, 4, 6, 8), -2.0, 2.0),
            "encoder_hidden_states": floats("text", (2, 5, 10), -2.0, 2.0),
            "timestep": np.array([981.0, 20.0], np.float32),
            "encoder_attention_mask": PADDED,
        } | more
        return ModelCase(f"sana-controlnet/{name}", "SanaControlNetModel", config, inputs, notes, call=controlled)

    yield case("base", "A text with padding.", {})
    yield case(
        "places",
        "Places, biases, weights of the norm, patches of two, half of what is added.",
        HALF,
        interpolation_scale=2,
        attention_bias=True,
        norm_elementwise_affine=True,
        patch_size=2,
        mlp_ratio=3.3,
    )


def hunyuan_dit() -> Iterator[ModelCase]:
    def case(name: str, notes: str, more: dict[str, np.ndarray], **changes: Any) -> ModelCase:
        config = {
            "num_attention_heads": 3,
            "attention_head_dim": 8,
            "in_channels": 4,
            "patch_size": 2,
            "hidden_size": 24,
            "transformer_num_layers": 6,
            "cross_attention_dim": 12,
            "cross_attention_dim_t5": 16,
            "pooled_projection_dim": 10,
            "text_len": 4,
            "text_len_t5": 5,
        } | changes
        inputs = {
            "hidden_states": floats("latents", (2, 4, 6, 8), -2.0, 2.0),
            "controlnet_cond": floats("control", (2, 4, 6, 8), -2.0, 2.0),
            "timestep": np.array([981.0, 20.0], np.float32),
            "encoder_hidden_states": floats("clip", (2, 4, 12), -2.0, 2.0),
            "text_embedding_mask": PADDED[:, 1:],
            "encoder_hidden_states_t5": floats("t5", (2, 5, 16), -2.0, 2.0),
            "text_embedding_mask_t5": PADDED[::-1].copy(),
        } | more
        patches = 48 // config["patch_size"] ** 2
        angles = np.repeat(floats("angles", (patches, 4), -3.0, 3.0), 2, axis=1)
        inputs |= {"freqs_cos": np.cos(angles), "freqs_sin": np.sin(angles)}
        path, cls = "hunyuan-dit-2d-controlnet", "HunyuanDiT2DControlNetModel"
        return ModelCase(f"{path}/{name}", cls, config, inputs, notes, call=controlled)

    sizes = {
        "image_meta_size": np.array([[512, 768, 640, 512, 0, 16], [1024, 1024, 1024, 1024, 8, 0]], np.float32),
        "style": np.zeros(2, np.int64),
    }
    yield case("base", "Sizes and a style, texts with padding.", sizes)
    yield case(
        "plain",
        "As version 1.2, three of eight blocks, half of what is added.",
        HALF,
        patch_size=1,
        use_style_cond_and_image_meta_size=False,
        transformer_num_layers=8,
        mlp_ratio=4.3637,
    )
