"""X-CLIP's vision model: the frames of one video and of several."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from transformers import XCLIPVisionConfig

from weft_reference import stores
from weft_reference.cases import Case
from weft_reference.inputs import floats
from weft_reference.models.xclip import vision_sizes


def case(name: str, notes: str, videos: int = 2, store: Any = None, **changes: Any) -> Case:
    config = XCLIPVisionConfig(**vision_sizes(**changes))
    size = config.image_size
    pixels = floats("pixels", (videos * config.num_frames, config.num_channels, size, size), -2.0, 2.0)
    return Case(f"xclip-vision/{name}", "XCLIPVisionModel", config, {"pixel_values": pixels}, notes, store)


def goldens() -> Iterator[Case]:
    yield case("base", "Two videos of three frames.")
    yield case("one-video", "One video of five frames; another activation and epsilon.", 1, num_frames=5, hidden_act="gelu", layer_norm_eps=0.1)
    yield case("file", "model.safetensors as save_pretrained writes it.", store=stores.whole, num_hidden_layers=1)
