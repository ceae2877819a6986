"""ViT: every head, and what its config, inputs and checkpoints vary in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from transformers import ViTConfig, ViTImageProcessorPil

from weft_reference import stores
from weft_reference.cases import Case, Inputs, Store
from weft_reference.inputs import floats, integers
from weft_reference.tasks import Call
from weft_reference.vision_tasks import VisionTaskCase


def config(**changes: Any) -> ViTConfig:
    tiny = {
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 24,
        "image_size": 12,
        "patch_size": 4,
        "encoder_stride": 4,
    }
    return ViTConfig(**(tiny | changes))


def pixels(config: ViTConfig, batch: int = 2) -> dict[str, np.ndarray]:
    size = config.image_size
    return {"pixel_values": floats("pixels", (batch, config.num_channels, size, size), -2.0, 2.0)}


def case(
    name: str, model_class: str, notes: str, inputs: Inputs | None = None, store: Store | None = None, **changes: Any
) -> Case:
    chosen = config(**changes)
    return Case(f"vit/{name}", model_class, chosen, pixels(chosen) | dict(inputs or {}), notes, store)


def goldens() -> Iterator[Case | VisionTaskCase]:
    yield case("base", "ViTModel", "Two images; hidden states and the pooled class token.")
    yield Case(
        "vit/no-pooler",
        "ViTModel",
        config(num_hidden_layers=1),
        pixels(config()),
        "Built without a pooler, as checkpoints of some heads are.",
        build={"add_pooling_layer": False},
    )
    wide = {"pixel_values": floats("wide", (2, 3, 8, 21), -2.0, 2.0)}
    for name, head, more in (
        ("interpolated", "ViTModel", {}),
        ("interpolated-classes", "ViTForImageClassification", {"num_labels": 3}),
    ):
        told = {"interpolate_pos_encoding": True}
        yield Case(f"vit/{name}", head, config(**more), wide, "Images lower and wider than the configuration's.", forward=told)
    yield case(
        "other-sizes",
        "ViTModel",
        "One channel, no bias on queries, keys and values, a pooler of another width and function, an epsilon that "
        "matters; the image's edge is no multiple of the patch's.",
        num_channels=1,
        image_size=13,
        patch_size=3,
        hidden_size=20,
        num_attention_heads=5,
        num_hidden_layers=3,
        qkv_bias=False,
        pooler_output_size=6,
        pooler_act="relu",
        hidden_act="gelu_pytorch_tanh",
        layer_norm_eps=0.1,
    )
    yield case("image-classification", "ViTForImageClassification", "Three classes.", num_labels=3)
    yield case("one-label", "ViTForImageClassification", "Regression: one label.", num_labels=1)
    masked = integers("masked", (2, 9), 0, 2).astype(bool)
    yield case(
        "masked-image-modeling",
        "ViTForMaskedImageModeling",
        "Some patches hidden behind the mask token.",
        {"bool_masked_pos": masked},
    )
    yield case("masked-image-modeling-unmasked", "ViTForMaskedImageModeling", "No mask is given: every patch is seen.")
    yield case(
        "file",
        "ViTForImageClassification",
        "model.safetensors as save_pretrained writes it, under the names of published checkpoints.",
        store=stores.whole,
        num_labels=3,
        num_hidden_layers=1,
    )
    yield from tasks()


def tasks() -> Iterator[VisionTaskCase]:
    processor = ViTImageProcessorPil(size={"height": 12, "width": 12})
    labels = ["warp", "weft", "loom", "shuttle", "heddle", "reed", "selvedge"]
    named = {"id2label": dict(enumerate(labels)), "label2id": {name: index for index, name in enumerate(labels)}}
    one, many = "rgb.png", ["tall.png", "rgb.png", "grey.png"]

    def of(name: str, task: str, head: str, notes: str, *calls: Call, **changes: Any) -> VisionTaskCase:
        return VisionTaskCase(f"vit/tasks/{name}", task, head, config(**changes), processor, calls, notes)

    yield of(
        "image-classification",
        "image-classification",
        "ViTForImageClassification",
        "One picture and several, of several sizes; all ways to score.",
        Call(one),
        Call(many),
        Call([one]),
        Call(one, {"top_k": 2}),
        Call(one, {"top_k": 99, "function_to_apply": "sigmoid"}),
        Call(many, {"function_to_apply": "none"}),
        **named,
    )
    yield of(
        "image-classification-several-labels",
        "image-classification",
        "ViTForImageClassification",
        "Labels that do not exclude each other.",
        Call(one),
        problem_type="multi_label_classification",
        num_labels=3,
    )
    yield of(
        "image-classification-regression",
        "image-classification",
        "ViTForImageClassification",
        "A number.",
        Call(one),
        problem_type="regression",
        num_labels=1,
    )
    yield of(
        "image-feature-extraction",
        "image-feature-extraction",
        "ViTModel",
        "Hidden states and pooled vectors; a picture that is turned; other settings.",
        Call(one),
        Call(["palette.png", "oriented.png"], {"pool": True}),
        Call(one, {"image_processor_kwargs": {"resample": 3, "do_normalize": False}, "pool": True}),
    )
