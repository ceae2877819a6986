"""SuperPoint, SuperGlue and LightGlue: keypoints of images, and those of two images that show the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import transformers
from transformers import PreTrainedConfig

from weft_reference import stores
from weft_reference.cases import Case, Store
from weft_reference.inputs import floats
from weft_reference.vision_tasks import VisionTaskCase
from weft_reference.vision_tasks.keypoints import keypoint_detection, keypoint_matching

MODELS = ("superpoint", "superglue", "lightglue")

DETECTOR: dict[str, Any] = {"encoder_hidden_sizes": [4, 6, 8, 8], "decoder_hidden_size": 12}
DETECTOR |= {"descriptor_decoder_dim": 16, "keypoint_threshold": 0.0175}


def detector(**changes: Any) -> PreTrainedConfig:
    return transformers.SuperPointConfig(**(DETECTOR | changes))


def pairs(size: tuple[int, int], batch: int = 2) -> dict[str, Any]:
    return {"pixel_values": floats("pairs", (batch, 2, 3, *size), 0.0, 1.0)}


def superpoint() -> Iterator[Case]:
    def one(
        name: str, notes: str, size: tuple[int, int] = (48, 64), store: Store | None = None, **changes: Any
    ) -> Case:
        pixels = {"pixel_values": floats("pixel_values", (2, 3, *size), 0.0, 1.0)}
        return Case(f"superpoint/{name}", "SuperPointForKeypointDetection", detector(**changes), pixels, notes, store)

    yield one("base", "Two images, of which one has more keypoints.")
    yield one(
        "strongest",
        "The strongest ones, in the order of their scores, of images whose sizes are no multiples of 8.",
        (45, 67),
        max_keypoints=9,
    )
    yield one("wide", "A wider radius and border.", nms_radius=6, border_removal_distance=10)
    yield one("close", "No suppression.", (24, 32), nms_radius=0, border_removal_distance=0, keypoint_threshold=0.0185)
    yield one("file", "model.safetensors as save_pretrained writes it.", (24, 32), stores.whole)


def superglue_config(**changes: Any) -> PreTrainedConfig:
    sizes = {"hidden_size": 16, "keypoint_encoder_sizes": [4, 6], "gnn_layers_types": ["self", "cross", "self"]}
    sizes |= {"num_attention_heads": 2, "sinkhorn_iterations": 5}
    detector_config = detector(**changes.pop("detector", {}))
    return transformers.SuperGlueConfig(keypoint_detector_config=detector_config, **(sizes | changes))


def superglue() -> Iterator[Case]:
    def one(
        name: str, notes: str, size: tuple[int, int] = (32, 48), store: Store | None = None, **changes: Any
    ) -> Case:
        config = superglue_config(**changes)
        return Case(f"superglue/{name}", "SuperGlueForKeypointMatching", config, pairs(size), notes, store)

    yield one("base", "Two pairs of images, whose keypoints are padded to the most of an image.")
    yield one(
        "threshold",
        "A threshold below which nothing matches, of few keypoints.",
        detector={"max_keypoints": 7},
        matching_threshold=0.12,
        num_attention_heads=4,
    )
    yield one(
        "cross",
        "Cross-attention first, more iterations.",
        (40, 40),
        gnn_layers_types=["cross", "self", "cross"],
        sinkhorn_iterations=20,
    )
    yield one("file", "model.safetensors as save_pretrained writes it.", (24, 32), stores.whole)


def lightglue_config(**changes: Any) -> PreTrainedConfig:
    sizes = {"descriptor_dim": 16, "num_hidden_layers": 3, "num_attention_heads": 2, "filter_threshold": 0.002}
    sizes |= {"depth_confidence": 1.0, "width_confidence": 1.0}
    detector_config = detector(**changes.pop("detector", {}))
    return transformers.LightGlueConfig(keypoint_detector_config=detector_config, **(sizes | changes))


def sure(times: float, more: float) -> Store:
    """Confidences of keypoints that differ more and are higher, and chances of a match that are lower."""

    def store(model: transformers.PreTrainedModel, folder: Path) -> None:
        for layer in model.token_confidence:
            layer.token.weight.mul_(times)
            layer.token.bias.fill_(more)
        for layer in model.match_assignment_layers:
            layer.matchability.bias.fill_(-more)
        stores.whole(model, folder)

    return store


def lightglue() -> Iterator[Case]:
    def one(
        name: str,
        notes: str,
        size: tuple[int, int] = (32, 48),
        store: Store | None = None,
        batch: int = 2,
        **changes: Any,
    ) -> Case:
        config, inputs = lightglue_config(**changes), pairs(size, batch)
        return Case(f"lightglue/{name}", "LightGlueForKeypointMatching", config, inputs, notes, store)

    yield one("base", "A pair of images through all layers.", batch=1)
    few = {"max_keypoints": 12}
    heads: dict[str, Any] = {"descriptor_dim": 24, "num_key_value_heads": 1, "attention_bias": False, "detector": few}
    yield one("projected", "Descriptors of another width, other heads.", **heads)
    notes = "Keypoints that are surely without a match leave layer by layer."
    yield one("pruned", notes, store=sure(1.0, 2.0), width_confidence=0.5, num_hidden_layers=4, filter_threshold=1e-5)
    notes = "Pairs that are sure of their keypoints stop early."
    stop = {"depth_confidence": 0.5, "width_confidence": 0.5}
    yield one("stopped", notes, store=sure(2.0, 2.0), filter_threshold=1e-4, **stop)
    yield one("stopped-at-once", notes, store=sure(9.0, 5.0), batch=1, filter_threshold=1e-4, **stop)
    yield one("file", "model.safetensors as save_pretrained writes it.", (24, 32), stores.whole, num_key_value_heads=2)


SIZE = {"height": 32, "width": 40}


def tasks() -> Iterator[VisionTaskCase]:
    processor = transformers.SuperPointImageProcessorPil(size=SIZE, do_grayscale=True)
    yield keypoint_detection("superpoint", "SuperPointForKeypointDetection", detector(), processor)
    processor = transformers.SuperGlueImageProcessorPil(size=SIZE)
    yield keypoint_matching("superglue", "SuperGlueForKeypointMatching", superglue_config(), processor, 0.05)
    processor = transformers.LightGlueImageProcessorPil(size=SIZE)
    yield keypoint_matching("lightglue", "LightGlueForKeypointMatching", lightglue_config(), processor, 0.02)


def goldens() -> Iterator[Case | VisionTaskCase]:
    yield from tasks()
    yield from superpoint()
    yield from superglue()
    yield from lightglue()
