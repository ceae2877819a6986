"""CLIP's vision model, alone and with its projection."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from transformers import CLIPVisionConfig

from weft_reference import stores
from weft_reference.cases import Case, Store
from weft_reference.inputs import floats


def sizes(**changes: Any) -> dict[str, Any]:
    tiny = {
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 24,
        "projection_dim": 12,
        "image_size": 12,
        "patch_size": 4,
    }
    return tiny | changes


def images(config: CLIPVisionConfig, batch: int = 2, key: str = "pixels") -> dict[str, np.ndarray]:
    size = config.image_size
    return {"pixel_values": floats(key, (batch, config.num_channels, size, size), -2.0, 2.0)}


def case(name: str, head: str, notes: str, store: Store | None = None, **changes: Any) -> Case:
    chosen = CLIPVisionConfig(**sizes(**changes))
    return Case(f"clip-vision/{name}", f"CLIPVisionModel{head}", chosen, images(chosen), notes, store)


def goldens() -> Iterator[Case]:
    yield case("base", "", "Two images.")
    larger = {"pixel_values": floats("larger", (2, 3, 20, 16), -2.0, 2.0)}
    for name, head in (("interpolated", ""), ("interpolated-projection", "WithProjection")):
        told = {"interpolate_pos_encoding": True}
        chosen = CLIPVisionConfig(**sizes())
        notes = "Images larger than the configuration's."
        yield Case(f"clip-vision/{name}", f"CLIPVisionModel{head}", chosen, larger, notes, forward=told)
    yield case(
        "other-sizes",
        "",
        "The image's edge is no multiple of the patch's; another function, an epsilon that matters.",
        image_size=14,
        patch_size=3,
        hidden_size=20,
        num_attention_heads=5,
        num_hidden_layers=3,
        num_channels=1,
        hidden_act="gelu",
        layer_norm_eps=0.1,
    )
    yield case("projection", "WithProjection", "The vector in the shared space.")
    yield case(
        "file",
        "WithProjection",
        "model.safetensors as save_pretrained writes it.",
        store=stores.whole,
        num_hidden_layers=1,
    )
    yield case(
        "file-prefixed-base",
        "",
        "The base model read from a head's checkpoint: names begin with vision_model.",
        store=stores.from_head("CLIPVisionModelWithProjection"),
        num_hidden_layers=1,
    )
