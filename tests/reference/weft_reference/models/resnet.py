"""ResNet: both kinds of layers, where they halve, and images of several shapes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from transformers import ConvNextImageProcessorPil, ResNetConfig

from weft_reference import stores
from weft_reference.backbones import backbone
from weft_reference.cases import Case, Store
from weft_reference.inputs import floats
from weft_reference.tasks import Call
from weft_reference.vision_tasks import VisionTaskCase


def sizes(**changes: Any) -> dict[str, Any]:
    return {"embedding_size": 6, "hidden_sizes": [8, 12, 16], "depths": [1, 2, 1], "layer_type": "bottleneck"} | changes


def case(
    name: str, head: str, notes: str, store: Store | None = None, size: tuple[int, int] = (20, 28), **changes: Any
) -> Case:
    chosen = ResNetConfig(**sizes(**changes))
    pixels = floats("pixels", (2, chosen.num_channels, *size), -2.0, 2.0)
    return Case(f"resnet/{name}", f"ResNet{head}", chosen, {"pixel_values": pixels}, notes, store)


def goldens() -> Iterator[Case | VisionTaskCase]:
    yield case("base", "Model", "Bottleneck layers; two images that are not square.")
    yield case("odd-size", "Model", "An odd number of rows and columns.", size=(23, 17))
    yield case("basic", "Model", "Basic layers; the first stage halves too.", layer_type="basic", downsample_in_first_stage=True)
    yield case(
        "downsample-first",
        "Model",
        "The first convolution of a layer halves; another function; no change of channels in the first stage.",
        downsample_in_bottleneck=True,
        hidden_act="gelu",
        embedding_size=8,
        num_channels=1,
    )
    yield case("image-classification", "ForImageClassification", "Three classes.", num_labels=3)
    yield case(
        "file",
        "ForImageClassification",
        "model.safetensors as save_pretrained writes it.",
        store=stores.whole,
        depths=[1, 1],
        hidden_sizes=[8, 12],
    )
    yield from backbone("resnet", "ResNet", sizes(), (23, 34))
    yield from tasks()


def tasks() -> Iterator[VisionTaskCase]:
    processor = ConvNextImageProcessorPil(size={"shortest_edge": 32}, crop_pct=0.875)
    yield VisionTaskCase(
        "resnet/tasks/image-classification",
        "image-classification",
        "ResNetForImageClassification",
        ResNetConfig(**sizes(num_labels=4)),
        processor,
        (Call("rgb.png"), Call(["tall.png", "wide.png"], {"top_k": 2})),
        "Pictures whose middle is cut out.",
    )
    yield VisionTaskCase(
        "resnet/tasks/image-feature-extraction",
        "image-feature-extraction",
        "ResNetModel",
        ResNetConfig(**sizes()),
        processor,
        (Call("rgb.png"), Call(["tall.png", "wide.png"], {"pool": True})),
        "Feature maps, and their means.",
    )
