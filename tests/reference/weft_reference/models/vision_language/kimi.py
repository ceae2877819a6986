"""Kimi K2.5: images of any size as one list of patches, row after row, before DeepSeek-V3."""

from __future__ import annotations

from random import Random

import numpy as np
from transformers import PreTrainedConfig

from weft_reference.inputs import floats
from weft_reference.models.llava import IMAGE
from weft_reference.models.vision_language.family import Changes, Family, Images

DEEPSEEK: Changes = {
    "model_type": "deepseek_v3",
    "num_key_value_heads": 4,
    "q_lora_rank": 10,
    "kv_lora_rank": 6,
    "qk_nope_head_dim": 4,
    "qk_rope_head_dim": 4,
    "v_head_dim": 6,
    "moe_intermediate_size": 8,
    "n_routed_experts": 4,
    "n_group": 2,
    "topk_group": 1,
    "num_experts_per_tok": 2,
    "first_k_dense_replace": 1,
}
TOWER: Changes = {
    "hidden_size": 16,
    "intermediate_size": 18,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "patch_size": 4,
    "pos_emb_height": 3,
    "pos_emb_width": 3,
}


def rows_of_patches(config: PreTrainedConfig, counts: list[int], key: str) -> Images:
    """Images of several sizes as one list of patches, row after row."""
    vision = config.vision_config
    edge = vision.merge_kernel_size[0]
    grids = [[1, edge * (1 + index % 3), edge * (2 + index % 2)] for index in range(sum(counts))]
    patches = sum(rows * columns for _, rows, columns in grids)
    pixels = floats(f"pixels.{key}", (patches, 3, vision.patch_size, vision.patch_size), -2.0, 2.0)
    features = [rows * columns // edge**2 for _, rows, columns in grids]
    return Images({"pixel_values": pixels, "image_grid_thw": np.array(grids, np.int64)}, features)


def vary(rng: Random, config: PreTrainedConfig) -> Changes:
    """Another learned grid and other squares; heads whose size four divides."""
    side, heads, edge = rng.choice((2, 3, 5)), rng.choice((1, 2)), rng.choice((1, 2))
    width = heads * rng.choice((8, 12))
    vision = {"pos_emb_height": side, "pos_emb_width": side, "num_attention_heads": heads, "hidden_size": width}
    text = {"num_key_value_heads": config.text_config.num_attention_heads}
    return {"text": text, "vision": vision | {"merge_kernel_size": [edge, edge]}, "projection_hidden_size": width}


KIMI = (
    Family(
        "kimi_k25",
        "Kimi_K25",
        DEEPSEEK,
        TOWER,
        {"image_token_id": IMAGE, "projection_hidden_size": 16, "tie_word_embeddings": False},
        rows_of_patches,
        {
            "every-patch": ("Every patch is a token; four positions a side.", {"vision": {"merge_kernel_size": [1, 1], "pos_emb_height": 4, "pos_emb_width": 4}}),
            "tied": ("Scores of tokens share the table of embeddings; ReLU.", {"tie_word_embeddings": True, "vision": {"hidden_act": "relu"}}),
        },
        vary=vary,
    ),
)
