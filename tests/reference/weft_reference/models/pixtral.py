"""Pixtral's vision model: images of native sizes in frames of one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from transformers import PixtralVisionConfig

from weft_reference import stores
from weft_reference.cases import Case, Store
from weft_reference.inputs import floats
from weft_reference.models.vision_language.native import PIXTRAL

MODELS = ROOTS = ("pixtral",)


def case(name: str, notes: str, sizes: list[list[int]], store: Store | None = None, **changes: Any) -> Case:
    config = PixtralVisionConfig(**{key: value for key, value in (PIXTRAL | changes).items() if key != "model_type"})
    shape = (len(sizes), config.num_channels, max(size[0] for size in sizes), max(size[1] for size in sizes))
    inputs = {"pixel_values": floats("pixels", shape, -2.0, 2.0), "image_sizes": np.array(sizes, np.int64)}
    return Case(f"pixtral/{name}", "PixtralVisionModel", config, inputs, notes, store)


def goldens() -> Iterator[Case]:
    yield case("base", "Two images, one of them padded.", [[8, 12], [16, 8]])
    yield case("odd-sizes", "Sizes are no multiples of a patch's.", [[9, 14], [18, 5], [7, 7]])
    yield case("wide-heads", "Six pairs a head, another activation function.", [[8, 12]], hidden_size=24, hidden_act="gelu")
    yield case("file", "model.safetensors as save_pretrained writes it.", [[8, 12], [4, 8]], store=stores.whole)
