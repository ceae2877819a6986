"""Decoders that read images of any size as one list of patches, one entry a model."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
from transformers import PreTrainedConfig

from weft_reference.cases import Inputs
from weft_reference.inputs import floats
from weft_reference.models.llava import IMAGE
from weft_reference.models.vision_language.family import Changes, Family, Images, packed
from weft_reference.vision_tasks import newest, videos
from weft_reference.vision_tasks import vision_language as tasks


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



def qwen2_5_tower(rng: Random, config: PreTrainedConfig) -> Changes:
    """Sizes of a tower with windows, whose features are as wide as the text."""
    return {
        "num_heads": (heads := rng.choice((1, 2, 4))),
        "num_attention_heads": heads,
        "hidden_size": heads * rng.choice((8, 12)),
        "out_hidden_size": config.text_config.hidden_size,
        "depth": rng.randint(1, 3),
        "window_size": rng.choice((8, 16, 24)),
        "fullatt_block_indexes": rng.choice(([], [0], [1])),
    }


def glm4v_tower(rng: Random, config: PreTrainedConfig) -> Changes:
    """Sizes of a tower whose features are as wide as the text."""
    return {
        "num_heads": (heads := rng.choice((1, 2, 4))),
        "num_attention_heads": heads,
        "hidden_size": heads * rng.choice((8, 12)),
        "out_hidden_size": config.text_config.hidden_size,
        "depth": rng.randint(1, 3),
        "attention_bias": rng.choice((True, False)),
        "spatial_merge_size": rng.choice((1, 2)),
    }


WINDOWED: Changes = TOWER | {
    "depth": 3,
    "hidden_size": 16,
    "intermediate_size": 20,
    "hidden_act": "silu",
    "window_size": 16,
    "fullatt_block_indexes": [1],
}
QWEN3_TOWER: Changes = TOWER | {
    "depth": 3,
    "hidden_size": 16,
    "out_hidden_size": 16,
    "intermediate_size": 20,
    "hidden_act": "gelu_pytorch_tanh",
    "num_position_embeddings": 9,
    "deepstack_visual_indexes": [0, 2],
}
GLM4V_TOWER: Changes = TOWER | {
    "hidden_size": 16,
    "out_hidden_size": 32,
    "intermediate_size": 20,
    "hidden_act": "silu",
    "image_size": 12,
}

PACKED = (
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
        videos.qwen2_vl,
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
        videos.qwen2_5_vl,
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
        videos.qwen3_vl,
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
    Family(
        "qwen3_vl_moe",
        "Qwen3VLMoe",
        {
            "head_dim": 8,
            "rope_parameters": ROPE,
            "num_hidden_layers": 3,
            "num_experts": 5,
            "num_experts_per_tok": 2,
            "moe_intermediate_size": 12,
            "mlp_only_layers": [1],
        },
        QWEN3_TOWER,
        {"image_token_id": IMAGE},
        packed,
        {
            "steps": ("Every second layer has experts, more are selected.", {"text": {"decoder_sparse_step": 2, "num_experts_per_tok": 3}}),
            "tied": ("Scores of tokens share the table of embeddings.", {"tie_word_embeddings": True}),
        },
        tasks=videos.qwen3_vl,
        vary=lambda rng, config: {
            "text": sections(rng, 8) | {"num_experts_per_tok": rng.randint(1, 4), "mlp_only_layers": rng.choice(([], [0]))},
            "vision": {
                "num_heads": (heads := rng.choice((1, 2, 4))),
                "num_attention_heads": heads,
                "hidden_size": heads * rng.choice((8, 12)),
                "out_hidden_size": config.text_config.hidden_size,
                "depth": 3,
                "num_position_embeddings": rng.choice((4, 16, 25)),
                "deepstack_visual_indexes": rng.choice(([], [1], [2])),
            },
        },
        told=modalities,
        without=("image_hidden_states", "router_logits", "aux_loss"),
    ),
    Family(
        "exaone4_5",
        "Exaone4_5_",
        {"model_type": "exaone4", "num_hidden_layers": 4, "sliding_window": 5, "sliding_window_pattern": 2},
        WINDOWED | {"out_hidden_size": 16, "num_key_value_heads": 1},
        {"image_token_id": IMAGE},
        packed,
        {
            "every-head": ("As many key and value heads.", {"vision": {"num_key_value_heads": 2}}),
            "tied": ("Scores of tokens share the table of embeddings.", {"tie_word_embeddings": True}),
            "no-window": ("The text has no window, and rotary position embeddings in every layer.", {"text": {"sliding_window": None, "layer_types": ["full_attention"] * 4}}),
        },
        tasks=tasks.exaone4_5,
        vary=lambda rng, config: {
            "vision": (tower := qwen2_5_tower(rng, config)) | {"num_key_value_heads": tower["num_heads"] // rng.choice((1, 1, 2) if tower["num_heads"] > 1 else (1,))}
        },
    ),
    Family(
        "hyperclovax_vision_v2",
        "HyperCLOVAXVisionV2",
        {"model_type": "hyperclovax", "logits_scaling": 0.5, "residual_multiplier": 0.7, "embedding_multiplier": 3.0},
        WINDOWED | {"model_type": "qwen2_5_vl_vision", "out_hidden_size": 12},
        {"image_token_id": IMAGE},
        packed,
        {
            "untied": ("Scores of tokens have a table of their own.", {"tie_word_embeddings": False}),
            "no-post-norm": ("The text has no norms after attention and MLP.", {"text": {"use_post_norm": False}}),
        },
        tasks=tasks.hyperclovax_vision_v2,
        vary=lambda rng, config: {"vision": qwen2_5_tower(rng, config) | {"out_hidden_size": rng.choice((8, 20))}},
    ),
    Family(
        "glm4v",
        "Glm4v",
        {"hidden_size": 32, "rope_parameters": ROPE},
        GLM4V_TOWER,
        {"image_token_id": IMAGE},
        packed,
        {
            "partial": (
                "Half of each head turns.",
                {"text": {"rope_parameters": ROPE | {"mrope_section": [1, 0, 1], "partial_rotary_factor": 0.5}}},
            ),
            "biases": ("Attention of the vision model has biases; one position a side.", {"vision": {"attention_bias": True, "image_size": 4}}),
            "tied": ("Scores of tokens share the table of embeddings.", {"tie_word_embeddings": True}),
        },
        tasks=tasks.glm4v,
        vary=lambda rng, config: {
            "text": sections(rng, config.text_config.hidden_size // config.text_config.num_attention_heads),
            "vision": glm4v_tower(rng, config) | {"image_size": rng.choice((8, 16, 20))},
        },
        told=modalities,
    ),
    Family(
        "glm46v",
        "Glm46V",
        {"model_type": "glm4v_text", "hidden_size": 32, "rope_parameters": ROPE},
        GLM4V_TOWER | {"model_type": "glm4v_vision"},
        {"image_token_id": IMAGE},
        packed,
        {"tied": ("Scores of tokens share the table of embeddings.", {"tie_word_embeddings": True})},
        tasks=tasks.glm46v,
        vary=lambda rng, config: {
            "text": sections(rng, config.text_config.hidden_size // config.text_config.num_attention_heads),
            "vision": glm4v_tower(rng, config) | {"image_size": rng.choice((8, 16, 20))},
        },
        told=modalities,
    ),
    Family(
        "glm4v_moe",
        "Glm4vMoe",
        {
            "hidden_size": 32,
            "head_dim": 8,
            "rope_parameters": ROPE | {"mrope_section": [1, 0, 1], "partial_rotary_factor": 0.5},
            "num_hidden_layers": 3,
            "n_routed_experts": 4,
            "num_experts_per_tok": 2,
            "moe_intermediate_size": 12,
        },
        GLM4V_TOWER,
        {"image_token_id": IMAGE},
        packed,
        {
            "no-biases": ("Attention of the text has no biases.", {"text": {"attention_bias": False}}),
            "groups": (
                "Experts of two of four groups, scaled; two dense layers.",
                {"text": {"n_routed_experts": 8, "n_group": 4, "topk_group": 2, "routed_scaling_factor": 1.5, "first_k_dense_replace": 2}},
            ),
        },
        tasks=tasks.glm4v,
        vary=lambda rng, config: {
            "text": {"first_k_dense_replace": rng.randint(0, 2)},
            "vision": glm4v_tower(rng, config) | {"image_size": rng.choice((8, 16, 20))},
        },
        told=modalities,
        without=("router_logits", "aux_loss"),
    ),
    Family(
        "glm_ocr",
        "GlmOcr",
        {"hidden_size": 32, "head_dim": 8, "rope_parameters": ROPE},
        {name: value for name, value in GLM4V_TOWER.items() if name != "image_size"},
        {"image_token_id": IMAGE},
        packed,
        {
            "no-biases": ("The vision model has no biases.", {"vision": {"attention_bias": False}}),
            "tied": ("Scores of tokens share the table of embeddings.", {"tie_word_embeddings": True}),
        },
        tasks=tasks.glm46v,
        vary=lambda rng, config: {"text": sections(rng, 8), "vision": glm4v_tower(rng, config)},
        told=modalities,
    ),
    Family(
        "lfm3_vl",
        "Lfm3Vl",
        {
            "model_type": "lfm3",
            "head_dim": 6,
            "sliding_window": 5,
            "num_hidden_layers": 3,
            "layer_types": ["conv", "sliding_attention", "full_attention"],
        },
        {
            "hidden_size": 32,
            "intermediate_size": 20,
            "num_hidden_layers": 3,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "in_channels": 3,
            "patch_size": 4,
        },
        {"image_token_id": IMAGE, "projector_hidden_size": 14},
        packed,
        {
            "large-kernel": (
                "Kernels as large as an image, attention between convolutions, no biases in the projector.",
                {"vision": {"conv_kernel_size": 5, "layer_types": ["conv", "full_attention", "conv"]}, "projector_bias": False, "projector_hidden_act": "relu"},
            ),
            "untied": (
                "Scores of tokens have a table of their own; every patch is a token.",
                {"tie_word_embeddings": False, "text": {"tie_word_embeddings": False}, "vision": {"spatial_merge_size": 1}},
            ),
        },
        tasks=newest.lfm3_vl,
        vary=lambda rng, _: {
            "vision": {
                "num_attention_heads": (heads := rng.choice((2, 4))),
                "num_key_value_heads": heads // rng.choice((1, 2)),
                "hidden_size": heads * rng.choice((4, 8, 12)),
                "num_hidden_layers": 3,
                "layer_types": [rng.choice(("conv", "full_attention")) for _ in range(3)],
                "conv_kernel_size": rng.choice((1, 3, 5)),
                "spatial_merge_size": rng.choice((1, 2)),
            },
            "projector_hidden_size": rng.randint(5, 30),
        },
        without=("image_pooler_output",),
    ),
)


def siglip_patches(config: PreTrainedConfig, counts: list[int], key: str) -> Images:
    """Images of several sizes as one list of patches of one frame."""
    vision = config.vision_config
    merge = vision.spatial_merge_size
    grids = [[1, merge * (1 + index % 3), merge * (2 + index % 2)] for index in range(sum(counts))]
    patches = sum(rows * columns for _, rows, columns in grids)
    pixels = floats(f"pixels.{key}", (patches, vision.num_channels * vision.patch_size**2), -2.0, 2.0)
    features = [rows * columns // merge**2 for _, rows, columns in grids]
    return Images({"pixel_values": pixels, "image_grid_thw": np.array(grids, np.int64)}, features)


# Qwen3-VL under other names, and SigLIP 2 before a Llama with its positions.
PACKED += (
    Family(
        "cosmos3_edge",
        "Cosmos3Edge",
        {"head_dim": 8, "rope_parameters": ROPE},
        {
            "hidden_size": 16,
            "intermediate_size": 20,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "patch_size": 4,
            "num_patches": 9,
        },
        {"image_token_id": IMAGE, "projector_hidden_size": 22, "video_token_id": IMAGE + 1},
        siglip_patches,
        {
            "every-patch": ("Every patch is a token; sixteen positions.", {"vision": {"spatial_merge_size": 1, "num_patches": 16}}),
            "biases": (
                "Attention and feed-forward layers of the text have biases; other activation functions.",
                {"text": {"attention_bias": True, "mlp_bias": True, "hidden_act": "silu"}, "vision": {"hidden_act": "gelu"}},
            ),
        },
        tasks=newest.cosmos3_edge,
        vary=lambda rng, _: {
            "text": sections(rng, 8) | {"mlp_bias": rng.choice((True, False))},
            "vision": {"num_patches": rng.choice((4, 9, 25)), "spatial_merge_size": rng.choice((1, 2))},
            "projector_hidden_size": rng.randint(5, 30),
        },
        told=modalities,
    ),

    replace(
        next(family for family in PACKED if family.model == "qwen3_vl"),
        model="cosmos3_omni",
        prefix="Cosmos3Omni",
        extras={},
        tasks=None,
    ),
)
