"""Mask2Former: queries that attend within their masks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import transformers
from transformers import Mask2FormerImageProcessorPil, PreTrainedConfig

from weft_reference import stores
from weft_reference.cases import Case, Store
from weft_reference.inputs import floats
from weft_reference.vision_tasks import VisionTaskCase
from weft_reference.vision_tasks.segmentation import universal

STAGES = {"out_features": ["stage1", "stage2", "stage3", "stage4"]}
SWIN = {"image_size": 64, "embed_dim": 4, "depths": [1, 1, 1, 1], "num_heads": [1, 1, 2, 2], "window_size": 4}


def swin(**changes: Any) -> PreTrainedConfig:
    return transformers.SwinConfig(**(SWIN | STAGES | changes))


def resnet(**changes: Any) -> PreTrainedConfig:
    sizes = {"embedding_size": 4, "hidden_sizes": [4, 6, 8, 10], "depths": [1, 1, 1, 1], "layer_type": "basic"}
    return transformers.ResNetConfig(**(sizes | STAGES | changes))


def config(backbone: PreTrainedConfig, **changes: Any) -> PreTrainedConfig:
    sizes = {"feature_size": 32, "mask_feature_size": 12, "hidden_dim": 16, "encoder_feedforward_dim": 20, "dim_feedforward": 24}
    counts = {"encoder_layers": 2, "decoder_layers": 5, "num_attention_heads": 2, "num_queries": 5, "num_labels": 3}
    return transformers.Mask2FormerConfig(backbone_config=backbone, **(sizes | counts | changes))


def goldens() -> Iterator[Case | VisionTaskCase]:
    def one(name: str, head: str, notes: str, backbone: PreTrainedConfig, size: tuple[int, int] = (64, 64), store: Store | None = None, **changes: Any) -> Case:
        pixels = {"pixel_values": floats("pixels", (2, 3, *size), -2.0, 2.0)}
        return Case(f"mask2former/{name}", f"Mask2Former{head}", config(backbone, **changes), pixels, notes, store)

    segmentation = "ForUniversalSegmentation"
    yield one("base", "Model", "Hidden states, and masks before and after each layer.", swin())
    yield one("swin", segmentation, "A Swin; images of its size.", swin())
    yield one("any-size", segmentation, "A Swin; images of another size than the configuration's.", swin(), (50, 91))
    yield one("resnet", segmentation, "A ResNet; images of odd rows and columns.", resnet(), (70, 101), hidden_dim=32)
    pre = {"pre_norm": True, "hidden_dim": 32, "enforce_input_projection": True, "activation_function": "gelu"}
    yield one("pre-norm", segmentation, "Norms before attention; projections where widths are equal.", resnet(), (64, 96), **pre)
    strides = {"feature_strides": [4, 16, 32, 64], "decoder_layers": 2}
    yield one("larger-strides", segmentation, "Two further levels of the pyramid; one layer.", resnet(downsample_in_first_stage=False), (64, 64), **strides)
    yield one("file", segmentation, "model.safetensors as save_pretrained writes it.", swin(), store=stores.whole)
    processor = Mask2FormerImageProcessorPil(size={"shortest_edge": 60, "longest_edge": 90})
    some = {"threshold": 0.02, "mask_threshold": 0.01, "overlap_mask_area_threshold": 0.1}
    yield universal("mask2former", "Mask2FormerForUniversalSegmentation", config(resnet(), hidden_dim=32), processor, some, 0.01)
