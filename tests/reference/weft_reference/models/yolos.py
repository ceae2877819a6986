"""YOLOS: images of the size that positions were learned for and of others, positions between layers or none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from transformers import YolosConfig, YolosImageProcessorPil

from weft_reference import stores
from weft_reference.cases import Case, Store
from weft_reference.inputs import floats
from weft_reference.vision_tasks import VisionTaskCase
from weft_reference.vision_tasks.detr import LABELS, tasks

TINY = {
    "hidden_size": 16,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "intermediate_size": 24,
    "image_size": [12, 16],
    "patch_size": 4,
    "num_detection_tokens": 5,
}


def case(
    name: str, head: str, notes: str, store: Store | None = None, size: tuple[int, int] = (12, 16), **changes: Any
) -> Case:
    pixels = {"pixel_values": floats("pixels", (2, 3, *size), -2.0, 2.0)}
    return Case(f"yolos/{name}", f"Yolos{head}", YolosConfig(**(TINY | changes)), pixels, notes, store)


def goldens() -> Iterator[Case | VisionTaskCase]:
    objects = "ForObjectDetection"
    yield case("base", "Model", "Two images of the size that positions were learned for.")
    yield case("other-size", "Model", "Images of another size, no multiple of patches.", size=(21, 11))
    yield case("object-detection", objects, "Three classes and no object.", num_labels=3)
    yield case(
        "first-positions",
        objects,
        "Positions before the first layer alone; no biases of queries, keys and values, another function.",
        size=(16, 24),
        use_mid_position_embeddings=False,
        qkv_bias=False,
        hidden_act="relu",
    )
    yield case("file", objects, "model.safetensors as save_pretrained writes it.", stores.whole, num_labels=3)
    config = YolosConfig(**TINY | {"image_size": [32, 48], "patch_size": 8}, num_labels=len(LABELS))
    yield from tasks(config, "yolos", "Yolos", THRESHOLD, YolosImageProcessorPil, (64, 128))


# Between the scores of the random checkpoint.
THRESHOLD = 0.35
