"""Table Transformer: what differs from DETR, with a mask and without, both kinds of backbone layers."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np
from transformers import ResNetConfig, TableTransformerConfig

from weft_reference import stores
from weft_reference.cases import Case, Store
from weft_reference.models.detr import images
from weft_reference.vision_tasks import VisionTaskCase
from weft_reference.vision_tasks.detr import LABELS, tasks

MODELS = ("table-transformer",)


def config(backbone: dict[str, Any] | None = None, **changes: Any) -> TableTransformerConfig:
    layout = {"embedding_size": 4, "hidden_sizes": [6, 8], "depths": [1, 1], "layer_type": "basic"} | (backbone or {})
    tiny = {
        "num_queries": 5,
        "d_model": 16,
        "encoder_layers": 2,
        "encoder_ffn_dim": 20,
        "encoder_attention_heads": 2,
        "decoder_layers": 2,
        "decoder_ffn_dim": 24,
        "decoder_attention_heads": 4,
    }
    stages = ResNetConfig(**layout, out_features=[f"stage{len(layout['depths'])}"])
    return TableTransformerConfig(backbone_config=stages, **(tiny | changes))


def case(
    name: str, head: str, notes: str, inputs: dict[str, np.ndarray] | None = None, store: Store | None = None, **changes: Any
) -> Case:
    written = changes.pop("written", {})
    made = config(**changes)
    return Case(
        f"table-transformer/{name}", f"TableTransformer{head}", made, inputs or images(), notes, store, written=written
    )


def goldens() -> Iterator[Case | VisionTaskCase]:
    objects = "ForObjectDetection"
    yield case("base", "Model", "Two images, the second padded.")
    yield case("no-mask", "Model", "Two images of one size, no mask.", images((24, 30), masked=False))
    yield case("object-detection", objects, "Three classes and no object.", num_labels=3)
    yield case("learned-positions", objects, "Learned positions.", position_embedding_type="learned")
    yield case(
        "bottleneck",
        objects,
        "A backbone of bottleneck layers; another function.",
        images((40, 33)),
        backbone={"layer_type": "bottleneck", "hidden_sizes": [8, 12, 16], "depths": [1, 2, 1]},
        activation_function="gelu",
    )
    for name, depths in (("resnet18", [2, 2, 2, 2]), ("resnet34", [3, 4, 6, 3])):
        yield case(
            name,
            objects,
            "A backbone by timm's name, as published checkpoints have it, of that network's size.",
            images((34, 50), masked=False),
            backbone={"embedding_size": 64, "hidden_sizes": [64, 128, 256, 512], "depths": depths},
            written={"backbone": name, "use_timm_backbone": True, "backbone_config": None},
            encoder_layers=1,
            decoder_layers=1,
        )
    made = case(
        "timm-names",
        objects,
        "A network under timm's names, as published checkpoints have it.",
        store=stores.whole,
        encoder_layers=1,
        decoder_layers=1,
    )
    yield dataclasses.replace(made, rename=stores.timm_network)
    yield case("file", objects, "model.safetensors as save_pretrained writes it.", store=stores.whole, encoder_layers=1)
    yield from tasks(config(num_labels=len(LABELS)), "table-transformer", "TableTransformer", 0.44, edges=(34, 50))
