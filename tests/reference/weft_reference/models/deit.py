"""DeiT: every head; two tokens before the patches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from transformers import DeiTConfig, DeiTImageProcessorPil

from weft_reference import stores
from weft_reference.cases import Case, Store
from weft_reference.inputs import floats, integers
from weft_reference.tasks import Call
from weft_reference.vision_tasks import VisionTaskCase

TINY = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 24,
    "image_size": 12,
    "patch_size": 4,
    "encoder_stride": 4,
}


def case(
    name: str, head: str, notes: str, inputs: dict[str, np.ndarray] | None = None, store: Store | None = None, **changes: Any
) -> Case:
    pixels = {"pixel_values": floats("pixels", (2, 3, 12, 12), -2.0, 2.0)}
    return Case(f"deit/{name}", f"DeiT{head}", DeiTConfig(**(TINY | changes)), pixels | (inputs or {}), notes, store)


def goldens() -> Iterator[Case | VisionTaskCase]:
    yield case("base", "Model", "Two images.")
    yield case("image-classification", "ForImageClassification", "Three classes, by the class token.", num_labels=3)
    yield case("with-teacher", "ForImageClassificationWithTeacher", "Three classes, by both tokens.", num_labels=3)
    masked = integers("masked", (2, 9), 0, 2).astype(bool)
    yield case("masked-image-modeling", "ForMaskedImageModeling", "Some patches hidden.", {"bool_masked_pos": masked})
    yield case(
        "file",
        "ForImageClassificationWithTeacher",
        "model.safetensors as save_pretrained writes it, under the names of published checkpoints.",
        store=stores.whole,
        num_hidden_layers=1,
        qkv_bias=False,
    )
    yield task()


def task() -> VisionTaskCase:
    labels = ["warp", "weft", "loom", "shuttle"]
    named = {"id2label": dict(enumerate(labels)), "label2id": {name: index for index, name in enumerate(labels)}}
    return VisionTaskCase(
        "deit/tasks/image-classification-with-teacher",
        "image-classification",
        "DeiTForImageClassificationWithTeacher",
        DeiTConfig(**TINY, **named),
        DeiTImageProcessorPil(size={"height": 14, "width": 14}, crop_size={"height": 12, "width": 12}),
        (Call("rgb.png"), Call(["tall.png", "grey.png"], {"top_k": 2})),
        "Scores by the mean of both tokens; the middles of pictures.",
    )
