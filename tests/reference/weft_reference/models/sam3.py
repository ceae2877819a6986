"""SAM 3: its vision transformer, and masks of what points, boxes and masks stand for on it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import transformers
from transformers import PreTrainedConfig

from weft_reference import stores
from weft_reference.cases import Case, Store
from weft_reference.inputs import floats
from weft_reference.models.sam2 import prompt_cases, prompted

MODELS = ("sam3_vit_model", "sam3_vision_model", "sam3_tracker")


def vit(**changes: Any) -> PreTrainedConfig:
    """Seven by seven patches, whose windows of four need padding, with positions of three by three."""
    sizes = {"hidden_size": 24, "intermediate_size": 36, "num_hidden_layers": 3, "num_attention_heads": 3, "image_size": 56}
    windows = {"patch_size": 8, "pretrain_image_size": 24, "window_size": 4, "global_attn_indexes": [1]}
    return transformers.Sam3ViTConfig(**(sizes | windows | changes))


def vision(factors: list[float] | None = None) -> PreTrainedConfig:
    sizes = [[28, 28], [14, 14], [7, 7]]
    return transformers.Sam3VisionConfig(backbone_config=vit(), fpn_hidden_size=16, scale_factors=factors, backbone_feature_sizes=sizes)


def goldens() -> Iterator[Case]:
    def one(name: str, notes: str, store: Store | None = None, **changes: Any) -> Case:
        config = vit(**changes)
        images = {"pixel_values": floats("pixels", (2, 3, config.image_size, config.image_size), -2.0, 2.0)}
        return Case(f"sam3_vit_model/{name}", "Sam3ViTModel", config, images, notes, store)

    yield one("base", "Windows and a global layer; positions repeated twice and a third.")
    other = {"hidden_act": "relu", "layer_norm_eps": 0.01, "rope_parameters": {"rope_type": "axial", "rope_theta": 100.0}}
    yield one("whole-positions", "As many positions as patches; another base, all layers in windows.", pretrain_image_size=56, global_attn_indexes=[], num_attention_heads=2, **other)
    yield one("file", "model.safetensors as save_pretrained writes it.", stores.whole)

    images = {"pixel_values": floats("pixels", (2, 3, 56, 56), -2.0, 2.0)}
    yield Case("sam3_vision_model/base", "Sam3VisionModel", vision(), images, "Maps four times and twice as large, as large, and half.")
    yield Case("sam3_vision_model/file", "Sam3VisionModel", vision([1.0, 2.0]), images, "model.safetensors as save_pretrained writes it.", stores.whole)

    def make(**decoder: Any) -> PreTrainedConfig:
        return prompted("Sam3Tracker", vision([4.0, 2.0, 1.0] if decoder else None), 56, 8, decoder)

    yield from prompt_cases("sam3_tracker", "Sam3Tracker", make, 56, 8)
