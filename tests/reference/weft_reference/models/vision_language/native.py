"""Decoders that read images of native sizes, padded to one: one entry a model."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import numpy as np
import torch
from transformers import PreTrainedConfig
from transformers.models.llava_next.modeling_llava_next import image_size_to_num_patches

from weft_reference.cases import ruled_model
from weft_reference.inputs import floats
from weft_reference.models.llava import IMAGE
from weft_reference.models.vision_language.family import SIGLIP, Changes, Family, Images, patches, square
from weft_reference.vision_tasks import image_prompts
from weft_reference.vision_tasks import vision_language as tasks


def native(config: PreTrainedConfig, counts: list[int], key: str) -> Images:
    """Images of several sizes in frames of one, whose padding is no zeros."""
    vision, merge = config.vision_config, config.spatial_merge_size
    edge = vision.patch_size * merge
    sizes = [[edge * (1 + index % 3), edge * (2 + index % 2)] for index in range(sum(counts))]
    shape = (len(sizes), vision.num_channels, max(size[0] for size in sizes), max(size[1] for size in sizes))
    features = [(height // edge) * (width // edge) for height, width in sizes]
    inputs = {"pixel_values": floats(f"pixels.{key}", shape, -2.0, 2.0), "image_sizes": np.array(sizes, np.int64)}
    return Images(inputs, features)


def naflex(config: PreTrainedConfig, counts: list[int], key: str) -> Images:
    """Images of several numbers of rows and columns, padded to as many patches."""
    vision, factor = config.vision_config, config.downsample_factor
    shapes = [[factor * (1 + index % 3), factor * (2 + index % 2)] for index in range(sum(counts))]
    most = max(rows * columns for rows, columns in shapes) + 2
    pixels = floats(f"pixels.{key}", (len(shapes), most, vision.num_channels * vision.patch_size**2), -2.0, 2.0)
    mask = np.zeros((len(shapes), most), np.int64)
    for row, (rows, columns) in enumerate(shapes):
        mask[row, : rows * columns] = 1
    inputs = {"pixel_values": pixels, "pixel_attention_mask": mask, "spatial_shapes": np.array(shapes, np.int64)}
    return Images(inputs, [rows * columns // factor**2 for rows, columns in shapes])


GRID = [[8, 16], [16, 8], [16, 16], [24, 8], [24, 24]]
SIZES = [[9, 30], [33, 11], [30, 29], [20, 20]]


def anyres(config: PreTrainedConfig, counts: list[int], key: str) -> Images:
    """Wide, tall, large and square images in tiles."""
    vision = config.vision_config
    sizes = [SIZES[index % len(SIZES)] for index in range(sum(counts))]
    tiles = [image_size_to_num_patches(size, GRID, vision.image_size) for size in sizes]
    shape = (len(sizes), max(tiles), vision.num_channels, vision.image_size, vision.image_size)
    inputs = {"pixel_values": floats(f"tiles.{key}", shape, -2.0, 2.0), "image_sizes": np.array(sizes, np.int64)}
    model, _ = ruled_model("LlavaOnevisionModel", config)
    each = (vision.image_size // vision.patch_size) ** 2
    rows = [torch.zeros(count, each, config.text_config.hidden_size) for count in tiles]
    ratio = config.vision_aspect_ratio
    _, features = model.pack_image_features(rows, torch.tensor(sizes), model.image_newline, ratio)
    return Images(inputs, features.tolist())


def anyres_next(config: PreTrainedConfig, counts: list[int], key: str) -> Images:
    """The same in tiles of LLaVA-NeXT."""
    vision = config.vision_config
    sizes = [SIZES[index % len(SIZES)] for index in range(sum(counts))]
    tiles = [image_size_to_num_patches(size, GRID, vision.image_size) for size in sizes]
    shape = (len(sizes), max(tiles), vision.num_channels, vision.image_size, vision.image_size)
    inputs = {"pixel_values": floats(f"tiles.{key}", shape, -2.0, 2.0), "image_sizes": np.array(sizes, np.int64)}
    model, _ = ruled_model("LlavaNextVideoModel", config)
    each = (vision.image_size // vision.patch_size) ** 2
    rows = [torch.zeros(count, each, config.text_config.hidden_size) for count in tiles]
    _, features = model.pack_image_features(rows, torch.tensor(sizes), "default", model.image_newline)
    return Images(inputs, features.tolist())


CLIP: Changes = {
    "model_type": "clip_vision_model",
    "hidden_size": 12,
    "intermediate_size": 18,
    "num_hidden_layers": 3,
    "num_attention_heads": 3,
    "image_size": 8,
    "patch_size": 4,
}
LFM2: Changes = {"model_type": "lfm2", "layer_types": ["conv", "full_attention"], "block_auto_adjust_ff_dim": False}
SIGLIP2: Changes = {
    "model_type": "siglip2_vision_model",
    "hidden_size": 12,
    "intermediate_size": 18,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "patch_size": 4,
    "num_patches": 9,
}
MISTRAL4: Changes = {
    "model_type": "mistral4",
    "head_dim": 12,
    "num_key_value_heads": 4,
    "kv_lora_rank": 10,
    "q_lora_rank": 14,
    "qk_nope_head_dim": 8,
    "qk_rope_head_dim": 4,
    "v_head_dim": 6,
    "n_routed_experts": 4,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 10,
}
PIXTRAL: Changes = {
    "model_type": "pixtral",
    "hidden_size": 16,
    "intermediate_size": 18,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "patch_size": 4,
    "hidden_act": "silu",
}


def other_squares(*texts: Changes) -> Callable[[Random, PreTrainedConfig], Changes]:
    """Other squares and activation functions, over one of these texts."""

    def vary(rng: Random, _: PreTrainedConfig) -> Changes:
        vision = {"hidden_act": rng.choice(("gelu", "silu")), "patch_size": rng.choice((2, 4))}
        return {"spatial_merge_size": rng.choice((1, 2, 3)), "vision": vision, "text": dict(rng.choice(texts))}

    return vary


NATIVE = (
    Family(
        "llava_next_video",
        "LlavaNextVideo",
        {"model_type": "llama"},
        CLIP,
        {"image_token_index": IMAGE, "image_grid_pinpoints": GRID},
        anyres_next,
        {
            "earlier-layers": ("Two layers of the vision model, smaller patches.", {"vision_feature_layer": [-2, -1], "vision": {"patch_size": 2}, "text": {"max_position_embeddings": 400}}),
            "tied": ("Scores of tokens share the table of embeddings.", {"tie_word_embeddings": True, "text": {"tie_word_embeddings": True}}),
        },
        vary=lambda rng, _: {"vision": {"image_size": 8, "patch_size": 4}, "text": {"max_position_embeddings": 400}},
        without=("video_hidden_states",),
        tasks=image_prompts.llava_next_video,
    ),
    Family(
        "video_llava",
        "VideoLlava",
        {"model_type": "llama"},
        CLIP,
        {"image_token_index": IMAGE},
        square(lambda config: patches(config) + int(config.vision_feature_select_strategy == "full")),
        {
            "full": ("The class token too, of two layers.", {"vision_feature_select_strategy": "full", "vision_feature_layer": [-2, 1]}),
            "plain": ("No biases in the projector, another activation function.", {"multimodal_projector_bias": False, "projector_hidden_act": "relu"}),
        },
        vary=lambda rng, _: {"vision": {"image_size": rng.choice((8, 12)), "patch_size": 4}, "vision_feature_layer": rng.choice((-1, -2))},
        without=("video_hidden_states",),
    ),
    Family(
        "llava_onevision",
        "LlavaOnevision",
        {"model_type": "qwen2"},
        SIGLIP | {"image_size": 8, "patch_size": 2},
        {"image_token_index": IMAGE, "image_grid_pinpoints": GRID, "vision_aspect_ratio": "anyres_max_2"},
        anyres,
        {
            "every-tile": ("No image of features is made smaller; the text is a Qwen3.", {"vision_aspect_ratio": "anyres_max_9", "text": {"model_type": "qwen3", "head_dim": 6}}),
            "earlier-layers": ("Two layers of the vision model.", {"vision_feature_layer": [-2, -1]}),
            "tied": ("Scores of tokens share the table of embeddings.", {"tie_word_embeddings": True, "text": {"tie_word_embeddings": True}}),
        },
        tasks=tasks.llava_onevision,
        vary=lambda rng, _: {
            "vision_aspect_ratio": f"anyres_max_{rng.randint(1, 5)}",
            "vision": {"image_size": 8, "patch_size": rng.choice((1, 2, 3))},
        },
        without=("video_hidden_states",),
    ),
    Family(
        "lfm2_vl",
        "Lfm2Vl",
        LFM2,
        SIGLIP2,
        {"image_token_id": IMAGE, "projector_hidden_size": 14},
        naflex,
        {
            "every-patch": (
                "Every patch is a token; the projector has neither norm nor biases.",
                {"downsample_factor": 1, "projector_use_layernorm": False, "projector_bias": False},
            ),
            "larger-squares": ("Squares of three by three patches, another activation function.", {"downsample_factor": 3, "projector_hidden_act": "relu"}),
            "untied": ("Scores of tokens have a table of their own.", {"tie_word_embeddings": False}),
            "moe": (
                "The text is a mixture of experts.",
                {"text": {"model_type": "lfm2_moe", "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 10, "num_dense_layers": 1}},
            ),
        },
        vary=lambda rng, _: {
            "downsample_factor": rng.choice((1, 2, 3)),
            "projector_hidden_size": rng.randint(5, 30),
            "projector_use_layernorm": rng.choice((True, False)),
            "vision": {"num_patches": rng.choice((4, 16, 25))},
        },
    ),
    Family(
        "mistral3",
        "Mistral3",
        {"model_type": "mistral", "head_dim": 6, "sliding_window": None},
        PIXTRAL,
        {"image_token_index": IMAGE},
        native,
        {
            "ministral3": (
                "The text is a Ministral 3, squares of three by three patches.",
                {"spatial_merge_size": 3, "text": {"model_type": "ministral3"}},
            ),
            "mistral4": ("The text is a Mistral 4, with experts and latent attention.", {"text": MISTRAL4}),
            "every-patch": (
                "Every patch is a token; the projector has biases, and another activation function.",
                {"spatial_merge_size": 1, "multimodal_projector_bias": True, "projector_hidden_act": "relu"},
            ),
            "untied": ("Scores of tokens have a table of their own.", {"tie_word_embeddings": False}),
            "wide-heads": ("Another rotary base, six pairs a head.", {"vision": {"hidden_size": 24, "rope_parameters": {"rope_type": "axial", "rope_theta": 100.0}}}),
        },
        tasks=tasks.mistral3,
        vary=other_squares({}, {"model_type": "ministral3"}, {"sliding_window": 7}),
    ),
    Family(
        "lighton_ocr",
        "LightOnOcr",
        {"model_type": "qwen3", "head_dim": 6},
        PIXTRAL,
        {"image_token_id": IMAGE},
        native,
        {
            "untied": ("Scores of tokens have a table of their own.", {"tie_word_embeddings": False}),
            "larger-squares": ("Squares of three by three patches.", {"spatial_merge_size": 3}),
        },
        tasks=tasks.lighton_ocr,
        vary=other_squares({}),
    ),
)
