"""Molmo 2: crops of images as lists of patches, of which windows are pooled and added to the embeddings of image tokens."""

from __future__ import annotations

from random import Random

import numpy as np
from transformers import PreTrainedConfig

from weft_reference.cases import Inputs
from weft_reference.inputs import floats
from weft_reference.models.llava import IMAGE
from weft_reference.models.vision_language.family import Changes, Family, Images

TEXT: Changes = {
    "head_dim": 6,
    "additional_vocab_size": 4,
    "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0},
}
TOWER: Changes = {
    "hidden_size": 12,
    "intermediate_size": 18,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 4,
    "image_size": [12, 16],
    "patch_size": 4,
}
ADAPTER: Changes = {
    "hidden_size": 12,
    "num_attention_heads": 3,
    "num_key_value_heads": 3,
    "head_dim": 4,
    "intermediate_size": 20,
    "text_hidden_size": 16,
    "vision_feature_layer": [-1, 0],
}
YARN: Changes = {
    "rope_type": "yarn",
    "rope_theta": 10000.0,
    "factor": 4.0,
    "original_max_position_embeddings": 32,
}


def windows(config: PreTrainedConfig, counts: list[int], key: str) -> Images:
    """Two crops of each image, tokens of four patches, of three or of one, and one of none, which is left out."""
    vision, images = config.vision_config, sum(counts)
    patches = vision.num_position_embeddings
    pixels = floats(f"pixels.{key}", (2 * images, patches, vision.patch_size**2 * vision.num_channels), -1.0, 1.0)
    places, features = [], []
    for image in range(images):
        start = 2 * image * patches
        own = [[0, 1, 4, 5], [2, 3, -1, 7], [-1, -1, patches - 1, -1], [patches, 2 * patches - 1, 3, patches + 1]][: 3 + image % 2]
        places += [[start + place if place >= 0 else -1 for place in row] for row in own]
        features.append(len(own))
    places.insert(1, [-1] * 4)
    return Images({"pixel_values": pixels, "image_token_pooling": np.array(places, np.int64)}, features)


def kinds(inputs: Inputs) -> Inputs:
    """Image tokens and the one before each image are of type 1."""
    images = inputs["input_ids"] == IMAGE
    before = np.zeros_like(images)
    before[:, :-1] = images[:, 1:]
    return {"mm_token_type_ids": ((images | before) & (inputs["attention_mask"] == 1)).astype(np.int64)}


def grids(inputs: Inputs) -> Inputs:
    """What the reference splits features by, into one list an image, before it joins them again: here one list of all."""
    features = int((inputs["input_ids"] == IMAGE).sum())
    return {"image_grids": np.array([[1, features, 0, 0]], np.int64)}


def vary(rng: Random, config: PreTrainedConfig) -> Changes:
    """Other norms, scaled layers, layers that are pooled, and heads of the vision model and of pooling."""
    layers, vision, heads = config.text_config.num_hidden_layers, config.vision_config, rng.choice((1, 2, 4))
    pooled = [rng.randrange(-vision.num_hidden_layers, vision.num_hidden_layers) for _ in range(rng.randint(1, 3))]
    return {
        "text": {
            "additional_vocab_size": rng.choice((0, 3)),
            "attention_bias": rng.random() < 0.5,
            "qk_norm_type": rng.choice(("qwen3", "olmo")),
            "norm_after": rng.random() < 0.5,
            "rope_parameters": rng.choice((TEXT["rope_parameters"], YARN)),
            "rope_scaling_layers": rng.choice((None, [layer for layer in range(layers) if rng.random() < 0.5])),
        },
        "vision": {
            "num_key_value_heads": rng.choice((1, vision.num_attention_heads)),
            "attention_bias": rng.random() < 0.5,
            "image_size": rng.choice(([12, 16], [16, 12], [16, 16])),
        },
        "adapter_config": {
            "hidden_size": vision.hidden_size,
            "num_attention_heads": heads,
            "num_key_value_heads": rng.choice((1, heads)),
            "head_dim": rng.choice((4, 6)),
            "intermediate_size": rng.randint(9, 40),
            "text_hidden_size": config.text_config.hidden_size,
            "attention_bias": rng.random() < 0.5,
            "mlp_bias": rng.random() < 0.5,
            "vision_feature_layer": pooled,
        },
    }


MOLMO = (
    Family(
        "molmo2",
        "Molmo2",
        TEXT,
        TOWER,
        {"adapter_config": ADAPTER, "image_patch_id": IMAGE},
        windows,
        {
            "olmo": (
                "Norms behind attention and MLP, over all heads of queries and keys; positions of one layer are stretched.",
                {
                    "text": {
                        "norm_after": True,
                        "qk_norm_type": "olmo",
                        "rope_parameters": YARN,
                        "rope_scaling_layers": [1],
                        "attention_bias": True,
                    }
                },
            ),
            "earlier-layers": (
                "Layers counted back from the last, none of which reads the last; no biases of attention, one of the MLP.",
                {
                    "adapter_config": ADAPTER
                    | {
                        "vision_feature_layer": [-2, -3],
                        "attention_bias": False,
                        "mlp_bias": True,
                        "hidden_act": "gelu",
                        "num_key_value_heads": 1,
                    },
                    "vision": {"attention_bias": False, "hidden_act": "relu"},
                },
            ),
            "stretched": ("Positions of all layers are stretched.", {"text": {"rope_parameters": YARN}}),
        },
        vary=vary,
        told=grids,
        given=kinds,
    ),
)
