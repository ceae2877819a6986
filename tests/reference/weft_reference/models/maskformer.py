"""MaskFormer: queries with classes and masks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import transformers
from transformers import MaskFormerImageProcessorPil, PreTrainedConfig

from weft_reference import stores
from weft_reference.cases import Case, Store
from weft_reference.inputs import floats
from weft_reference.models.mask2former import resnet
from weft_reference.vision_tasks import VisionTaskCase
from weft_reference.vision_tasks.segmentation import universal


def swin(**changes: Any) -> PreTrainedConfig:
    """Windows of three patches, which do not fit the maps."""
    sizes = {"embed_dim": 8, "depths": [1, 2, 1, 1], "num_heads": [1, 2, 2, 4], "window_size": 3, "image_size": 64, "patch_size": 4}
    return transformers.SwinConfig(**(sizes | changes))


def config(decoder: dict[str, Any] | None = None, wide: int = 10, **changes: Any) -> PreTrainedConfig:
    sizes = {"d_model": 16, "num_queries": 5, "decoder_layers": 2, "decoder_attention_heads": 2, "decoder_ffn_dim": 20}
    made = transformers.DetrConfig(**(sizes | (decoder or {})), backbone_config=resnet())
    maps = {"fpn_feature_size": 32, "mask_feature_size": 12, "num_labels": 3}
    return transformers.MaskFormerConfig(**({"backbone_config": resnet(hidden_sizes=[4, 6, 8, wide]), "decoder_config": made} | maps | changes))


def goldens() -> Iterator[Case | VisionTaskCase]:
    def one(name: str, head: str, notes: str, size: tuple[int, int] = (64, 64), store: Store | None = None, **changes: Any) -> Case:
        pixels = {"pixel_values": floats("pixels", (2, 3, *size), -2.0, 2.0)}
        return Case(f"maskformer/{name}", f"MaskFormer{head}", config(**changes), pixels, notes, store)

    segmentation = "ForInstanceSegmentation"
    yield one("base", "Model", "Hidden states.")
    yield one("segmentation", segmentation, "Images of odd rows and columns.", (70, 101))
    same = {"auxiliary_loss": True, "activation_function": "gelu"}
    yield one("auxiliary", segmentation, "The backbone's width is the decoder's; a norm behind each layer.", decoder=same, wide=16)
    yield one("file", segmentation, "model.safetensors as save_pretrained writes it.", store=stores.whole)
    yield one("swin", segmentation, "A Swin, whose windows need padding.", (52, 72), backbone_config=swin())
    yield one("swin-file", segmentation, "A Swin; model.safetensors as save_pretrained writes it.", store=stores.whole, backbone_config=swin())
    processor = MaskFormerImageProcessorPil(size={"shortest_edge": 60, "longest_edge": 90})
    some = {"threshold": 0.02, "mask_threshold": 0.01, "overlap_mask_area_threshold": 0.1}
    yield universal("maskformer", "MaskFormerForInstanceSegmentation", config(), processor, some, 0.01)
