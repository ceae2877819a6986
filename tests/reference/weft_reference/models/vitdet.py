"""ViTDet, a backbone, and ViTMatte on it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import transformers
from transformers import PreTrainedConfig

from weft_reference import stores
from weft_reference.backbones import backbone
from weft_reference.cases import Case, Store
from weft_reference.inputs import floats
from weft_reference.vision_tasks import VisionTaskCase
from weft_reference.vision_tasks.made import image_matting

MODELS = ("vitdet", "vitmatte")
SIZES = {"hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 2, "mlp_ratio": 2, "patch_size": 8, "image_size": 48, "pretrain_image_size": 32}
WINDOWS = {"window_size": 4, "window_block_indices": [0, 2], "residual_block_indices": [1, 2], "use_relative_position_embeddings": True}


def goldens() -> Iterator[Case | VisionTaskCase]:
    yield from vitdet()
    yield from vitmatte()


def vitdet() -> Iterator[Case]:
    def one(name: str, notes: str, store: Store | None = None, **changes: Any) -> Case:
        config = transformers.VitDetConfig(**(SIZES | changes))
        size = config.image_size if isinstance(config.image_size, (list, tuple)) else [config.image_size] * 2
        return Case(f"vitdet/{name}", "VitDetModel", config, {"pixel_values": floats("pixels", (2, 3, *size), -2.0, 2.0)}, notes, store)

    yield one("base", "All attention is global; position embeddings are interpolated.")
    yield one("windows", "Windows that need padding, relative positions, residual blocks.", **WINDOWS)
    plain = {"qkv_bias": False, "hidden_act": "relu"}
    yield one("wide", "Images wider than high; other functions, no biases.", **(WINDOWS | plain | {"image_size": [32, 56]}))
    yield one("file", "model.safetensors as save_pretrained writes it.", stores.whole, **WINDOWS)
    yield from backbone("vitdet", "VitDet", SIZES | WINDOWS, (48, 48))


def matting(**changes: Any) -> PreTrainedConfig:
    sizes = SIZES | WINDOWS | {"num_channels": 4, "patch_size": 16, "image_size": 64, "window_size": 3, "out_features": ["stage3"]}
    maps = {"convstream_hidden_sizes": [4, 6, 8], "fusion_hidden_sizes": [12, 10, 8, 6]}
    return transformers.VitMatteConfig(backbone_config=transformers.VitDetConfig(**sizes), hidden_size=16, **(maps | changes))


def vitmatte() -> Iterator[Case | VisionTaskCase]:
    def one(name: str, notes: str, store: Store | None = None, **changes: Any) -> Case:
        pixels = {"pixel_values": floats("pixels", (2, 4, 64, 64), -2.0, 2.0)}
        return Case(f"vitmatte/{name}", "VitMatteForImageMatting", matting(**changes), pixels, notes, store)

    yield one("matting", "Four maps of details.")
    yield one("epsilon", "Another epsilon of batch normalisation.", batch_norm_eps=0.1)
    yield one("file", "model.safetensors as save_pretrained writes it.", stores.whole)
    yield image_matting("vitmatte", "VitMatteForImageMatting", matting(), transformers.VitMatteImageProcessorPil())
