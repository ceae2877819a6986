"""DAB-DETR: both activation functions, patterns, query positions in each layer, masks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from transformers import ConditionalDetrImageProcessorPil, DabDetrConfig, ResNetConfig

from weft_reference import stores
from weft_reference.cases import Case, Inputs, Store
from weft_reference.models.conditional_detr import LAYOUT, TINY
from weft_reference.models.detr import images
from weft_reference.vision_tasks import VisionTaskCase
from weft_reference.vision_tasks.detr import LABELS, tasks

MODELS = ("dab-detr",)
OBJECTS = "ForObjectDetection"


def config(**changes: Any) -> DabDetrConfig:
    sizes = {name: value for name, value in TINY.items() if name != "d_model"} | {"hidden_size": 16}
    return DabDetrConfig(backbone_config=ResNetConfig(**LAYOUT, out_features=["stage4"]), **(sizes | changes))


def case(name: str, head: str, notes: str, inputs: Inputs | None = None, store: Store | None = None, **changes: Any) -> Case:
    return Case(f"dab-detr/{name}", f"DabDetr{head}", config(**changes), inputs or images((66, 90)), notes, store)


def goldens() -> Iterator[Case | VisionTaskCase]:
    yield case("base", "Model", "Two images, the second padded.")
    yield case("object-detection", OBJECTS, "Three classes.", num_labels=3)
    yield case(
        "patterns",
        OBJECTS,
        "Patterns, query positions in each layer, another function, a norm behind the encoder, other wavelengths; no mask.",
        images((70, 41), masked=False),
        num_patterns=2,
        keep_query_pos=True,
        activation_function="relu",
        normalize_before=True,
        temperature_height=30,
        temperature_width=10,
        sine_position_embedding_scale=5.0,
    )
    yield case("file", OBJECTS, "model.safetensors as save_pretrained writes it.", store=stores.whole, decoder_layers=2)
    yield from tasks(config(num_labels=len(LABELS)), "dab-detr", "DabDetr", 0.49, ConditionalDetrImageProcessorPil)
