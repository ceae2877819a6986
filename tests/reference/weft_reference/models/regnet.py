"""RegNet and PoolFormer: both kinds of layers, scales or none, images of several shapes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import transformers

from weft_reference import stores
from weft_reference.cases import Case, Store
from weft_reference.inputs import floats
from weft_reference.tasks import Call
from weft_reference.vision_tasks import VisionTaskCase

KIN = {"regnet": "RegNet", "poolformer": "PoolFormer"}
MODELS = tuple(KIN)
TINY = {
    "regnet": {"embedding_size": 6, "hidden_sizes": [8, 12, 16], "depths": [1, 2, 1], "groups_width": 4},
    "poolformer": {
        "num_encoder_blocks": 3,
        "depths": [1, 2, 1],
        "hidden_sizes": [8, 12, 16],
        "patch_sizes": [7, 3, 3],
        "strides": [2, 2, 2],
        "padding": [2, 1, 1],
        "mlp_ratio": 2.0,
    },
}


def goldens() -> Iterator[Case | VisionTaskCase]:
    for model, prefix in KIN.items():
        yield from kin(model, prefix)
        yield tasks(model, prefix)


def kin(model: str, prefix: str) -> Iterator[Case]:
    def case(
        name: str, head: str, notes: str, store: Store | None = None, size: tuple[int, int] = (24, 24), **changes: Any
    ) -> Case:
        config = getattr(transformers, f"{prefix}Config")(**(TINY[model] | changes))
        pixels = {"pixel_values": floats("pixels", (2, config.num_channels, *size), -2.0, 2.0)}
        return Case(f"{model}/{name}", prefix + head, config, pixels, notes, store)

    classes = "ForImageClassification"
    yield case("base", "Model", "Two images.")
    yield case("wide", "Model", "Images that are no squares, of odd rows and columns.", size=(21, 38), num_channels=1)
    yield case("image-classification", classes, "Three classes; another function.", num_labels=3, hidden_act="silu")
    yield case("file", classes, "model.safetensors as save_pretrained writes it.", stores.whole, num_labels=3)
    if model == "regnet":
        yield case("x-layers", classes, "Layers that do not weigh channels.", layer_type="x", downsample_in_first_stage=False)
        yield case("odd-widths", "Model", "Widths whose quarter is no whole number.", embedding_size=10, hidden_sizes=[14, 18, 22], groups_width=2)
    else:
        yield case("fewer-stages", "Model", "Two stages of three that are listed.", num_encoder_blocks=2)
        yield case("unscaled", classes, "Layers without scales; wider windows.", use_layer_scale=False, pool_size=5)


def tasks(model: str, prefix: str) -> VisionTaskCase:
    labels = ["warp", "weft", "loom", "shuttle"]
    config = getattr(transformers, f"{prefix}Config")(**TINY[model], id2label=dict(enumerate(labels)))
    config.label2id = {name: index for index, name in enumerate(labels)}
    processor = {
        "regnet": transformers.ConvNextImageProcessorPil(size={"shortest_edge": 24}, crop_pct=0.875),
        "poolformer": transformers.PoolFormerImageProcessorPil(size={"shortest_edge": 24}, crop_size={"height": 22, "width": 22}),
    }[model]
    return VisionTaskCase(
        f"{model}/tasks/image-classification",
        "image-classification",
        f"{prefix}ForImageClassification",
        config,
        processor,
        (Call("rgb.png"), Call(["tall.png", "rgb.png", "grey.png"], {"top_k": 2})),
        "One picture and several, whose middles are cut out.",
    )
