"""Decoders that read images of any size as patches side by side, of which squares become one, one entry a model."""

from __future__ import annotations

from random import Random

import numpy as np
from transformers import PreTrainedConfig

from weft_reference.cases import Inputs
from weft_reference.inputs import floats
from weft_reference.models.llava import IMAGE
from weft_reference.models.vision_language.delta import DELTA
from weft_reference.models.vision_language.family import Changes, Family, Images

TOWER: Changes = {
    "hidden_size": 12,
    "intermediate_size": 18,
    "num_hidden_layers": 3,
    "num_attention_heads": 3,
    "image_size": 20,
    "patch_size": 4,
}


def side_by_side(config: PreTrainedConfig, counts: list[int], key: str) -> Images:
    """Images of several sizes, whose patches are one row of pixels."""
    edge = 2 if config.downsample_mode == "4x" else 4
    sizes = [[edge * (1 + index % 2), edge * (2 - index % 2)] for index in range(sum(counts))]
    sizes[-1] = [edge, edge]
    features = [rows * columns // edge**2 for rows, columns in sizes]
    return Images(pixels_of(config, sizes, key), features)


def pixels_of(config: PreTrainedConfig, sizes: list[list[int]], key: str) -> Inputs:
    """The patches of images of these rows and columns of them, side by side."""
    patch, patches = config.vision_config.patch_size, sum(rows * columns for rows, columns in sizes)
    pixels = floats(f"pixels.{key}", (1, 3, patch, patches * patch), -2.0, 2.0)
    return {"pixel_values": pixels, "target_sizes": np.array(sizes, np.int64)}


def tower(rng: Random, _: PreTrainedConfig) -> Changes:
    """Another layer behind which patches become one, or none."""
    layers = rng.randint(2, 4)
    heads = rng.choice((1, 2, 4))
    return {
        "text": {"linear_num_key_heads": rng.choice((1, 2, 4))},
        "vision": {
            "num_hidden_layers": layers,
            "num_attention_heads": heads,
            "hidden_size": heads * 8,
            "image_size": rng.choice((16, 20)),
        },
        "insert_layer_id": rng.randint(0, layers - 1),
        "downsample_mode": rng.choice(("16x", "4x")),
        "tie_word_embeddings": rng.random() < 0.5,
    }


def nested(model: str, prefix: str, other: str) -> Family:
    return Family(
        model,
        prefix,
        {"model_type": "qwen3_5_text"} | DELTA,
        TOWER,
        {"image_token_id": IMAGE, "insert_layer_id": 1},
        side_by_side,
        {
            "first-layer": (
                "Patches become one behind the first layer.",
                {"insert_layer_id": 0, "downsample_mode": "16x"},
            ),
            "other-mode": ("The other number of patches to a feature.", {"downsample_mode": other}),
        },
        vary=tower,
    )


NESTED = (nested("minicpmv4_6", "MiniCPMV4_6", "4x"), nested("minicpm_ocr", "MiniCPMOcr", "16x"))
