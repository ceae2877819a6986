"""ColQwen2: Qwen2-VL as a model within a model, whose tokens each have an embedding; each image is padded to as many patches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from transformers import ColQwen2Config

from weft_reference import stores
from weft_reference.cases import Case, Inputs
from weft_reference.models.vision_language.packed import PACKED

QWEN2_VL = next(family for family in PACKED if family.model == "qwen2_vl")


def padded(inputs: Inputs) -> Inputs:
    """Each image with as many patches as the largest has."""
    if "pixel_values" not in inputs:
        return inputs
    counts = np.asarray(inputs["image_grid_thw"]).prod(axis=1)
    images = np.split(np.asarray(inputs["pixel_values"]), np.cumsum(counts)[:-1])
    pixels = np.stack([np.pad(image, ((0, counts.max() - len(image)), (0, 0))) for image in images])
    return {**inputs, "pixel_values": pixels}


def goldens() -> Iterator[Case]:
    family = replace(QWEN2_VL, model="colqwen2", told=lambda _: {}, tasks=None, flat=False, extras={})
    for case in family.goldens():
        if case.path.removeprefix("colqwen2/") in ("next-token", "base"):
            continue
        config = ColQwen2Config(vlm_config=case.config.to_dict(), embedding_dim=10)
        store = stores.whole if case.store else None
        yield Case(case.path, "ColQwen2ForRetrieval", config, padded(case.inputs), case.notes, store)
