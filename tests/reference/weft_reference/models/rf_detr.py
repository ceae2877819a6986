"""RF-DETR: windows of DINOv2, masks of instances, padding, interpolated positions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import transformers
from transformers import DeformableDetrImageProcessorPil, RfDetrConfig, RfDetrDinov2Config

from weft_reference import stores
from weft_reference.backbones import backbone
from weft_reference.cases import Case, Inputs, Store
from weft_reference.models.detr import images
from weft_reference.vision_tasks import VisionTaskCase
from weft_reference.vision_tasks.detr import LABELS, tasks

MODELS = ("rf_detr", "rf_detr_dinov2")
OBJECTS, MASKS = "ForObjectDetection", "ForInstanceSegmentation"
DINOV2 = {
    "hidden_size": 12,
    "num_hidden_layers": 3,
    "num_attention_heads": 3,
    "mlp_ratio": 2,
    "patch_size": 8,
    "image_size": 48,
    "num_windows": 2,
}


def config(dinov2: dict[str, Any] | None = None, **changes: Any) -> transformers.PreTrainedConfig:
    tiny = {
        "d_model": 16,
        "num_queries": 5,
        "group_detr": 2,
        "decoder_layers": 2,
        "decoder_ffn_dim": 20,
        "decoder_n_points": 3,
        "decoder_self_attention_heads": 2,
        "decoder_cross_attention_heads": 4,
        "c2f_num_blocks": 2,
        "intermediate_size": 20,
        "num_labels": 3,
    }
    network = RfDetrDinov2Config(**(DINOV2 | {"out_indices": [1, 3]} | (dinov2 or {})))
    return RfDetrConfig(backbone_config=network, **(tiny | changes))


def case(name: str, head: str, notes: str, inputs: Inputs, store: Store | None = None, **changes: Any) -> Case:
    written = changes.pop("written", {})
    return Case(f"rf_detr/{name}", f"RfDetr{head}", config(**changes), inputs, notes, store, written=written)


def goldens() -> Iterator[Case | VisionTaskCase]:
    yield case("base", "Model", "Two images, the second padded.", images((64, 80)))
    yield case("object-detection", OBJECTS, "Three classes, square images of the trained size.", images((48, 48), masked=False))
    plain = {"qkv_bias": False, "num_windows": 1, "use_swiglu_ffn": True, "apply_layernorm": False}
    other = {"activation_function": "relu", "decoder_activation_function": "gelu", "attention_bias": False, "hidden_expansion": 0.75, "layer_norm_eps": 1e-3}
    yield case("gated", OBJECTS, "One window; gated MLPs; other functions, no biases.", images((64, 48)), dinov2=plain, **other)
    yield case("segmentation", MASKS, "Masks of two images, the second padded.", images((64, 80)))
    yield case("masks", MASKS, "Larger masks by another function.", images((48, 64), masked=False), mask_downsample_ratio=3, segmentation_head_activation_function="relu")
    yield case("file", OBJECTS, "The names of published checkpoints.", images((64, 64)), stores.whole)
    yield case("base-file", "Model", "The names of published checkpoints of the base model.", images((48, 48)), stores.whole)
    yield case("segmentation-file", MASKS, "Masks, under the names of published checkpoints.", images((64, 64)), stores.whole)
    yield from tasks(config(num_labels=len(LABELS)), "rf_detr", "RfDetr", 0.5, lambda **_: DeformableDetrImageProcessorPil(size={"height": 64, "width": 80}))
    yield from backbone("rf_detr_dinov2", "RfDetrDinov2", DINOV2, (64, 48))
