"""DeepSeek-OCR 2: whole images and crops of them through SAM's tower and a Qwen2 whose queries read its places."""

from __future__ import annotations

from random import Random

import numpy as np
from transformers import PreTrainedConfig

from weft_reference.inputs import floats
from weft_reference.models.llava import IMAGE
from weft_reference.models.vision_language.family import Changes, Family, Images

SAM: Changes = {
    "hidden_size": 12,
    "output_channels": 4,
    "num_hidden_layers": 3,
    "num_attention_heads": 3,
    "image_size": 32,
    "patch_size": 4,
    "window_size": 3,
    "global_attn_indexes": [1, 2],
    "mlp_dim": 18,
    "downsample_channels": [6, 16],
}
ENCODER: Changes = {
    "hidden_size": 16,
    "intermediate_size": 20,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 640,
}
TEXT: Changes = {
    "max_position_embeddings": 2048,
    "n_routed_experts": 4,
    "n_shared_experts": 1,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 10,
    "mlp_layer_types": ["dense", "sparse"],
}


def towers(sam: Changes | None = None, encoder: Changes | None = None) -> Changes:
    return {"sam_config": SAM | (sam or {}), "encoder_config": ENCODER | (encoder or {})}


def queries(edge: int, patch: int) -> int:
    """The number of learned queries that read an image: as many for up to 144 places, more for more."""
    return 144 if ((edge // patch + 3) // 4) ** 2 <= 144 else 256


def views(config: PreTrainedConfig, counts: list[int], key: str) -> Images:
    """Every second image has crops, of three quarters of its edge."""
    sam, images = config.vision_config.sam_config, sum(counts)
    edge = sam.image_size
    tile = edge // 4 * 3
    crops = [(2 * image) % 3 if key != "whole" else 0 for image in range(images)]
    inputs = {"pixel_values": floats(f"pixels.{key}", (images, 3, edge, edge), -2.0, 2.0)}
    inputs["num_local_patches"] = np.array(crops, np.int64)
    if sum(crops):
        inputs["pixel_values_local"] = floats(f"crops.{key}", (sum(crops), 3, tile, tile), -2.0, 2.0)
    whole, crop = queries(edge, sam.patch_size), queries(tile, sam.patch_size)
    return Images(inputs, [crop * count + whole + 1 for count in crops])


def vary(rng: Random, config: PreTrainedConfig) -> Changes:
    heads, layers, towers_heads = rng.choice((1, 2, 3)), rng.randint(2, 3), rng.choice((2, 4))
    text = config.text_config
    width = towers_heads * rng.choice((4, 8))
    return {
        "vision": towers(
            {
                "num_attention_heads": heads,
                "hidden_size": 4 * heads,
                "num_hidden_layers": layers,
                "output_channels": rng.choice((4, 6)),
                "image_size": rng.choice((16, 32)),
                "window_size": rng.choice((0, 2, 3)),
                "global_attn_indexes": sorted(rng.sample(range(layers), rng.randint(1, layers))),
                "downsample_channels": [rng.choice((3, 6)), width],
            },
            {
                "hidden_size": width,
                "num_attention_heads": towers_heads,
                "num_key_value_heads": towers_heads // rng.choice((1, 2)),
                "num_hidden_layers": rng.randint(1, 2),
            },
        ),
        "text": {
            "mlp_layer_types": [rng.choice(("dense", "sparse")) for _ in range(text.num_hidden_layers)],
            "n_shared_experts": rng.randint(1, 2),
            "routed_scaling_factor": rng.choice((1.0, 2.5)),
        },
    }


LOCAL_VIEWS = (
    Family(
        "deepseek_ocr2",
        "DeepseekOcr2",
        TEXT,
        towers(),
        {"image_token_id": IMAGE},
        views,
        {
            "whole": ("Images without crops.", {}),
            "more-queries": (
                "Whole images of so many places that more queries read them; one layer of windows.",
                {
                    "vision": towers(
                        {"image_size": 52, "patch_size": 1, "num_hidden_layers": 1, "global_attn_indexes": []}
                    )
                },
            ),
            "no-positions": (
                "SAM without positions, biases or windows.",
                {
                    "vision": towers(
                        {
                            "use_abs_pos": False,
                            "use_rel_pos": False,
                            "qkv_bias": False,
                            "window_size": 0,
                            "mlp_dim": None,
                        }
                    )
                },
            ),
            "groups": (
                "Experts are chosen among the best groups; biases of attention and of MLPs.",
                {
                    "text": {
                        "topk_method": "group_limited_greedy",
                        "n_group": 2,
                        "topk_group": 1,
                        "routed_scaling_factor": 2.0,
                        "attention_bias": True,
                        "mlp_bias": True,
                    }
                },
            ),
            "tied": (
                "Scores of tokens share the table of embeddings.",
                {"tie_word_embeddings": True, "text": {"tie_word_embeddings": True}},
            ),
        },
        vary=vary,
        without=("image_hidden_states", "router_logits"),
    ),
)
