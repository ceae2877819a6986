"""SigLIP: whether an image and a text belong together, pair by pair, and classes of images."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from transformers import SiglipConfig

from weft_reference import stores
from weft_reference.cases import Case, Store
from weft_reference.inputs import floats
from weft_reference.models import clip_vision, siglip_text, siglip_vision
from weft_reference.vision_tasks import VisionTaskCase
from weft_reference.vision_tasks.siglip import tasks


def config(text: dict[str, Any] | None = None, vision: dict[str, Any] | None = None, **changes: Any) -> SiglipConfig:
    return SiglipConfig(
        text_config=siglip_text.sizes(**(text or {})), vision_config=siglip_vision.sizes(**(vision or {})), **changes
    )


def case(
    name: str,
    model_class: str,
    notes: str,
    chosen: SiglipConfig,
    texts: dict[str, np.ndarray] | None = None,
    store: Store | None = None,
) -> Case:
    inputs = clip_vision.images(chosen.vision_config)
    if model_class == "SiglipModel":
        inputs |= siglip_text.texts() if texts is None else texts
    return Case(f"siglip/{name}", model_class, chosen, inputs, notes, store)


def goldens() -> Iterator[Case | VisionTaskCase]:
    yield case("base", "SiglipModel", "Two images, two texts, the second padded.", config())
    yield case(
        "more-texts",
        "SiglipModel",
        "Two images, three texts, padding seen.",
        config(),
        {"input_ids": siglip_text.texts((7, 5, 3))["input_ids"]},
    )
    yield case(
        "other-widths",
        "SiglipModel",
        "Towers of their own widths, which the text's projection brings together; other functions.",
        config(
            {"hidden_size": 12, "projection_size": 20, "hidden_act": "gelu"},
            {"hidden_size": 20, "num_attention_heads": 5, "hidden_act": "relu", "layer_norm_eps": 0.1},
        ),
    )
    given = siglip_text.texts() | {"pixel_values": floats("larger", (2, 3, 20, 16), -2.0, 2.0)}
    told = {"interpolate_pos_encoding": True}
    yield Case("siglip/interpolated", "SiglipModel", config(), given, "Images larger than the configuration's.", forward=told)
    classes = "SiglipForImageClassification"
    yield case("image-classification", classes, "The mean of the patches.", config(num_labels=3))
    yield case(
        "image-classification-no-head", classes, "No probe in the checkpoint.", config(vision={"vision_use_head": False}, num_labels=3)
    )
    small = config({"num_hidden_layers": 1}, {"num_hidden_layers": 1})
    yield case("file", "SiglipModel", "model.safetensors as save_pretrained writes it.", small, store=stores.whole)
    half = stores.as_dtype(torch.bfloat16)
    yield case("file-bf16", "SiglipModel", "Weights in bfloat16.", small, store=half)
    yield from tasks()
