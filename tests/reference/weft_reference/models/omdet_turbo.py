"""OmDet-Turbo: objects that texts name, on timm's Swin or another backbone, with classes of images of different number."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import transformers
from transformers import PreTrainedConfig

from weft_reference import stores, timm_networks
from weft_reference.cases import Case, Inputs, Store
from weft_reference.inputs import floats
from weft_reference.models import clip_text
from weft_reference.vision_tasks import VisionTaskCase
from weft_reference.vision_tasks.objects import of_task

MODELS = ("omdet-turbo",)
CLASS = "OmDetTurboForObjectDetection"
SWIN = {"embed_dim": 8, "depths": [1, 2, 1, 1], "num_heads": [1, 2, 2, 4], "window_size": 3, "image_size": 64, "out_indices": [2, 3, 4]}
SIZES = {
    "encoder_hidden_dim": 16,
    "encoder_attention_heads": 2,
    "encoder_dim_feedforward": 20,
    "decoder_hidden_dim": 16,
    "decoder_num_heads": 4,
    "decoder_num_layers": 3,
    "decoder_dim_feedforward": 24,
    "decoder_num_points": 3,
    "vision_features_channels": [16, 16, 16],
    "class_embed_dim": 12,
    "text_projection_in_dim": 12,
    "text_projection_out_dim": 12,
    "task_encoder_hidden_dim": 14,
    "num_queries": 7,
}


def timm_swin(out_indices: list[int] | None = None, **changes: Any) -> PreTrainedConfig:
    made = transformers.TimmBackboneConfig(backbone="swin_tiny_patch4_window7_224", out_indices=out_indices or [1, 2, 3])
    for name, value in ({"img_size": 64, "always_partition": True} | changes).items():
        setattr(made, name, value)
    return made


def config(backbone: PreTrainedConfig, text: dict[str, Any] | None = None, **changes: Any) -> PreTrainedConfig:
    widths = [96 << stage for stage in backbone.out_indices] if backbone.model_type == "timm_backbone" else [backbone.embed_dim << stage for stage in (1, 2, 3)]
    own = {"hidden_size": 12, "intermediate_size": 18, "num_hidden_layers": 2, "num_attention_heads": 3, "vocab_size": 99}
    own |= {"max_position_embeddings": 16, "projection_dim": 8} | (text or {})
    changes = {"encoder_in_channels": widths, "image_size": 64} | changes
    return transformers.OmDetTurboConfig(backbone_config=backbone, text_config=transformers.CLIPTextConfig(**own), **(SIZES | changes))


def texts(key: str, lengths: tuple[int, ...], name: str) -> Inputs:
    """Texts of some tokens each, of ids below 99, padded on the right."""
    made = clip_text.texts(lengths, key=f"{key}.{name}")
    return {f"{name}_{what}": made[what] for what in ("input_ids", "attention_mask")}


def inputs(key: str, classes: tuple[tuple[int, ...], ...], tasks: tuple[int, ...], size: tuple[int, int] = (64, 64)) -> Inputs:
    """Images, of each the lengths of its classes' names and of its task."""
    given = {"pixel_values": floats(f"{key}.pixels", (len(tasks), 3, *size), -2.0, 2.0)}
    given |= texts(key, tuple(length for image in classes for length in image), "classes")
    given |= texts(key, tasks, "tasks")
    return given | {"classes_structure": np.array([len(image) for image in classes], np.int64)}


def goldens() -> Iterator[Case | VisionTaskCase]:
    timm_networks.load()

    def one(name: str, notes: str, made: PreTrainedConfig, given: Inputs, store: Store | None = None) -> Case:
        return Case(f"omdet-turbo/{name}", CLASS, made, given, notes, store)

    both = (((3, 5, 4), (6, 3)), (9, 6))
    yield one("timm", "On timm's Swin, whose windows shift over any grid; three classes and two.", config(timm_swin()), inputs("timm", *both))
    small = config(timm_swin(always_partition=False, img_size=96), class_distance_type="dot", learn_initial_query=True, encoder_layers=2)
    yield one("timm-small-grid", "Windows that are no larger than a grid; products, learned queries.", small, inputs("small", ((4,), (3, 5)), (4, 8), (96, 96)))
    swin = transformers.SwinConfig(**SWIN)
    other = {"apply_layernorm_after_vision_backbone": False}
    yield one("swin", "On Swin; wide images.", config(swin, **other), inputs("swin", *both, (64, 96)))
    wide = {"text": {"hidden_size": 20, "num_attention_heads": 4}, "class_embed_dim": 20, "text_projection_in_dim": 20, "text_projection_out_dim": 20}
    wide |= {"encoder_projection_indices": [1, 2], "hidden_expansion": 2, "csp_activation": "relu", "conv_norm_activation": "silu"}
    wide |= {"encoder_feedforward_activation": "gelu", "decoder_activation": "gelu", "eval_size": 64, "positional_encoding_temperature": 100}
    wide |= {"layer_norm_eps": 1e-3, "batch_norm_eps": 1e-5}
    yield one("wide", "Wider texts, attention in two maps without positions, other functions.", config(swin, **other, **wide), inputs("wide", ((3, 4),), (7,)))
    yield one("file", "model.safetensors as save_pretrained writes it.", config(swin, **other), inputs("file", *both), stores.whole)
    named = config(swin, {"max_position_embeddings": 40, "vocab_size": 254}, **other, num_queries=21, layer_norm_eps=0.1)
    yield of_task("omdet-turbo", CLASS, named, 64, 40, 0.6)
