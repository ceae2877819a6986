"""Vision transformers that differ from ViT by a few words: with and without a class token, images of other sizes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import transformers

from weft_reference import stores
from weft_reference.cases import Case, Store
from weft_reference.inputs import floats
from weft_reference.models.deit import TINY
from weft_reference.tasks import Call
from weft_reference.vision_tasks import VisionTaskCase

KIN = {"vit_msn": "ViTMSN", "ijepa": "IJepa"}
MODELS = tuple(KIN)
ROOTS = MODELS


def goldens() -> Iterator[Case | VisionTaskCase]:
    for model, prefix in KIN.items():
        yield from kin(model, prefix)


def kin(model: str, prefix: str) -> Iterator[Case | VisionTaskCase]:
    def sizes(**changes: Any) -> transformers.PreTrainedConfig:
        tiny = {key: value for key, value in TINY.items() if key != "encoder_stride"}
        return getattr(transformers, f"{prefix}Config")(**(tiny | changes))

    def case(name: str, head: str, notes: str, store: Store | None = None, **changes: Any) -> Case:
        pixels = {"pixel_values": floats("pixels", (2, 3, 12, 12), -2.0, 2.0)}
        return Case(f"{model}/{name}", prefix + head, sizes(**changes), pixels, notes, store)

    classes = "ForImageClassification"
    yield case("base", "Model", "Two images.")
    yield case("image-classification", classes, "Three classes.", num_labels=3)
    yield case("no-bias", classes, "No biases of queries, keys and values.", num_labels=3, qkv_bias=False)
    yield case("file", classes, "model.safetensors as save_pretrained writes it.", stores.whole, num_hidden_layers=1)
    processor = transformers.ViTImageProcessorPil(size={"height": 12, "width": 12})
    for task, head, parameters in (
        ("image-classification", classes, {"top_k": 2}),
        ("image-feature-extraction", "Model", {}),
    ):
        calls = (Call("rgb.png"), Call(["tall.png", "grey.png"], parameters))
        config = sizes(num_labels=4)
        yield VisionTaskCase(f"{model}/tasks/{task}", task, prefix + head, config, processor, calls, "Pictures of any size.")
