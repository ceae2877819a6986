"""EfficientLoFTR: matching points of two images."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import transformers
from transformers import PreTrainedConfig

from weft_reference import stores
from weft_reference.cases import Case, Store
from weft_reference.inputs import floats
from weft_reference.vision_tasks import VisionTaskCase
from weft_reference.vision_tasks.keypoints import keypoint_matching

MODELS = ("efficientloftr",)


def config(**changes: Any) -> PreTrainedConfig:
    widths = {"stage_num_blocks": [1, 2, 1, 2], "out_features": [8, 12, 16, 32], "hidden_size": 32}
    matching = {"num_attention_layers": 2}
    matching |= {"fine_matching_slice_dim": 4, "coarse_matching_threshold": 2e-3, "coarse_matching_border_removal": 0}
    return transformers.EfficientLoFTRConfig(**(widths | matching | changes))


def goldens() -> Iterator[Case | VisionTaskCase]:
    def one(
        head: str,
        name: str,
        notes: str,
        size: tuple[int, int] = (64, 96),
        store: Store | None = None,
        **changes: Any,
    ) -> Case:
        pixels = {"pixel_values": floats("pairs", (2, 2, 3, *size), 0.0, 1.0)}
        return Case(f"efficientloftr/{name}", f"EfficientLoFTR{head}", config(**changes), pixels, notes, store)

    yield one("Model", "base", "Two pairs of images.")
    rope = {"rope_type": "default", "rope_theta": 100.0, "partial_rotary_factor": 1.0}
    other: dict[str, Any] = {"attention_bias": True, "num_attention_heads": 2, "rope_parameters": rope}
    yield one("Model", "heads", "Biases, two heads, other wavelengths.", **other)
    matching = "ForKeypointMatching"
    yield one(matching, "keypoint-matching", "Two pairs of images, of which mutual neighbours match.")
    warm = {"coarse_matching_temperature": 40.0, "coarse_matching_threshold": 1e-5}
    yield one(matching, "warm", "A temperature at which many places match.", **warm)
    other = {"coarse_matching_border_removal": 2, "coarse_matching_threshold": 1e-4}
    other |= {"fine_kernel_size": 6, "batch_norm_eps": 1e-2}
    yield one(matching, "borders", "None at the edges, by a threshold; smaller windows.", (96, 96), **other)
    other = {"coarse_matching_skip_softmax": True, "coarse_matching_temperature": 0.5}
    other |= {"fine_matching_regress_temperature": 2.0}
    yield one(matching, "products", "Products of features are scores.", (64, 64), **other)
    yield one(matching, "file", "model.safetensors as save_pretrained writes it.", (64, 64), stores.whole)
    warm = config(coarse_matching_temperature=40.0, coarse_matching_threshold=1e-5)
    processor = transformers.EfficientLoFTRImageProcessorPil(size={"height": 64, "width": 96})
    yield keypoint_matching("efficientloftr", f"EfficientLoFTR{matching}", warm, processor, 2e-4)
