"""Vision transformers that differ from ViT by a few words: with and without a class token, images of other sizes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import transformers

from weft_reference import stores
from weft_reference.cases import Case, Store
from weft_reference.inputs import floats
from weft_reference.models.deit import TINY

KIN = {"vit_msn": "ViTMSN", "ijepa": "IJepa"}
MODELS = tuple(KIN)
ROOTS = MODELS


def goldens() -> Iterator[Case]:
    for model, prefix in KIN.items():
        yield from kin(model, prefix)


def kin(model: str, prefix: str) -> Iterator[Case]:
    def case(name: str, head: str, notes: str, store: Store | None = None, **changes: Any) -> Case:
        pixels = {"pixel_values": floats("pixels", (2, 3, 12, 12), -2.0, 2.0)}
        sizes = {key: value for key, value in TINY.items() if key != "encoder_stride"}
        config = getattr(transformers, f"{prefix}Config")(**(sizes | changes))
        return Case(f"{model}/{name}", prefix + head, config, pixels, notes, store)

    classes = "ForImageClassification"
    yield case("base", "Model", "Two images.")
    yield case("image-classification", classes, "Three classes.", num_labels=3)
    yield case("no-bias", classes, "No biases of queries, keys and values.", num_labels=3, qkv_bias=False)
    yield case("file", classes, "model.safetensors as save_pretrained writes it.", stores.whole, num_hidden_layers=1)
