"""Hybrid decoders of gated delta rule and attention that read images of any size, one entry a model."""

from __future__ import annotations

from random import Random

from transformers import PreTrainedConfig

from weft_reference.models.llava import IMAGE
from weft_reference.models.vision_language.family import Changes, Family, packed
from weft_reference.models.vision_language.packed import QWEN3_TOWER, ROPE, modalities
from weft_reference.vision_tasks import videos

QWEN3_5_TOWER = {name: value for name, value in QWEN3_TOWER.items() if name != "deepstack_visual_indexes"}
"""Norms of small numbers enlarge what is rounded off, which gives tokens to other experts."""
DELTA: Changes = {
    "rms_norm_eps": 1.0,
    "head_dim": 16,
    "layer_types": ["linear_attention", "full_attention"],
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 6,
    "linear_value_head_dim": 8,
    "rope_parameters": ROPE | {"mrope_section": [2, 1, 1], "partial_rotary_factor": 0.5},
}
DELTA_EXPERTS: Changes = {
    "num_experts": 5,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 12,
    "shared_expert_intermediate_size": 10,
}


def delta(rng: Random, config: PreTrainedConfig) -> Changes:
    """Another number of heads of keys, and another tower."""
    return {
        "text": {"linear_num_key_heads": rng.choice((1, 2, 4))},
        "vision": {
            "num_heads": (heads := rng.choice((1, 2, 4))),
            "num_attention_heads": heads,
            "hidden_size": heads * rng.choice((8, 12)),
            "out_hidden_size": config.text_config.hidden_size,
            "depth": rng.randint(1, 3),
            "num_position_embeddings": rng.choice((4, 16, 25)),
        },
    }


DELTAS = (
    Family(
        "qwen3_5",
        "Qwen3_5",
        DELTA,
        QWEN3_5_TOWER,
        {"image_token_id": IMAGE},
        packed,
        {
            "ungrouped": ("As many heads of keys as of values, a shorter kernel.", {"text": {"linear_num_key_heads": 4, "linear_conv_kernel_dim": 3}}),
            "tied": ("Scores of tokens share the table of embeddings.", {"tie_word_embeddings": True}),
            "biases": ("Attention of the text has biases.", {"text": {"attention_bias": True}}),
        },
        tasks=videos.qwen3_vl,
        vary=delta,
        told=modalities,
        without=("image_hidden_states",),
    ),
    Family(
        "qwen3_5_moe",
        "Qwen3_5Moe",
        {name: value for name, value in DELTA.items() if name != "intermediate_size"} | DELTA_EXPERTS,
        QWEN3_5_TOWER,
        {"image_token_id": IMAGE},
        packed,
        {
            "ungrouped": ("As many heads of keys as of values, a shorter kernel.", {"text": {"linear_num_key_heads": 4, "linear_conv_kernel_dim": 3}}),
            "tied": ("Scores of tokens share the table of embeddings.", {"tie_word_embeddings": True}),
        },
        tasks=videos.qwen3_vl,
        vary=delta,
        told=modalities,
        without=("image_hidden_states", "router_logits", "aux_loss"),
    ),
)
