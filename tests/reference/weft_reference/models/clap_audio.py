"""CLAP's audio model: sounds with and without views of their parts, with and without the projection."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from transformers import ClapAudioConfig

from weft_reference import stores
from weft_reference.cases import Case
from weft_reference.models.clap import AUDIO, whole
from weft_reference.weights import values


def case(name: str, head: str, notes: str, frames: int = 101, store: Any = None, **changes: Any) -> Case:
    config = ClapAudioConfig(**(AUDIO | {"projection_dim": 12} | changes))
    views = 4 if config.enable_fusion else 1
    features = values(f"{name}.spectrum.w", (2, views, frames, config.num_mel_bins)) * 8 - 20
    given = {"input_features": features.astype(np.float32), "is_longer": np.array([[True], [False]])}
    return Case(f"clap-audio/{name}", f"ClapAudioModel{head}", config, given, notes, store)


def goldens() -> Iterator[Case]:
    yield case("base", "", "One view of each sound.")
    single = {"depths": [2], "num_attention_heads": [2], "hidden_size": 8}
    yield case("more-bins", "", "One stage: more than one place for frequencies.", **single)
    fusion = {"enable_fusion": True, "fusion_type": "aff_2d"}
    yield case("fused", "WithProjection", "Four views of each sound, one of which is long.", **fusion)
    other = {"projection_hidden_act": "gelu", "projection_dim": 7, "qkv_bias": False}
    yield case("projection", "WithProjection", "Another activation and width; a spectrum as wide as the picture.", 128, **other)
    both = stores.from_whole("ClapModel", whole())
    yield case("file-of-both", "WithProjection", "The audio model in a checkpoint of both.", store=both)
    yield case("file", "WithProjection", "model.safetensors as save_pretrained writes it.", store=stores.whole)
