"""LW-DETR: windowed attention, all scales of projectors, padding."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import transformers
from transformers import DeformableDetrImageProcessorPil, LwDetrConfig, LwDetrViTConfig

from weft_reference import stores
from weft_reference.backbones import backbone
from weft_reference.cases import Case, Inputs, Store
from weft_reference.models.detr import images
from weft_reference.vision_tasks import VisionTaskCase
from weft_reference.vision_tasks.detr import LABELS, tasks

MODELS = ("lw_detr", "lw_detr_vit")
OBJECTS = "ForObjectDetection"
VIT = {
    "hidden_size": 12,
    "num_hidden_layers": 3,
    "num_attention_heads": 3,
    "mlp_ratio": 2,
    "patch_size": 8,
    "image_size": 64,
    "pretrain_image_size": 32,
    "num_windows": 4,
    "window_block_indices": [0, 2],
}


def config(vit: dict[str, Any] | None = None, **changes: Any) -> transformers.PreTrainedConfig:
    tiny = {
        "projector_scale_factors": [1.0],
        "d_model": 16,
        "num_queries": 5,
        "group_detr": 2,
        "decoder_layers": 2,
        "decoder_ffn_dim": 20,
        "decoder_n_points": 3,
        "decoder_self_attention_heads": 2,
        "decoder_cross_attention_heads": 4,
        "c2f_num_blocks": 2,
        "num_labels": 3,
    }
    return LwDetrConfig(backbone_config=LwDetrViTConfig(**(VIT | {"out_indices": [1, 3]} | (vit or {}))), **(tiny | changes))


def case(name: str, head: str, notes: str, inputs: Inputs, store: Store | None = None, **changes: Any) -> Case:
    return Case(f"lw_detr/{name}", f"LwDetr{head}", config(**changes), inputs, notes, store)


def goldens() -> Iterator[Case | VisionTaskCase]:
    yield case("base", "Model", "Two images, the second padded.", images((64, 80)))
    yield case("object-detection", OBJECTS, "Three classes, images without padding.", images((48, 64), masked=False))
    plain = {"qkv_bias": False, "hidden_act": "relu", "num_windows": 1, "window_block_indices": []}
    other = {"activation_function": "relu", "decoder_activation_function": "gelu", "attention_bias": False, "hidden_expansion": 0.75}
    yield case("scales", OBJECTS, "Three scales; one window; other functions, no biases.", images((64, 48)), projector_scale_factors=[2.0, 1.0, 0.5], vit=plain, **other)
    wide = {"hidden_size": 516, "num_hidden_layers": 1, "out_indices": [1]}
    yield case("wide", OBJECTS, "A backbone so wide that maps become narrower before they become larger.", images((48, 48)), projector_scale_factors=[2.0], vit=wide)
    yield case("file", OBJECTS, "The names of published checkpoints.", images((64, 64)), stores.whole)
    yield from tasks(config(num_labels=len(LABELS)), "lw_detr", "LwDetr", 0.5, lambda **_: DeformableDetrImageProcessorPil(size={"height": 80, "width": 64}))
    yield from backbone("lw_detr_vit", "LwDetrViT", VIT, (64, 64))
