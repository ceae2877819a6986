"""Decoders that read images, one entry a model."""

from __future__ import annotations

from random import Random

import numpy as np
from transformers import PreTrainedConfig

from weft_reference.cases import Inputs
from weft_reference.models.llava import IMAGE
from weft_reference.models.vision_language.family import SIGLIP, Changes, Family, listed, packed, patches, square
from weft_reference.vision_tasks import vision_language as tasks

WINDOWS: Changes = {"sliding_window": 5, "layer_types": ["sliding_attention", "full_attention"]}
SQUARES: Changes = {"downsample_factor": 2}


def squares(config: PreTrainedConfig) -> int:
    return patches(config) // config.downsample_factor**2


def prefix(inputs: Inputs) -> Inputs:
    """All but the last two tokens of each text are its prefix."""
    types = np.zeros_like(inputs["input_ids"])
    for row, seen in enumerate(inputs["attention_mask"]):
        types[row, np.flatnonzero(seen)[-2:]] = 1
    return {"token_type_ids": types}


def modalities(inputs: Inputs) -> Inputs:
    """Which tokens are an image's."""
    return {"mm_token_type_ids": (inputs["input_ids"] == IMAGE).astype(np.int64)}


ROPE: Changes = {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [2, 1, 1]}
QWEN2_VL: Changes = {"hidden_size": 32, "rope_parameters": ROPE}
TOWER: Changes = {"depth": 2, "num_heads": 2, "in_channels": 3, "patch_size": 4, "hidden_act": "quick_gelu"}


def sections(rng: Random, width: int) -> Changes:
    """A split of the pairs of a head of this width."""
    time = rng.randint(1, width // 2 - 2)
    height = rng.randint(1, width // 2 - time - 1)
    return {"rope_parameters": ROPE | {"mrope_section": [time, height, width // 2 - time - height]}}


FAMILIES = (
    Family(
        "aya_vision",
        "AyaVision",
        {"model_type": "cohere2"} | WINDOWS,
        SIGLIP,
        SQUARES | {"image_token_index": IMAGE, "alignment_intermediate_size": 22},
        square(squares),
        {
            "every-patch": ("Every patch is a token.", {"downsample_factor": 1}),
            "own-width": (
                "The projector is as wide as the text, its norm has another epsilon.",
                {"alignment_intermediate_size": 16, "adapter_layer_norm_eps": 1e-2},
            ),
            "earlier-layer": ("What goes into the last layer.", {"vision_feature_layer": -2}),
            "untied": (
                "Scores of tokens have a table of their own.",
                {"tie_word_embeddings": False, "text": {"tie_word_embeddings": False}},
            ),
        },
        tasks.aya_vision,
        lambda rng, _: {"alignment_intermediate_size": 2 * rng.randint(3, 20), "downsample_factor": rng.choice((1, 2, 4))},
    ),
    Family(
        "cohere2_vision",
        "Cohere2Vision",
        {"model_type": "cohere2"} | WINDOWS,
        SIGLIP,
        SQUARES | {"image_token_id": IMAGE, "alignment_intermediate_size": 22},
        square(squares),
        {
            "every-patch": ("Every patch is a token.", {"downsample_factor": 1}),
            "unused-head": ("The vision model has a head that is not used.", {"vision": {"vision_use_head": True}}),
        },
        tasks.cohere2_vision,
        lambda rng, _: {"alignment_intermediate_size": 2 * rng.randint(3, 20), "downsample_factor": rng.choice((1, 2, 4))},
    ),
    Family(
        "paligemma",
        "PaliGemma",
        {"model_type": "gemma", "head_dim": 6, "num_key_value_heads": 1},
        SIGLIP,
        {"image_token_index": IMAGE, "projection_dim": 16},
        square(patches),
        {
            "gemma2": (
                "PaliGemma 2: windows, soft-capped attention and logits.",
                {
                    "text": {
                        "model_type": "gemma2",
                        "sliding_window": 6,
                        "query_pre_attn_scalar": 9,
                        "attn_logit_softcapping": 2.0,
                        "final_logit_softcapping": 3.0,
                        "use_bidirectional_attention": None,
                    }
                },
            ),
        },
        tasks.paligemma,
        lambda rng, config: {
            "projection_dim": config.text_config.hidden_size,
            "text": rng.choice(
                ({}, {"model_type": "gemma2", "sliding_window": rng.randint(3, 9), "query_pre_attn_scalar": 12})
            ),
        },
        given=prefix,
    ),
    Family(
        "idefics3",
        "Idefics3",
        {"model_type": "llama"},
        {name: value for name, value in SIGLIP.items() if name not in ("model_type", "vision_use_head")},
        {"image_token_id": IMAGE, "scale_factor": 2},
        listed,
        {
            "larger-squares": ("Every image is one token.", {"scale_factor": 4}),
            "tied": ("Scores of tokens share the table of embeddings.", {"tie_word_embeddings": True, "text": {"tie_word_embeddings": True}}),
        },
        tasks.idefics3,
        lambda rng, _: {"scale_factor": rng.choice((1, 2, 4))},
    ),
    Family(
        "smolvlm",
        "SmolVLM",
        {"model_type": "llama"},
        {name: value for name, value in SIGLIP.items() if name not in ("model_type", "vision_use_head")},
        {"image_token_id": IMAGE, "scale_factor": 2},
        listed,
        {"larger-squares": ("Every image is one token.", {"scale_factor": 4})},
        tasks.smolvlm,
        lambda rng, _: {"scale_factor": rng.choice((1, 2, 4))},
        without=("image_hidden_states",),
    ),
    Family(
        "qwen2_vl",
        "Qwen2VL",
        QWEN2_VL,
        TOWER | {"embed_dim": 16, "hidden_size": 32, "mlp_ratio": 2},
        {"image_token_id": IMAGE},
        packed,
        {
            "one-patch": (
                "Every patch is a token, of one frame; another activation.",
                {"vision": {"spatial_merge_size": 1, "temporal_patch_size": 1, "hidden_act": "gelu"}},
            ),
            "tied": ("Scores of tokens share the table of embeddings.", {"tie_word_embeddings": True}),
            "windows": (
                "The second layer of the text has a window.",
                {"text": {"use_sliding_window": True, "sliding_window": 5, "max_window_layers": 1}},
            ),
        },
        tasks.qwen2_vl,
        lambda rng, config: {
            "text": sections(rng, config.text_config.hidden_size // config.text_config.num_attention_heads),
            "vision": {
                "num_heads": (heads := rng.choice((1, 2, 4))),
                "embed_dim": heads * rng.choice((8, 12)),
                "hidden_size": config.text_config.hidden_size,
                "depth": rng.randint(1, 3),
                "spatial_merge_size": rng.choice((1, 2)),
            },
        },
        modalities,
        flat=True,
    ),
    Family(
        "qwen2_5_vl",
        "Qwen2_5_VL",
        QWEN2_VL,
        TOWER
        | {
            "depth": 3,
            "hidden_size": 16,
            "out_hidden_size": 32,
            "intermediate_size": 20,
            "hidden_act": "silu",
            "window_size": 16,
            "fullatt_block_indexes": [1],
        },
        {"image_token_id": IMAGE},
        packed,
        {"large-windows": ("Every image is within a window.", {"vision": {"window_size": 64}})},
        tasks.qwen2_5_vl,
        lambda rng, config: {
            "text": sections(rng, config.text_config.hidden_size // config.text_config.num_attention_heads),
            "vision": {
                "num_heads": (heads := rng.choice((1, 2, 4))),
                "hidden_size": heads * rng.choice((8, 12)),
                "out_hidden_size": config.text_config.hidden_size,
                "depth": rng.randint(1, 3),
                "window_size": rng.choice((8, 16, 24)),
                "fullatt_block_indexes": rng.choice(([], [0], [1])),
            },
        },
        modalities,
        flat=True,
    ),
    Family(
        "qwen3_vl",
        "Qwen3VL",
        {"head_dim": 8, "rope_parameters": ROPE, "num_hidden_layers": 3},
        TOWER
        | {
            "depth": 3,
            "hidden_size": 16,
            "out_hidden_size": 16,
            "intermediate_size": 20,
            "hidden_act": "gelu_pytorch_tanh",
            "num_position_embeddings": 9,
            "deepstack_visual_indexes": [0, 2],
        },
        {"image_token_id": IMAGE},
        packed,
        {
            "no-deepstack": ("No features of earlier layers.", {"vision": {"deepstack_visual_indexes": []}}),
            "tied": ("Scores of tokens share the table of embeddings.", {"tie_word_embeddings": True}),
            "biases": ("Attention of the text has biases.", {"text": {"attention_bias": True}}),
        },
        tasks.qwen3_vl,
        lambda rng, config: {
            "text": sections(rng, 8),
            "vision": {
                "num_heads": (heads := rng.choice((1, 2, 4))),
                "hidden_size": heads * rng.choice((8, 12)),
                "out_hidden_size": config.text_config.hidden_size,
                "depth": 3,
                "num_position_embeddings": rng.choice((4, 16, 25)),
                "deepstack_visual_indexes": rng.choice(([], [1], [2])),
            },
        },
        modalities,
        without=("image_hidden_states",),
    ),
)
