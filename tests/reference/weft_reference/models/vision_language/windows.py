"""Granite 4 Vision: tiles of images, of which several layers are read window by window."""

from __future__ import annotations

from random import Random

import numpy as np
import torch
from transformers import PreTrainedConfig
from transformers.models.llava_next.modeling_llava_next import image_size_to_num_patches

from weft_reference.cases import ruled_model
from weft_reference.inputs import floats
from weft_reference.models.llava import IMAGE
from weft_reference.models.vision_language.family import SIGLIP, Changes, Family, Images
from weft_reference.vision_tasks import image_prompts

GRID = [[16, 32], [32, 16], [32, 32], [48, 16], [48, 48]]
SIZES = [[18, 60], [66, 22], [60, 58], [40, 40]]
TEXT: Changes = {
    "num_hidden_layers": 5,
    "max_position_embeddings": 2000,
    "embedding_multiplier": 3.0,
    "attention_multiplier": 0.4,
    "residual_multiplier": 0.7,
    "logits_scaling": 2.5,
}
QFORMER: Changes = {"model_type": "blip_2_qformer", "intermediate_size": 20, "num_hidden_layers": 1, "cross_attention_frequency": 1}
CLIP: Changes = {
    "model_type": "clip_vision_model",
    "hidden_size": 128,
    "intermediate_size": 18,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
}


def windows(config: PreTrainedConfig, counts: list[int], key: str) -> Images:
    """Wide, tall, large and square images in tiles."""
    vision = config.vision_config
    sizes = [SIZES[index % len(SIZES)] for index in range(sum(counts))]
    tiles = [image_size_to_num_patches(size, GRID, vision.image_size) for size in sizes]
    shape = (len(sizes), max(tiles), vision.num_channels, vision.image_size, vision.image_size)
    inputs = {"pixel_values": floats(f"tiles.{key}", shape, -2.0, 2.0), "image_sizes": np.array(sizes, np.int64)}
    model, _ = ruled_model("Granite4VisionModel", config)
    query, window = map(int, config.downsample_rate.split("/"))
    each = (vision.image_size // vision.patch_size * query // window) ** 2
    rows = [torch.zeros(count, each, config.text_config.hidden_size) for count in tiles]
    packed = model.pack_image_features(rows, torch.tensor(sizes), "default", model.image_newline)
    return Images(inputs, [len(features) for features in packed])


def vary(rng: Random, config: PreTrainedConfig) -> Changes:
    """Other windows, Q-Formers and layers before which features are added."""
    layers, towers = config.text_config.num_hidden_layers, config.vision_config.num_hidden_layers
    rate = rng.choice(("1/2", "2/4", "4/8", "1/4", "3/8", "3/4"))
    query, window = map(int, rate.split("/"))
    places = list(range(layers + 1))
    states = range(-towers - 1, towers + 1)
    return {
        "text": {"embedding_multiplier": rng.choice((1.0, 2.0)), "max_position_embeddings": 4000},
        "vision": {"image_size": 16, "patch_size": 2, "hidden_size": rng.choice((64, 128)), "num_attention_heads": 2},
        "downsample_rate": rate,
        "deepstack_layer_map": [[rng.choice(states), place] for place in rng.sample(places, rng.randint(1, len(places)))],
        "spatial_vision_layer": rng.choice(states),
        "spatial_target_layers": rng.choices(places, k=rng.randint(0, 4)) if 2 * query == window else [],
        "qformer_config": QFORMER | {"num_hidden_layers": rng.randint(1, 3), "cross_attention_frequency": rng.randint(1, 2)},
    }


WINDOWED: tuple[Family, ...] = (
    Family(
        "granite4_vision",
        "Granite4Vision",
        TEXT,
        SIGLIP | {"hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 3, "patch_size": 2},
        {
            "image_token_index": IMAGE,
            "image_grid_pinpoints": GRID,
            "vision_feature_select_strategy": "full",
            "downsample_rate": "2/4",
            "deepstack_layer_map": [[-2, 0], [1, 2]],
            "spatial_vision_layer": -1,
            "spatial_target_layers": [1, 4, 9, 3],
            "qformer_config": QFORMER,
        },
        windows,
        {
            "overlapping-means": (
                "Queries of means that overlap, one window a tile, a deeper Q-Former; nothing before the first layer.",
                {
                    "downsample_rate": "3/8",
                    "deepstack_layer_map": [[3, 1], [0, 4]],
                    "spatial_target_layers": [],
                    "qformer_config": QFORMER | {"num_hidden_layers": 3, "cross_attention_frequency": 2, "hidden_act": "relu"},
                },
            ),
            "class-token": (
                "CLIP, whose class token is left out; windows of two by two patches, four Q-Formers before one layer.",
                {
                    "vision_feature_select_strategy": "default",
                    "vision": CLIP,
                    "downsample_rate": "1/2",
                    "deepstack_layer_map": [[-1, 2], [2, 0]],
                    "spatial_vision_layer": 1,
                    "spatial_target_layers": [1, 2, 1, 2],
                },
            ),
            "tied": ("Scores of tokens share the table of embeddings.", {"tie_word_embeddings": True, "text": {"tie_word_embeddings": True}}),
        },
        vary=vary,
        without=("deepstack_features",),
        tasks=image_prompts.granite4_vision,
    ),
)
