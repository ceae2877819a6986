"""Granite Docling: images in one to three tiles, by a connector's coarse path or its fine one, with a density router or without."""

from __future__ import annotations

from random import Random

import numpy as np
from transformers import PreTrainedConfig

from weft_reference.inputs import floats
from weft_reference.models.llava import IMAGE
from weft_reference.models.vision_language.family import TEXT, Changes, Family, Images
from weft_reference.vision_tasks import newest

MULTIPLIERS: Changes = {
    "embedding_multiplier": 3.0,
    "attention_multiplier": 0.4,
    "residual_multiplier": 0.7,
    "logits_scaling": 2.5,
}
TOWER: Changes = {
    "hidden_size": 12,
    "intermediate_size": 18,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "image_size": 16,
    "patch_size": 4,
    "scale_factor": 2,
    "deepstack_visual_indexes": [0, 1],
}


class Docling(Family):
    """Features are as wide as the text, which the configuration checks."""

    def config(self, text: Changes | None = None, vision: Changes | None = None, **changes: object) -> PreTrainedConfig:
        width = (TEXT | self.text | (text or {}))["hidden_size"]
        return super().config(text, {"out_hidden_size": width} | (vision or {}), **changes)


def tiles(config: PreTrainedConfig, counts: list[int], key: str) -> Images:
    """Images of one to three tiles, and tiles that are padding; by the fine path, where there is one, of odd numbers and by name."""
    vision = config.vision_config
    size, fine = vision.image_size, vision.use_fine_route and (key.startswith("fine") or key[-1] in "13579")
    factor = vision.scale_factor // 2 if fine else vision.scale_factor
    each = (size // vision.patch_size // factor) ** 2
    numbers = iter(1 + index % 3 for index in range(sum(counts)))
    rows = [[next(numbers) for _ in range(count)] for count in counts]
    most = max(map(sum, rows))
    inputs = {
        "pixel_values": floats(f"pixels.{key}", (len(rows), most, vision.num_channels, size, size), -2.0, 2.0),
        "pixel_attention_mask": np.array([[index < sum(row) for index in range(most)] for row in rows]),
    }
    if fine:
        inputs["tile_fine_mask"] = np.ones(len(rows), bool)
    return Images(inputs, [each * count for row in rows for count in row])


def vary(rng: Random, config: PreTrainedConfig) -> Changes:
    """Other squares, paths, routers and layers whose states are added."""
    layers, fine = config.vision_config.num_hidden_layers, rng.random() < 0.7
    return {
        "text": {"embedding_multiplier": rng.choice((1.0, 2.5)), "logits_scaling": rng.choice((1.0, 3.0))},
        "vision": {
            "scale_factor": rng.choice((2, 4)),
            "deepstack_visual_indexes": rng.sample(range(layers + 1), rng.randint(0, layers)),
            "use_fine_route": fine,
        },
        "density_router_hidden_size": rng.choice((None, rng.randint(3, 20))) if fine else None,
        "tie_word_embeddings": rng.random() < 0.5,
    }


DOCLING = (
    Docling(
        "granite_docling",
        "GraniteDocling",
        MULTIPLIERS,
        TOWER,
        {"image_token_id": IMAGE, "density_router_hidden_size": 10},
        tiles,
        {
            "fine": ("The connector's fine path: four times as many tokens.", {}),
            "fine-larger": ("The same of larger squares.", {"vision": {"scale_factor": 4}}),
            "coarse-alone": (
                "Neither a fine path nor a router; every square of four by four patches is a token.",
                {"vision": {"use_fine_route": False, "scale_factor": 4}, "density_router_hidden_size": None},
            ),
            "layers": (
                "States of layers as listed, one of which is not there; another is added behind no layer of the text.",
                {"vision": {"num_hidden_layers": 3, "deepstack_visual_indexes": [2, 0, 1, 7], "hidden_act": "relu"}},
            ),
            "untied": ("Scores of tokens have a table of their own.", {"tie_word_embeddings": False}),
        },
        newest.granite_docling,
        vary,
    ),
)
