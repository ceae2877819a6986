"""CLIP: images and texts in one space, and classes of images."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from transformers import CLIPConfig

from weft_reference import stores
from weft_reference.cases import Case, Store
from weft_reference.inputs import floats
from weft_reference.models import clip_text, clip_vision
from weft_reference.vision_tasks import VisionTaskCase
from weft_reference.vision_tasks.clip import tasks


def config(text: dict[str, Any] | None = None, vision: dict[str, Any] | None = None, **changes: Any) -> CLIPConfig:
    return CLIPConfig(
        text_config=clip_text.sizes(**(text or {})),
        vision_config=clip_vision.sizes(**({"hidden_size": 12, "num_attention_heads": 3} | (vision or {}))),
        **({"projection_dim": 10} | changes),
    )


def case(
    name: str,
    model_class: str,
    notes: str,
    chosen: CLIPConfig,
    texts: dict[str, np.ndarray] | None = None,
    images: int = 2,
    store: Store | None = None,
) -> Case:
    inputs = clip_vision.images(chosen.vision_config, images)
    if model_class == "CLIPModel":
        inputs |= clip_text.texts() if texts is None else texts
    return Case(f"clip/{name}", model_class, chosen, inputs, notes, store)


def goldens() -> Iterator[Case | VisionTaskCase]:
    yield case("base", "CLIPModel", "Two images, two texts, the second padded.", config())
    yield case(
        "more-texts",
        "CLIPModel",
        "Two images, three texts, no mask.",
        config(),
        {"input_ids": clip_text.texts((7, 7, 7), "none")["input_ids"]},
    )
    yield case(
        "end-by-largest-id",
        "CLIPModel",
        "eos_token_id 2, as in old configurations; other functions.",
        config({"eos_token_id": 2, "hidden_act": "gelu"}, {"hidden_act": "relu", "layer_norm_eps": 0.1}),
    )
    chosen = config({"hidden_act": "gelu"})
    written = {"text_config": {"model_type": "clip_text_model"}, "text_config_dict": chosen.text_config.to_dict()}
    notes = "The text configuration as `text_config_dict`, which goes before `text_config`."
    inputs = clip_text.texts() | clip_vision.images(chosen.vision_config, 2)
    yield Case("clip/config-dict", "CLIPModel", chosen, inputs, notes, written=written)
    given = clip_text.texts() | {"pixel_values": floats("larger", (2, 3, 20, 16), -2.0, 2.0)}
    told = {"interpolate_pos_encoding": True}
    yield Case("clip/interpolated", "CLIPModel", config(), given, "Images larger than the configuration's.", forward=told)
    yield case("image-classification", "CLIPForImageClassification", "The mean of the patches.", config(num_labels=3))
    yield case(
        "file",
        "CLIPModel",
        "model.safetensors as save_pretrained writes it.",
        config({"num_hidden_layers": 1}, {"num_hidden_layers": 1}),
        store=stores.whole,
    )
    yield from tasks()
