"""HunyuanOCR: images of any size whose squares of patches stand row after row, with newlines behind rows and marks around images."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random

import numpy as np
from transformers import PreTrainedConfig

from weft_reference.cases import Case
from weft_reference.inputs import floats
from weft_reference.models.llava import IMAGE
from weft_reference.models.vision_language.family import Changes, Family, Images
from weft_reference.models.vision_language.packed import modalities
from weft_reference.vision_tasks import VisionTaskCase, newest

ALPHA: Changes = {"rope_type": "dynamic", "rope_theta": 1e4, "alpha": 1000.0, "factor": 1.0}
ROPE: Changes = ALPHA | {"mrope_section": [1, 1, 1, 1]}
TOWER: Changes = {
    "hidden_size": 12,
    "intermediate_size": 18,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "patch_size": 4,
    "max_image_size": 12,
}


def rows_with_newlines(config: PreTrainedConfig, counts: list[int], key: str) -> Images:
    """Images of several sizes as one list of patches, row after row."""
    vision = config.vision_config
    merge = vision.spatial_merge_size
    grids = [[1, 2 * merge if index % 2 else merge * 1, merge * (1 + index % 3)] for index in range(sum(counts))]
    grids = [[1, max(rows, 2), max(columns, 2)] for _, rows, columns in grids]
    patches = sum(rows * columns for _, rows, columns in grids)
    pixels = floats(f"pixels.{key}", (patches, vision.num_channels * vision.patch_size**2), -2.0, 2.0)
    features = [rows // merge * (columns // merge + 1) + 2 for _, rows, columns in grids]
    return Images({"pixel_values": pixels, "image_grid_thw": np.array(grids, np.int64)}, features)


def published(family: Family) -> Iterator[Case | VisionTaskCase]:
    """The names that published files have; the task."""
    case = family.case("xdrope", "ForConditionalGeneration", "Rotary position embeddings as published files say them.", [[2], [1]])
    text = case.config.text_config.to_dict()
    scaling = {"type": "xdrope", "alpha": 1000.0, "factor": 1.0, "xdrope_section": ROPE["mrope_section"]}
    text |= {"rope_theta": 1e4, "rope_scaling": scaling}
    del text["rope_parameters"]
    yield replace(case, written={"text_config": text})
    yield from newest.hunyuan_vl(family)


def vary(rng: Random, config: PreTrainedConfig) -> Changes:
    """Other sections of three or four axes, another learned grid."""
    axes = rng.choice((3, 4))
    cuts = sorted(rng.sample(range(1, 6), axes - 1))
    section = [end - start for start, end in zip([0, *cuts], [*cuts, 6], strict=True)]
    rope = rng.choice((ALPHA, {"rope_type": "default", "rope_theta": 1e4})) | {"mrope_section": section}
    vision = {"max_image_size": rng.choice((8, 12, 20)), "spatial_merge_size": rng.choice((1, 2))}
    return {"text": {"head_dim": 12, "rope_parameters": rope}, "vision": vision}


THREE: Changes = {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [2, 1, 1]}
UNTIED: Changes = {"tie_word_embeddings": False, "text": {"tie_word_embeddings": False}}
HUNYUAN = (
    Family(
        "hunyuan_vl",
        "HunYuanVL",
        {"head_dim": 8, "rope_parameters": ROPE},
        TOWER,
        {"image_token_id": IMAGE},
        rows_with_newlines,
        {
            "three-axes": ("Columns, rows and images without positions in the text; plain frequencies.", {"text": {"rope_parameters": THREE}}),
            "every-patch": ("Every patch is a token; five positions a side.", {"vision": {"spatial_merge_size": 1, "max_image_size": 20}}),
            "untied": ("Scores of tokens have a table of their own.", UNTIED),
        },
        tasks=published,
        vary=vary,
        told=modalities,
    ),
)
