"""SigLIP 2: images of all shapes as patches, texts as SigLIP reads them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from transformers import Siglip2Config

from weft_reference import stores
from weft_reference.cases import Case, Store
from weft_reference.inputs import floats
from weft_reference.models import siglip_text, siglip_vision
from weft_reference.vision_tasks import VisionTaskCase
from weft_reference.vision_tasks.siglip2 import tasks

PATCHES = 12


def vision(**changes: Any) -> dict[str, Any]:
    """Nine learned places; patches of four pixels."""
    sizes = {name: value for name, value in siglip_vision.sizes().items() if name != "image_size"}
    return sizes | {"num_patches": 9} | changes


def config(text: dict[str, Any] | None = None, of_vision: dict[str, Any] | None = None, **changes: Any) -> Siglip2Config:
    return Siglip2Config(
        text_config=siglip_text.sizes(**(text or {})), vision_config=vision(**(of_vision or {})), **changes
    )


def images(chosen: Siglip2Config, *shapes: tuple[int, int], mask: bool = True) -> dict[str, np.ndarray]:
    """Patches of images with so many rows and columns, filled up."""
    sizes = chosen.vision_config
    count = (len(shapes), PATCHES)
    given = {
        "pixel_values": floats("patches", (*count, sizes.num_channels * sizes.patch_size**2), -2.0, 2.0),
        "pixel_attention_mask": np.stack([np.arange(PATCHES) < rows * columns for rows, columns in shapes]).astype(np.int64),
        "spatial_shapes": np.array(shapes, np.int64),
    }
    return given if mask else {name: value for name, value in given.items() if name != "pixel_attention_mask"}


def case(
    name: str,
    notes: str,
    *shapes: tuple[int, int],
    chosen: Siglip2Config | None = None,
    head: str = "Model",
    mask: bool = True,
    store: Store | None = None,
) -> Case:
    chosen = chosen or config()
    inputs = images(chosen, *shapes, mask=mask) | (siglip_text.texts() if head == "Model" else {})
    return Case(f"siglip2/{name}", f"Siglip2{head}", chosen, inputs, notes, store)


def goldens() -> Iterator[Case | VisionTaskCase]:
    yield case("base", "Two images of other shapes than that of the learned places, filled up.", (2, 4), (5, 2))
    yield case("learned-shape", "One image of as many places as were learned, and one all of a row.", (3, 3), (1, 12))
    yield case("no-mask", "Images that fill all patches.", (3, 4), (6, 2), mask=False)
    sixteen = config(
        of_vision={"num_patches": 64, "hidden_size": 20, "num_attention_heads": 5, "hidden_act": "relu", "layer_norm_eps": 0.1},
        text={"projection_size": 20},
    )
    yield case("smaller", "Each place is a mean of many learned ones; other functions.", (2, 3), (1, 1), chosen=sixteen)
    classes = "ForImageClassification"
    three = config(num_labels=3)
    yield case("image-classification", "The mean of each image's own patches.", (2, 4), (5, 2), head=classes, chosen=three)
    notes = "The mean of all patches, no probe in the checkpoint."
    bare = config(of_vision={"vision_use_head": False}, num_labels=3)
    yield case("image-classification-no-mask", notes, (3, 4), (4, 3), head=classes, chosen=bare, mask=False)
    small = config({"num_hidden_layers": 1}, {"num_hidden_layers": 1})
    notes = "model.safetensors as save_pretrained writes it."
    yield case("file", notes, (2, 4), (5, 2), chosen=small, store=stores.whole)
    half = stores.as_dtype(torch.float16)
    yield case("file-f16", "Weights in half precision.", (2, 4), (5, 2), chosen=small, store=half)
    yield from tasks(config)
