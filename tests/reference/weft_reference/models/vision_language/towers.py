"""Decoders that read images of one size by a tower of their own: one entry a model."""

from __future__ import annotations

from random import Random

import numpy as np
from transformers import PreTrainedConfig

from weft_reference.inputs import floats
from weft_reference.models.llava import IMAGE
from weft_reference.models.vision_language.family import SIGLIP, Changes, Family, Images, patches, square
from weft_reference.vision_tasks import image_prompts as tasks

LLAMA4_TOWER: Changes = {
    "hidden_size": 16,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "image_size": 16,
    "patch_size": 4,
    "projector_input_dim": 18,
    "projector_output_dim": 18,
    "vision_output_dim": 18,
}
LLAMA4_TEXT: Changes = {
    "num_hidden_layers": 4,
    "head_dim": 6,
    "intermediate_size_mlp": 24,
    "num_local_experts": 4,
    "attention_chunk_size": 5,
    "floor_scale": 4,
    "interleave_moe_layer_step": 2,
}


def shuffled(config: PreTrainedConfig) -> int:
    return int(patches(config) * config.vision_config.pixel_shuffle_ratio**2)


def llama4(rng: Random, config: PreTrainedConfig) -> Changes:
    """Another number of experts for a token, other chunks, and a tower whose widths go together."""
    heads, ratio = rng.choice((1, 2, 3)), rng.choice((0.25, 0.5, 1.0))
    width, out = heads * rng.choice((8, 16)), rng.choice((10, 22))
    text = {
        "num_experts_per_tok": rng.randint(1, 3),
        "attention_chunk_size": rng.choice((3, 7)),
        "no_rope_layer_interval": rng.choice((2, 3)),
        "interleave_moe_layer_step": rng.choice((1, 2)),
        "use_qk_norm": rng.random() < 0.5,
    }
    vision = {
        "num_attention_heads": heads,
        "hidden_size": width,
        "pixel_shuffle_ratio": ratio,
        "intermediate_size": int(width / ratio**2),
        "projector_input_dim": out,
        "projector_output_dim": out,
        "vision_output_dim": out,
    }
    return {"text": text, "vision": vision}


SAM: Changes = {
    "hidden_size": 12,
    "output_channels": 4,
    "num_hidden_layers": 3,
    "num_attention_heads": 3,
    "image_size": 20,
    "patch_size": 4,
    "window_size": 3,
    "global_attn_indexes": [1, 2],
    "mlp_dim": 18,
    "num_pos_feats": 2,
}


def of_two_sizes(config: PreTrainedConfig, counts: list[int], key: str) -> Images:
    """Images of the vision model's size, and the same number of the other's."""
    made = square(patches)(config, counts, key)
    size = config.high_res_vision_config.image_size
    high = floats(f"high.{key}", (sum(counts), config.high_res_vision_config.num_channels, size, size), -2.0, 2.0)
    return Images({**made.inputs, "high_res_pixel_values": high}, made.features)


def hybrid(rng: Random, config: PreTrainedConfig) -> Changes:
    """Another second tower."""
    heads, layers = rng.choice((1, 2, 3)), rng.randint(2, 4)
    own = {
        "num_attention_heads": heads,
        "hidden_size": 4 * heads,
        "num_hidden_layers": layers,
        "output_channels": rng.choice((4, 6)),
        "image_size": rng.choice((16, 24)),
        "window_size": rng.choice((0, 2, 3)),
        "global_attn_indexes": sorted(rng.sample(range(layers), rng.randint(1, layers))),
    }
    return {"high_res_vision_config": SAM | own}


def masked(config: PreTrainedConfig, counts: list[int], key: str) -> Images:
    """Images of which every second shows a part of itself alone."""
    vision = config.vision_config
    side = vision.image_size // vision.patch_size
    made = square(lambda _: config.projector_patch_to_query_dict[side**2])(config, counts, key)
    mask = np.ones((sum(counts), vision.image_size, vision.image_size), np.int64)
    mask[1::2, vision.image_size // 2 :] = 0
    mask[1::2, :, vision.image_size - vision.patch_size - 1 :] = 0
    return Images({**made.inputs, "pixel_mask": mask}, made.features)


PERCEIVER: Changes = {
    "hidden_size": 16,
    "rms_norm_eps": 1e-3,
    "resampler_n_latents": 3,
    "resampler_depth": 2,
    "resampler_n_heads": 4,
    "resampler_head_dim": 6,
    "num_key_value_heads": 2,
}


def unequal(config: PreTrainedConfig, counts: list[int], key: str) -> Images:
    """Lists of images higher than wide, padded by images of zeros; the last one of the first text shows a part of itself alone."""
    vision = config.vision_config
    height, width, most = vision.image_size, vision.image_size - vision.patch_size, max(counts)
    pixels = floats(f"pixels.{key}", (len(counts), most, vision.num_channels, height, width), -2.0, 2.0)
    mask = np.ones((len(counts), most, height, width), np.int64)
    for row, count in enumerate(counts):
        pixels[row, count:] = 0.0
        mask[row, count:] = 0
    mask[0, counts[0] - 1, height - 2 * vision.patch_size + 1 :] = 0
    mask[0, counts[0] - 1, :, width - 1 :] = 0
    each = config.perceiver_config.resampler_n_latents
    return Images({"pixel_values": pixels, "pixel_attention_mask": mask}, [each] * sum(counts))


def resampler(rng: Random, config: PreTrainedConfig) -> Changes:
    """Another perceiver."""
    heads, groups = rng.choice((2, 4)), rng.choice((1, 2))
    own = {
        "hidden_size": rng.choice((config.text_config.hidden_size, 20)),
        "resampler_n_latents": rng.randint(1, 6),
        "resampler_depth": rng.randint(1, 3),
        "resampler_n_heads": heads,
        "num_key_value_heads": heads // groups,
        "resampler_head_dim": rng.choice((4, 10)),
    }
    return {"perceiver_config": PERCEIVER | own, "vision": {"image_size": rng.choice((16, 20))}}


TOWERS = (
    Family(
        "idefics2",
        "Idefics2",
        {"model_type": "mistral", "sliding_window": 6},
        {name: value for name, value in SIGLIP.items() if name not in ("model_type", "vision_use_head")},
        {"image_token_id": IMAGE, "perceiver_config": PERCEIVER},
        unequal,
        {
            "other-width": (
                "The perceiver is of another width than the text, whose numbers it takes.",
                {"perceiver_config": PERCEIVER | {"hidden_size": 24, "hidden_act": "relu"}},
            ),
            "tied": ("Scores of tokens share the table of embeddings.", {"tie_word_embeddings": True, "text": {"tie_word_embeddings": True}}),
        },
        vary=resampler,
        tasks=tasks.idefics2,
    ),
    Family(
        "aria",
        "Aria",
        {"model_type": "aria_text", "moe_num_experts": 5},
        {name: value for name, value in SIGLIP.items() if name not in ("model_type", "vision_use_head")} | {"model_type": "idefics3_vision"},
        {"image_token_index": IMAGE, "projector_patch_to_query_dict": {4: 7, 16: 5}},
        masked,
        {
            "other-counts": (
                "Fewer patches, whose queries are more; three experts for a token, biases, one shared expert.",
                {"vision": {"image_size": 8}, "text": {"moe_topk": 3, "moe_num_shared_experts": 1, "mlp_bias": True, "attention_bias": True}},
            ),
            "earlier-layer": ("What goes into the last layer of the vision model.", {"vision_feature_layer": -2}),
            "tied": ("Scores of tokens share the table of embeddings.", {"tie_word_embeddings": True, "text": {"tie_word_embeddings": True}}),
        },
        vary=lambda rng, _: {
            "text": {"moe_num_experts": rng.randint(3, 6), "moe_topk": rng.randint(1, 3)},
            "projector_patch_to_query_dict": {4: rng.randint(1, 9), 16: rng.randint(1, 9)},
            "vision": {"image_size": rng.choice((8, 16))},
        },
        without=("router_logits",),
        tasks=tasks.aria,
    ),
    Family(
        "deepseek_vl_hybrid",
        "DeepseekVLHybrid",
        {"model_type": "llama"},
        SIGLIP,
        {"image_token_id": IMAGE, "high_res_vision_config": SAM},
        of_two_sizes,
        {
            "untied": ("Scores of tokens have a table of their own.", {"tie_word_embeddings": False}),
            "whole": (
                "All patches attend to each other; no positions.",
                {"high_res_vision_config": SAM | {"window_size": 0, "global_attn_indexes": [1], "use_abs_pos": False, "use_rel_pos": False}},
            ),
        },
        vary=hybrid,
        tasks=tasks.deepseek_vl_hybrid,
    ),
    Family(
        "llama4",
        "Llama4",
        LLAMA4_TEXT,
        LLAMA4_TOWER,
        {"image_token_index": IMAGE},
        square(shuffled),
        {
            "every-layer": (
                "Experts in every layer, two for each token; heads are not normalised, attention has biases.",
                {"text": {"interleave_moe_layer_step": 1, "num_experts_per_tok": 2, "use_qk_norm": False, "attention_bias": True}},
            ),
            "listed": (
                "Lists say which layers have experts and rotary position embeddings; no temperature of scores.",
                {"text": {"moe_layers": [0, 2], "no_rope_layers": [0, 1, 1, 0], "attn_temperature_tuning": False}},
            ),
            "layer-types": (
                "Chunks in layers without rotary position embeddings, by their list; smaller patches.",
                {"text": {"layer_types": ["full_attention", "chunked_attention"] * 2}, "vision": {"patch_size": 2}},
            ),
        },
        vary=llama4,
        tasks=tasks.llama4,
        heads=("ForConditionalGeneration",),
        without=("image_hidden_states", "router_logits"),
    ),
)
