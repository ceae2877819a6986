"""DETR: positions of both kinds, masks, both kinds of backbone layers."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np
from transformers import DetrConfig, DetrImageProcessorPil, ResNetConfig

from weft_reference import stores
from weft_reference.cases import Case, Store
from weft_reference.inputs import floats
from weft_reference.vision_tasks import VisionTaskCase
from weft_reference.vision_tasks.detr import LABELS, tasks
from weft_reference.vision_tasks.segmentation import panoptic


def config(backbone: dict[str, Any] | None = None, **changes: Any) -> DetrConfig:
    layout = {"embedding_size": 4, "hidden_sizes": [6, 8], "depths": [1, 1], "layer_type": "basic"} | (backbone or {})
    stages = layout.pop("out_features", [f"stage{len(layout['depths'])}"])
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
    return DetrConfig(backbone_config=ResNetConfig(**layout, out_features=stages), **(tiny | changes))


def images(size: tuple[int, int] = (27, 36), masked: bool = True) -> dict[str, np.ndarray]:
    """Two images, the second of which is smaller: padded below and on the right."""
    pixels = floats("pixels", (2, 3, *size), -2.0, 2.0)
    if not masked:
        return {"pixel_values": pixels}
    mask = np.ones((2, *size), np.int64)
    mask[1, 18:] = 0
    mask[1, :, 25:] = 0
    return {"pixel_values": pixels * mask[:, None].astype(np.float32), "pixel_mask": mask}


def case(
    name: str,
    head: str,
    notes: str,
    inputs: dict[str, np.ndarray] | None = None,
    store: Store | None = None,
    **changes: Any,
) -> Case:
    written = changes.pop("written", {})
    return Case(f"detr/{name}", f"Detr{head}", config(**changes), inputs or images(), notes, store, written=written)


def by_name(depths: list[int]) -> dict[str, Any]:
    """The layout of timm's networks of basic layers."""
    return {"embedding_size": 64, "hidden_sizes": [64, 128, 256, 512], "depths": depths}


def goldens() -> Iterator[Case | VisionTaskCase]:
    yield case("base", "Model", "Two images, the second padded.")
    yield case("no-mask", "Model", "Two images of one size, no mask.", images((24, 30), masked=False))
    yield case("object-detection", "ForObjectDetection", "Three classes and no object.", num_labels=3)
    yield case("learned-positions", "ForObjectDetection", "Learned positions.", position_embedding_type="learned")
    yield case(
        "bottleneck",
        "ForObjectDetection",
        "A backbone of bottleneck layers; another function.",
        backbone={"layer_type": "bottleneck", "hidden_sizes": [8, 12, 16], "depths": [1, 2, 1]},
        activation_function="gelu",
        inputs=images((40, 33)),
    )
    for name, depths in (("resnet18", [2, 2, 2, 2]), ("resnet34", [3, 4, 6, 3])):
        yield case(
            name,
            "ForObjectDetection",
            "A backbone by timm's name, as published checkpoints have it, of that network's size.",
            images((34, 50), masked=False),
            backbone=by_name(depths),
            written={"backbone": name, "use_timm_backbone": True, "backbone_config": None},
            encoder_layers=1,
            decoder_layers=1,
        )
    yield case(
        "resnet50",
        "ForObjectDetection",
        "A network of bottleneck layers by timm's name, of its size.",
        images((34, 50), masked=False),
        backbone=by_name([3, 4, 6, 3]) | {"layer_type": "bottleneck", "hidden_sizes": [256, 512, 1024, 2048]},
        written={"backbone": "resnet50", "use_timm_backbone": True, "backbone_config": None},
        encoder_layers=1,
        decoder_layers=1,
    )
    for name, layer_type in (("timm-names", "bottleneck"), ("timm-basic-names", "basic")):
        made = case(
            name,
            "ForObjectDetection",
            "A network under timm's names, as published checkpoints have it.",
            store=stores.whole,
            backbone={"layer_type": layer_type, "hidden_sizes": [8, 12, 16], "depths": [1, 2, 1]},
            encoder_layers=1,
            decoder_layers=1,
        )
        yield dataclasses.replace(made, rename=stores.timm_network)
    yield case(
        "file",
        "ForObjectDetection",
        "model.safetensors as save_pretrained writes it, under the names of published checkpoints.",
        store=stores.whole,
        encoder_layers=1,
        decoder_layers=1,
    )
    four = {"hidden_sizes": [6, 8, 10, 12], "depths": [1, 1, 1, 1], "out_features": [f"stage{n}" for n in range(1, 5)]}
    sizes = {"backbone": four, "encoder_attention_heads": 8, "encoder_layers": 1, "decoder_layers": 1, "num_queries": 3}
    gelu = {"activation_function": "gelu", "num_queries": 2}
    for name, edges, more, notes in (
        ("segmentation", (64, 64), {"num_labels": 3}, "Masks of two images, the second padded."),
        ("segmentation-odd", (66, 45), gelu, "Maps whose edges are no multiples; another function and number of queries."),
    ):
        yield case(name, "ForSegmentation", notes, images(edges), **(sizes | more))
    yield case("segmentation-file", "ForSegmentation", "Masks, under the names of published checkpoints.", images((64, 64)), stores.whole, **sizes)
    yield from tasks(config(num_labels=len(LABELS)))
    processor = DetrImageProcessorPil(size={"shortest_edge": 64, "longest_edge": 90})
    yield panoptic("detr", "DetrForSegmentation", config(**(sizes | {"num_queries": 5})), processor, threshold=0.2, part=0.1)
