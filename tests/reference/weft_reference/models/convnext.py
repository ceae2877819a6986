"""ConvNeXT, both versions: images of two sizes, stages of other widths, scales or none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import transformers

from weft_reference import stores
from weft_reference.backbones import backbone
from weft_reference.cases import Case, Store
from weft_reference.inputs import floats
from weft_reference.tasks import Call
from weft_reference.vision_tasks import VisionTaskCase

TINY = {"patch_size": 2, "num_stages": 3, "hidden_sizes": [8, 12, 16], "depths": [1, 2, 1]}
KIN = {"convnext": "ConvNext", "convnextv2": "ConvNextV2"}
MODELS = tuple(KIN)
ROOTS = MODELS


def goldens() -> Iterator[Case | VisionTaskCase]:
    for model, prefix in KIN.items():
        yield from kin(model, prefix)
        yield from backbone(model, prefix, TINY, (22, 36))
    yield VisionTaskCase(
        "convnextv2/tasks/image-classification",
        "image-classification",
        "ConvNextV2ForImageClassification",
        transformers.ConvNextV2Config(**TINY, num_labels=4),
        transformers.ConvNextImageProcessorPil(size={"shortest_edge": 384}),
        (Call("rgb.png"), Call(["tall.png", "grey.png"], {"top_k": 2})),
        "Pictures of the size from which on nothing is cut away.",
    )


def kin(model: str, prefix: str) -> Iterator[Case]:
    def case(
        name: str, head: str, notes: str, store: Store | None = None, size: tuple[int, int] = (24, 24), **changes: Any
    ) -> Case:
        pixels = {"pixel_values": floats("pixels", (2, 3, *size), -2.0, 2.0)}
        config = getattr(transformers, f"{prefix}Config")(**(TINY | changes))
        return Case(f"{model}/{name}", prefix + head, config, pixels, notes, store)

    classes = "ForImageClassification"
    yield case("base", "Model", "Two images.")
    yield case("wide", "Model", "Images that are no squares, of odd rows and columns of patches.", size=(22, 36))
    yield case("image-classification", classes, "Three classes.", num_labels=3)
    yield case("relu", classes, "Another activation and epsilon.", hidden_act="relu", layer_norm_eps=1e-3)
    yield case("file", classes, "model.safetensors as save_pretrained writes it.", stores.whole)
    if model == "convnext":
        yield case("unscaled", classes, "Layers without scales.", layer_scale_init_value=0.0)
