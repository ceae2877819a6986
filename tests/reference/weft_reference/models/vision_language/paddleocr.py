"""PaddleOCR-VL: images of any size as one list of patches, row after row."""

from __future__ import annotations

import numpy as np
from transformers import PreTrainedConfig

from weft_reference.inputs import floats
from weft_reference.models.llava import IMAGE
from weft_reference.models.vision_language.family import Changes, Family, Images
from weft_reference.models.vision_language.packed import ROPE, modalities, sections
from weft_reference.vision_tasks import vision_language as tasks


def rows_of_patches(config: PreTrainedConfig, counts: list[int], key: str) -> Images:
    """Images of several sizes as one list of patches, row after row."""
    vision = config.vision_config
    merge = vision.spatial_merge_size
    grids = [[1, merge * (1 + index % 3), merge * (2 + index % 2)] for index in range(sum(counts))]
    patches = sum(rows * columns for _, rows, columns in grids)
    pixels = floats(f"pixels.{key}", (patches, vision.num_channels, vision.patch_size, vision.patch_size), -2.0, 2.0)
    features = [rows * columns // merge**2 for _, rows, columns in grids]
    return Images({"pixel_values": pixels, "image_grid_thw": np.array(grids, np.int64)}, features)


PADDLEOCR: Changes = {
    "hidden_size": 16,
    "intermediate_size": 18,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "image_size": 16,
    "patch_size": 4,
}

PADDLEOCR_VL = (
    Family(
        "paddleocr_vl",
        "PaddleOCRVL",
        {"head_dim": 8, "rope_parameters": ROPE},
        PADDLEOCR,
        {"image_token_id": IMAGE},
        rows_of_patches,
        {
            "every-patch": ("Every patch is a token; three positions a side.", {"vision": {"spatial_merge_size": 1, "image_size": 12}}),
            "biases": ("The text has biases; its scores of tokens a table of their own.", {"text": {"use_bias": True}, "tie_word_embeddings": False}),
        },
        tasks=tasks.paddleocr_vl,
        vary=lambda rng, _: {
            "text": sections(rng, 8),
            "vision": {"spatial_merge_size": rng.choice((1, 2, 3)), "image_size": rng.choice((8, 16, 20))},
        },
        told=modalities,
    ),
)
