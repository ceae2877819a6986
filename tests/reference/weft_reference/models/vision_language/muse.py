"""Muse Glimmer: images of any size as one list of patches, row after row, in windows that cut through squares of patches."""

from __future__ import annotations

from random import Random

import numpy as np
from transformers import PreTrainedConfig

from weft_reference.inputs import floats
from weft_reference.models.llava import IMAGE
from weft_reference.models.vision_language.family import Changes, Family, Images
from weft_reference.vision_tasks import newest

TEXT: Changes = {"head_dim": 6, "sliding_window": 5, "qk_scale_factor": 1.0}
TOWER: Changes = {
    "hidden_size": 16,
    "intermediate_size": 18,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "patch_size": 4,
    "pos_emb_height": 3,
    "pos_emb_width": 3,
}
KINDS = ("full_attention", "sliding_attention")
WINDOWS = ("full_attention", "window_attention")


def rows_of_patches(config: PreTrainedConfig, counts: list[int], key: str) -> Images:
    """Images of several sizes as one list of patches, row after row; every third one has two frames."""
    vision = config.vision_config
    edge = vision.merge_size
    grids = [[1 + (index % 3) // 2, edge * (1 + index % 3), edge * (2 + index % 2)] for index in range(sum(counts))]
    counted = [frames * rows * columns for frames, rows, columns in grids]
    pixels = floats(f"pixels.{key}", (sum(counted), vision.patch_temporal * 3 * vision.patch_size**2), -2.0, 2.0)
    features = [count // edge**2 for count in counted]
    return Images({"pixel_values": pixels, "image_grid_thw": np.array(grids, np.int64)}, features)


def vary(rng: Random, config: PreTrainedConfig) -> Changes:
    """Other kinds of layers, windows, squares and widths between both models."""
    text, vision = config.text_config, config.vision_config
    side, edge = rng.choice((2, 3, 5)), rng.choice((1, 2, 3))
    layers = range(text.num_hidden_layers)
    return {
        "text": {
            "layer_types": [rng.choice(KINDS) for _ in layers],
            "layer_rope_theta": rng.choice((None, [rng.choice((0, 10000.0)) for _ in layers])),
            "sliding_window": rng.randint(2, 12),
            "attention_bias": rng.random() < 0.5,
            "qk_scale_factor": rng.choice((1.0, 2.5)),
        },
        "vision": {
            "layer_types": rng.choice((None, [rng.choice(WINDOWS) for _ in range(vision.num_hidden_layers)])),
            "pos_emb_height": side,
            "pos_emb_width": side,
            "merge_size": edge,
            "patch_temporal": rng.choice((1, 2)),
        },
        "out_hidden_size": vision.hidden_size * edge**2,
        "projector_hidden_size": rng.randint(5, 30),
        "tie_word_embeddings": rng.random() < 0.5,
    }


MUSE = (
    Family(
        "muse_glimmer",
        "MuseGlimmer",
        TEXT,
        TOWER,
        {"image_token_id": IMAGE, "out_hidden_size": 64, "projector_hidden_size": 22, "tie_word_embeddings": False},
        rows_of_patches,
        {
            "every-patch": (
                "Every patch is a token, of one frame; four positions a side.",
                {"vision": {"merge_size": 1, "patch_temporal": 1, "pos_emb_height": 4, "pos_emb_width": 4}, "out_hidden_size": 16},
            ),
            "deep": (
                "Layers enough for every fourth one to be of another kind; scores of as large a scale as by default.",
                {"text": {"num_hidden_layers": 5, "qk_scale_factor": 3.87}, "vision": {"num_hidden_layers": 6}},
            ),
            "kinds": (
                "Kinds of layers as listed, rotary position embeddings in some of either kind; other activation functions.",
                {
                    "text": {
                        "num_hidden_layers": 5,
                        "layer_types": [*KINDS, *KINDS, KINDS[0]],
                        "layer_rope_theta": [10000.0, 0, 0, 5.0, 10000.0],
                        "rope_parameters": {"rope_type": "default", "rope_theta": 100.0},
                        "hidden_activation": "gelu",
                    },
                    "vision": {
                        "num_hidden_layers": 5,
                        "layer_types": [*WINDOWS, *WINDOWS, WINDOWS[1]],
                        "rope_parameters": {"rope_type": "axial", "rope_theta": 50.0},
                        "hidden_act": "relu",
                    },
                    "projector_hidden_act": "silu",
                },
            ),
            "numbers": (
                "Other factors and epsilons, biases of attention, and more columns of position embeddings than rows.",
                {
                    "text": {
                        "attention_bias": True,
                        "qk_scale_factor": 1.5,
                        "output_multiplier": 0.7,
                        "final_logit_softcapping": 2.0,
                        "rms_norm_eps": 1e-2,
                        "post_norm_eps": 1e-1,
                    },
                    "vision": {"pos_emb_height": 2, "layer_norm_eps": 1e-2},
                },
            ),
            "tied": ("Scores of tokens share the table of embeddings.", {"tie_word_embeddings": True}),
        },
        newest.muse_glimmer,
        vary,
    ),
)
