"""RT-DETR and RT-DETRv2: both kinds of backbone layers, norms before and behind, a further map, both methods."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import transformers
from transformers import RTDetrImageProcessorPil, RTDetrResNetConfig

from weft_reference import stores
from weft_reference.cases import Case, Inputs, Store
from weft_reference.inputs import floats
from weft_reference.vision_tasks import VisionTaskCase
from weft_reference.vision_tasks.detr import LABELS, tasks

MODELS = ("rt_detr", "rt_detr_v2")
PREFIXES = {"rt_detr": "RTDetr", "rt_detr_v2": "RTDetrV2"}
OBJECTS = "ForObjectDetection"


def config(model: str, backbone: dict[str, Any] | None = None, **changes: Any) -> transformers.PreTrainedConfig:
    layout = {"embedding_size": 4, "hidden_sizes": [4, 8, 10, 12], "depths": [1, 2, 1, 1], "layer_type": "basic"} | (backbone or {})
    widths = layout["hidden_sizes"]
    tiny = {
        "encoder_hidden_dim": 16,
        "encoder_in_channels": widths[1:],
        "encoder_ffn_dim": 20,
        "encoder_attention_heads": 2,
        "d_model": 16,
        "num_queries": 6,
        "decoder_in_channels": [16, 16, 16],
        "decoder_ffn_dim": 24,
        "decoder_n_points": 3,
        "decoder_layers": 2,
        "decoder_attention_heads": 4,
        "num_labels": 3,
        "num_denoising": 2,
    }
    resnet = RTDetrResNetConfig(**layout, out_indices=[2, 3, 4])
    return getattr(transformers, f"{PREFIXES[model]}Config")(backbone_config=resnet, **(tiny | changes))


def images(height: int = 64, width: int = 96) -> Inputs:
    """Two images: their edges are multiples of 32, as the pyramid needs."""
    return {"pixel_values": floats("pixels", (2, 3, height, width), -2.0, 2.0)}


def case(
    model: str, name: str, head: str, notes: str, inputs: Inputs | None = None, store: Store | None = None, **changes: Any
) -> Case:
    return Case(f"{model}/{name}", PREFIXES[model] + head, config(model, **changes), inputs or images(), notes, store)


def goldens() -> Iterator[Case | VisionTaskCase]:
    for model in MODELS:
        yield case(model, "base", "Model", "Two images.")
        yield case(model, "object-detection", OBJECTS, "Three classes.")
        yield case(
            model,
            "bottleneck",
            OBJECTS,
            "A backbone of bottleneck layers; norms before, two layers over two maps, a narrow pyramid, other functions.",
            images(96, 64),
            backbone={"layer_type": "bottleneck", "hidden_sizes": [8, 12, 16, 20], "depths": [1, 1, 1, 2]},
            normalize_before=True,
            encode_proj_layers=[1, 2],
            encoder_layers=2,
            hidden_expansion=0.5,
            activation_function="relu",
            encoder_activation_function="relu",
            decoder_activation_function="gelu",
            num_denoising=0,
        )
        yield case(model, "file", OBJECTS, "The names of published checkpoints.", store=stores.whole, encoder_ffn_dim=8)
        made = config(model, num_labels=len(LABELS), num_queries=6)
        size = {"height": 96, "width": 128}
        yield from tasks(made, model, PREFIXES[model], 0.5, lambda **_: RTDetrImageProcessorPil(size=size))
    yield case(
        "rt_detr", "further-map", OBJECTS, "A fourth map by a strided convolution; no position embeddings.", num_feature_levels=4, eval_size=64
    )
    yield case(
        "rt_detr_v2", "discrete", OBJECTS, "Samples of one place each; another scale.", decoder_method="discrete", decoder_offset_scale=0.7
    )
