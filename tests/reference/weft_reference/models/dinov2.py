"""DINOv2: images of the configuration's size and of others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from transformers import Dinov2Config

from weft_reference import stores
from weft_reference.cases import Case, Store
from weft_reference.inputs import floats

TINY = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "mlp_ratio": 2, "image_size": 12, "patch_size": 4}


def case(
    name: str, head: str, notes: str, size: tuple[int, int] = (12, 12), store: Store | None = None, **changes: Any
) -> Case:
    pixels = {"pixel_values": floats("pixels", (2, 3, *size), -2.0, 2.0)}
    return Case(f"dinov2/{name}", f"Dinov2{head}", Dinov2Config(**(TINY | changes)), pixels, notes, store)


def goldens() -> Iterator[Case]:
    yield case("base", "Model", "Two images of the configuration's size.")
    yield case("larger", "Model", "Larger images that are not square: positions are resized.", (18, 27))
    yield case("smaller", "Model", "Smaller images, no bias on queries, keys and values.", (8, 9), qkv_bias=False)
    yield case("image-classification", "ForImageClassification", "Three classes, by class token and patches.", num_labels=3)
    yield case(
        "file",
        "ForImageClassification",
        "model.safetensors as save_pretrained writes it, under the names of published checkpoints.",
        (16, 12),
        stores.whole,
        num_hidden_layers=1,
    )
