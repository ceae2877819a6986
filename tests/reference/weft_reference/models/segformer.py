"""SegFormer and PVT V2: maps that are made smaller by several ratios, images of several shapes, classes of places."""

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
from weft_reference.vision_tasks.segmentation import semantic

KIN = {"segformer": "Segformer", "pvt_v2": "PvtV2"}
MODELS = tuple(KIN)


def sizes(model: str, **changes: Any) -> dict[str, Any]:
    tiny = {
        "num_encoder_blocks": 3,
        "depths": [1, 2, 1],
        "sr_ratios": [4, 2, 1],
        "hidden_sizes": [8, 12, 16],
        "patch_sizes": [7, 3, 3],
        "strides": [2, 2, 2],
        "num_attention_heads": [1, 2, 4],
        "mlp_ratios": [2, 2, 3],
    }
    return tiny | ({"decoder_hidden_size": 10} if model == "segformer" else {}) | changes


def goldens() -> Iterator[Case | VisionTaskCase]:
    for model, prefix in KIN.items():
        yield from kin(model, prefix)
        yield tasks(model, prefix)
    processor = transformers.SegformerImageProcessorPil(size={"height": 24, "width": 24}, do_reduce_labels=True)
    config = transformers.SegformerConfig(**sizes("segformer"))
    yield semantic("segformer", "SegformerForSemanticSegmentation", config, processor)
    yield from backbone("pvt_v2", "PvtV2", sizes("pvt_v2"), (22, 37), ("stage1", "stage3"))


def kin(model: str, prefix: str) -> Iterator[Case]:
    def case(
        name: str, head: str, notes: str, store: Store | None = None, size: tuple[int, int] = (24, 24), **changes: Any
    ) -> Case:
        config = getattr(transformers, f"{prefix}Config")(**sizes(model, **changes))
        pixels = {"pixel_values": floats("pixels", (2, config.num_channels, *size), -2.0, 2.0)}
        return Case(f"{model}/{name}", prefix + head, config, pixels, notes, store)

    classes = "ForImageClassification"
    yield case("base", "Model", "Two images.")
    yield case("wide", "Model", "Images that are no squares, of odd rows and columns.", size=(22, 37), num_channels=1)
    yield case("image-classification", classes, "Three classes; another function.", num_labels=3, hidden_act="relu")
    yield case("file", classes, "model.safetensors as save_pretrained writes it.", stores.whole, num_labels=3)
    fewer = {"num_encoder_blocks": 2, "hidden_sizes": [8, 16, 16]}
    yield case("fewer-stages", "Model", "Two stages of three that are listed.", num_encoder_blocks=2)
    yield case("fewer-stages-classification", classes, "The last listed stage is as wide as the last.", **fewer)
    if model == "segformer":
        yield case("fewer-stages-segmentation", "ForSemanticSegmentation", "Two stages are decoded.", num_encoder_blocks=2)
        places = "ForSemanticSegmentation"
        yield case("semantic-segmentation", places, "Four classes of places.", size=(26, 33), num_labels=4)
        yield case("segmentation-file", places, "Under the names of published checkpoints.", stores.whole, num_labels=4)
    else:
        yield case("no-bias", "Model", "No biases of queries, keys and values, another epsilon.", qkv_bias=False, layer_norm_eps=1e-2)


def tasks(model: str, prefix: str) -> VisionTaskCase:
    labels = ["warp", "weft", "loom", "shuttle"]
    config = getattr(transformers, f"{prefix}Config")(**sizes(model), id2label=dict(enumerate(labels)))
    config.label2id = {name: index for index, name in enumerate(labels)}
    processor = {"segformer": transformers.SegformerImageProcessorPil, "pvt_v2": transformers.PvtImageProcessorPil}[model]
    return VisionTaskCase(
        f"{model}/tasks/image-classification",
        "image-classification",
        f"{prefix}ForImageClassification",
        config,
        processor(size={"height": 24, "width": 24}),
        (Call("rgb.png"), Call(["tall.png", "rgb.png", "grey.png"], {"top_k": 2})),
        "One picture and several.",
    )
