"""EfficientNet: blocks of several widths and windows, both ways to fill up maps, images of even and odd sizes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from transformers import EfficientNetConfig, EfficientNetImageProcessorPil

from weft_reference import stores
from weft_reference.cases import Case, Store
from weft_reference.inputs import floats
from weft_reference.tasks import Call
from weft_reference.vision_tasks import VisionTaskCase

TINY = {
    "width_coefficient": 0.3,
    "depth_coefficient": 1.1,
    "depth_divisor": 4,
    "kernel_sizes": [3, 5, 3],
    "in_channels": [32, 16, 40],
    "out_channels": [16, 40, 48],
    "strides": [1, 2, 2],
    "num_block_repeats": [1, 2, 1],
    "expand_ratios": [1, 3, 2],
    "hidden_dim": 384,
}


def case(
    name: str, head: str, notes: str, store: Store | None = None, size: tuple[int, int] = (24, 24), **changes: Any
) -> Case:
    config = EfficientNetConfig(**(TINY | changes))
    pixels = {"pixel_values": floats("pixels", (2, config.num_channels, *size), -2.0, 2.0)}
    return Case(f"efficientnet/{name}", f"EfficientNet{head}", config, pixels, notes, store)


def goldens() -> Iterator[Case | VisionTaskCase]:
    classes = "ForImageClassification"
    yield case("base", "Model", "Two images.")
    yield case("odd-size", "Model", "Images that are no squares, of odd rows and columns.", size=(31, 22), num_channels=1)
    yield case("even-padding", "Model", "As much is put before maps as behind where they halve.", depthwise_padding=[2, 5], size=(28, 26))
    yield case(
        "image-classification",
        classes,
        "Three classes of the largest; another function, epsilon and ratio, narrower still.",
        num_labels=3,
        pooling_type="max",
        hidden_act="relu",
        batch_norm_eps=0.1,
        squeeze_expansion_ratio=0.1,
        depth_divisor=8,
    )
    yield case("file", classes, "model.safetensors as save_pretrained writes it.", stores.whole, num_labels=3, width_coefficient=0.1, hidden_dim=128)
    labels = ["warp", "weft", "loom", "shuttle"]
    for name, notes, settings in (
        ("", "One picture and several, divided by the deviation twice.", {}),
        ("-offset", "Levels from -1 to 1, divided by the deviation once; a middle that is cut out.", {"rescale_offset": True, "rescale_factor": 1 / 127.5, "include_top": False, "do_center_crop": True, "crop_size": {"height": 21, "width": 20}}),
    ):
        config = EfficientNetConfig(**TINY, id2label=dict(enumerate(labels)))
        config.label2id = {label: index for index, label in enumerate(labels)}
        yield VisionTaskCase(
            f"efficientnet/tasks/image-classification{name}",
            "image-classification",
            "EfficientNetForImageClassification",
            config,
            EfficientNetImageProcessorPil(size={"height": 24, "width": 24}, **settings),
            (Call("rgb.png"), Call(["tall.png", "rgb.png", "grey.png"], {"top_k": 2})),
            notes,
        )
