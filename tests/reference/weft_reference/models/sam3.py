"""SAM 3: its vision transformer, and masks of what points, boxes and masks stand for on it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import transformers
from transformers import PreTrainedConfig

from weft_reference import stores
from weft_reference.cases import Case, Store
from weft_reference.inputs import floats, text_batch
from weft_reference.models.sam2 import prompt_cases, prompted

MODELS = ("sam3_vit_model", "sam3_vision_model", "sam3_tracker", "sam3")


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
    yield from concepts()


def concept(**changes: Any) -> PreTrainedConfig:
    """Small detectors on the small image encoder, and a small CLIP text model."""
    text = {"vocab_size": 99, "hidden_size": 12, "intermediate_size": 18, "num_hidden_layers": 2, "num_attention_heads": 3, "max_position_embeddings": 16}
    heads = {"hidden_size": 16, "num_attention_heads": 2}
    layers = heads | {"num_layers": 2, "intermediate_size": 20}
    return transformers.Sam3Config(
        vision_config=vision(changes.pop("factors", None)),
        text_config=transformers.CLIPTextConfig(**(text | changes.pop("text", {}))),
        geometry_encoder_config=layers | {"roi_size": 3},
        detr_encoder_config=layers | changes.pop("encoder", {}),
        detr_decoder_config=layers | {"num_queries": 5} | changes.pop("decoder", {}),
        mask_decoder_config=heads | changes.pop("masks", {}),
    )


def concepts() -> Iterator[Case]:
    """What a text names in images."""

    def one(name: str, notes: str, store: Store | None = None, lengths: tuple[int, int] = (6, 4), **changes: Any) -> Case:
        inputs = text_batch(99, lengths, "right", key=name)
        del inputs["token_type_ids"]
        inputs["pixel_values"] = floats(f"pixels.{name}", (2, 3, 56, 56), -2.0, 2.0)
        return Case(f"sam3/{name}", "Sam3Model", concept(**changes), inputs, notes, store)

    yield one("base", "Two texts, the second padded.")
    other = {"encoder": {"num_layers": 1, "hidden_act": "gelu"}, "decoder": {"num_layers": 3, "num_queries": 3, "hidden_act": "gelu", "num_attention_heads": 4}}
    yield one("other", "Other layers, heads and functions; maps as large and twice as large.", factors=[2.0, 1.0, 0.5], masks={"num_upsampling_stages": 1}, text={"hidden_act": "gelu"}, lengths=(5, 5), **other)
    yield one("file", "model.safetensors as save_pretrained writes it.", stores.whole)
