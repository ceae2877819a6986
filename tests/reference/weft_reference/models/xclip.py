"""X-CLIP: videos and texts in one space."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from transformers import XCLIPConfig

from weft_reference import stores
from weft_reference.cases import Case, Store
from weft_reference.inputs import floats
from weft_reference.models import clip_text
from weft_reference.vision_tasks import VisionTaskCase
from weft_reference.vision_tasks.xclip import tasks


def text_sizes(**changes: Any) -> dict[str, Any]:
    """As CLIP's; the end of a text is the token with the largest id, whatever the configuration says."""
    tiny = clip_text.sizes(eos_token_id=2, **changes)
    del tiny["projection_dim"]
    return tiny


def vision_sizes(**changes: Any) -> dict[str, Any]:
    tiny = {
        "hidden_size": 12,
        "num_hidden_layers": 2,
        "num_attention_heads": 3,
        "intermediate_size": 20,
        "mit_hidden_size": 10,
        "mit_intermediate_size": 14,
        "mit_num_hidden_layers": 2,
        "mit_num_attention_heads": 2,
        "image_size": 8,
        "patch_size": 4,
        "num_frames": 3,
    }
    return tiny | changes


def config(text: dict[str, Any] | None = None, vision: dict[str, Any] | None = None, **changes: Any) -> XCLIPConfig:
    return XCLIPConfig(
        text_config=text_sizes(**(text or {})),
        vision_config=vision_sizes(**(vision or {})),
        **({"projection_dim": 10, "prompt_num_attention_heads": 5} | changes),
    )


def case(
    name: str,
    notes: str,
    chosen: XCLIPConfig,
    texts: dict[str, np.ndarray] | None = None,
    videos: int = 2,
    store: Store | None = None,
) -> Case:
    vision = chosen.vision_config
    shape = (videos, vision.num_frames, vision.num_channels, vision.image_size, vision.image_size)
    inputs = {"pixel_values": floats("videos", shape, -2.0, 2.0)} | (clip_text.texts() if texts is None else texts)
    return Case(f"xclip/{name}", "XCLIPModel", chosen, inputs, notes, store)


def goldens() -> Iterator[Case | VisionTaskCase]:
    yield case("base", "Two videos, two texts, the second padded.", config())
    texts = {"input_ids": clip_text.texts((7, 7, 7), "none")["input_ids"]}
    yield case("more-texts", "One video, three texts, no mask.", config(), texts, 1)
    yield case(
        "other-sizes",
        "More frames, one layer in the frames' transformer, three prompt layers with another function, other epsilons.",
        config(
            {"layer_norm_eps": 0.02},
            {"num_frames": 5, "mit_num_hidden_layers": 1, "layer_norm_eps": 0.1, "hidden_act": "gelu"},
            prompt_layers=3,
            prompt_hidden_act="relu",
            prompt_alpha=0.5,
            prompt_num_attention_heads=2,
        ),
    )
    small = config({"num_hidden_layers": 1}, {"num_hidden_layers": 1})
    yield case("file", "model.safetensors as save_pretrained writes it.", small, store=stores.whole)
    yield from tasks(config)
