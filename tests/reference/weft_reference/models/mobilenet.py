"""MobileNet, both versions: images of even and odd sizes, both ways to fill up maps, few channels and many."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import transformers

from weft_reference import stores
from weft_reference.cases import Case, Store
from weft_reference.inputs import floats
from weft_reference.tasks import Call
from weft_reference.vision_tasks import VisionTaskCase
from weft_reference.vision_tasks.segmentation import semantic

KIN = {"mobilenet_v1": "MobileNetV1", "mobilenet_v2": "MobileNetV2"}
MODELS = tuple(KIN)
# The channels are in the architecture: a small factor makes them few.
TINY = {"image_size": 32, "depth_multiplier": 0.3, "min_depth": 4}
# Without so large an epsilon, values grow from block to block until half precision says little of them.
STEADY = {
    "mobilenet_v1": {},
    "mobilenet_v2": {
        "depth_multiplier": 0.2,
        "depth_divisible_by": 4,
        "expand_ratio": 2.0,
        "finegrained_output": False,
        "layer_norm_eps": 0.3,
    },
}


def goldens() -> Iterator[Case | VisionTaskCase]:
    for model, prefix in KIN.items():
        yield from kin(model, prefix)
        yield tasks(model, prefix)
    config = transformers.MobileNetV2Config(**(TINY | STEADY["mobilenet_v2"] | {"output_stride": 8}))
    processor = transformers.MobileNetV2ImageProcessorPil(size={"height": 33, "width": 33}, do_center_crop=False)
    yield semantic("mobilenet_v2", "MobileNetV2ForSemanticSegmentation", config, processor)


def kin(model: str, prefix: str) -> Iterator[Case]:
    def case(
        name: str, head: str, notes: str, store: Store | None = None, size: tuple[int, int] = (32, 32), **changes: Any
    ) -> Case:
        made = TINY | STEADY[model] | {"image_size": list(size)} | changes
        config = getattr(transformers, f"{prefix}Config")(**made)
        pixels = {"pixel_values": floats("pixels", (2, config.num_channels, *size), -2.0, 2.0)}
        return Case(f"{model}/{name}", prefix + head, config, pixels, notes, store)

    classes = "ForImageClassification"
    yield case("base", "Model", "Two images.", image_size=32)
    yield case("odd-size", "Model", "Images of odd rows and columns.", size=(37, 27))
    yield case("other-size", "Model", "Images of odd rows and even columns, not of the configuration's size.", size=(45, 38), image_size=32)
    yield case("equal-padding", "Model", "As much is put before maps as behind; another function and epsilon.", size=(35, 32), tf_padding=False, hidden_act="relu", layer_norm_eps=0.4)
    yield case("image-classification", classes, "Three classes, other channels.", num_labels=3, depth_multiplier=0.15)
    yield case("file", classes, "model.safetensors as save_pretrained writes it.", stores.whole, num_labels=3, depth_multiplier=0.1)
    if model == "mobilenet_v2":
        places = "ForSemanticSegmentation"
        yield case("semantic-segmentation", places, "Four classes of places, at an eighth of the resolution.", output_stride=8, size=(33, 45), num_labels=4)
        yield case("segmentation-file", places, "As save_pretrained writes it, with a layer that the head does not use.", stores.whole, num_labels=4, depth_multiplier=0.1)
        yield case("dilated", "Model", "Windows that grow, and one more convolution in the stem.", output_stride=8, first_layer_is_expansion=False, size=(32, 44))
        yield case("fine-grained", classes, "As many channels in the last map as others have; another ratio.", finegrained_output=True, expand_ratio=3.0, num_labels=2)


def tasks(model: str, prefix: str) -> VisionTaskCase:
    labels = ["warp", "weft", "loom", "shuttle"]
    config = getattr(transformers, f"{prefix}Config")(**(TINY | STEADY[model]), id2label=dict(enumerate(labels)))
    config.label2id = {name: index for index, name in enumerate(labels)}
    processor = getattr(transformers, f"{prefix}ImageProcessorPil")
    return VisionTaskCase(
        f"{model}/tasks/image-classification",
        "image-classification",
        f"{prefix}ForImageClassification",
        config,
        processor(size={"shortest_edge": 36}, crop_size={"height": 32, "width": 32}),
        (Call("rgb.png"), Call(["tall.png", "rgb.png", "grey.png"], {"top_k": 2})),
        "One picture and several, whose middles are cut out.",
    )
