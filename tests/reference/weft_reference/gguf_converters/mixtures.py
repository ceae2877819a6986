"""Decoders with mixtures of experts."""

from __future__ import annotations

from typing import Any

from weft_reference.gguf_converters.changes import FLAT, ROTARY
from weft_reference.gguf_converters.converter import (
    EXPERTS,
    GRANITE,
    GROUPED,
    HEAD,
    LLAMA,
    MLP,
    RMS,
    ROUTED,
    SIZES,
    USED,
    WINDOW,
    Converter,
)
from weft_reference.gguf_converters.splits import (
    DBRX_SPLITS,
    GPT_OSS_SPLITS,
    GRANITE_SPLITS,
    HY_V3_SPLITS,
    LATENT_SPLITS,
    LLAMA4_SPLITS,
    MIMO2_SPLITS,
)

LATENT = (
    SIZES
    | MLP
    | RMS
    | ROUTED
    | {
        "attention.q_lora_rank": "q_lora_rank",
        "attention.kv_lora_rank": "kv_lora_rank",
        "expert_group_count": "n_group",
        "expert_group_used_count": "topk_group",
    }
)


def latent_sizes(c: Any) -> dict[str, Any]:
    """Keys and values as one head of the latent vectors, and the heads' own widths under keys of their own."""
    sizes: dict[str, Any] = {
        "attention.head_count_kv": 1,
        "attention.key_length": c.kv_lora_rank + c.qk_rope_head_dim,
        "attention.value_length": c.kv_lora_rank,
        "attention.key_length_mla": c.qk_nope_head_dim + c.qk_rope_head_dim,
        "attention.value_length_mla": c.v_head_dim,
    }
    if all_dim := (getattr(c, "rope_parameters", None) or {}).get("mscale_all_dim"):
        sizes["rope.scaling.yarn_log_multiplier"] = 0.1 * all_dim
    return sizes


def _dbrx(c: Any) -> dict[str, Any]:
    return {
        "feed_forward_length": c.ffn_config.ffn_hidden_size,
        "attention.head_count_kv": c.attn_config.kv_n_heads,
        "attention.clamp_kqv": float(c.attn_config.clip_qkv),
        "expert_count": c.ffn_config.moe_num_experts,
        "expert_used_count": c.ffn_config.moe_top_k,
    }


def _mimo2(c: Any) -> dict[str, Any]:
    """Which layers have a window, and key heads by layer."""
    slides = [int(kind == "sliding_attention") for kind in c.layer_types]
    return {
        "attention.sliding_window_pattern": slides,
        "attention.head_count_kv": [c.num_key_value_heads * (1 + sliding) for sliding in slides],
    }


CONVERTERS = {
    "mixtral": Converter(
        "llama",
        LLAMA | {"expert_count": "num_local_experts", "expert_used_count": "num_experts_per_tok"},
        ROTARY,
    ),
    "llama4_text": Converter(
        "llama4",
        SIZES
        | GROUPED
        | RMS
        | HEAD
        | USED
        | {
            "vocab_size": "vocab_size",
            "feed_forward_length": "intermediate_size_mlp",
            "expert_count": "num_local_experts",
            "expert_feed_forward_length": "intermediate_size",
            "interleave_moe_layer_step": "interleave_moe_layer_step",
        },
        splits=lambda _: LLAMA4_SPLITS,
    ),
    "dbrx": Converter(
        "dbrx",
        SIZES,
        fixed={"attention.layer_norm_epsilon": 1e-5},
        made=_dbrx,
        splits=lambda _: DBRX_SPLITS,
    ),
    "mimo_v2_flash": Converter(
        "mimo2",
        SIZES
        | MLP
        | RMS
        | WINDOW
        | USED
        | {
            "attention.key_length": "head_dim",
            "attention.value_length": "v_head_dim",
            "attention.value_scale": "attention_value_scale",
            "expert_count": "n_routed_experts",
            "expert_feed_forward_length": "moe_intermediate_size",
            "expert_group_count": "n_group",
            "expert_group_used_count": "topk_group",
        },
        fixed={"expert_gating_func": 2},
        made=_mimo2,
        splits=lambda _: MIMO2_SPLITS,
    ),
    "mellum": Converter(
        "mellum",
        LLAMA | HEAD | WINDOW | EXPERTS,
        made=lambda c: {"attention.sliding_window_pattern": [kind == "sliding_attention" for kind in c.layer_types]},
        names="qwen3moe",
    ),
    "hy_v3": Converter(
        "hy_v3",
        LLAMA | HEAD | EXPERTS | {"expert_weights_scale": "router_scaling_factor"},
        fixed={"expert_gating_func": 2, "expert_weights_norm": True},
        made=lambda c: {"expert_shared_feed_forward_length": c.moe_intermediate_size * c.num_shared_experts},
        splits=lambda _: HY_V3_SPLITS,
        names="dots1",
    ),
    "qwen2_moe": Converter(
        "qwen2moe",
        LLAMA | EXPERTS | {"expert_shared_feed_forward_length": "shared_expert_intermediate_size"},
        FLAT,
    ),
    "qwen3_moe": Converter("qwen3moe", LLAMA | HEAD | EXPERTS),
    "granitemoe": Converter(
        "granitemoe",
        LLAMA | GRANITE | USED | {"expert_count": "num_local_experts"},
        ROTARY,
        splits=lambda _: GRANITE_SPLITS,
    ),
    "granitemoeshared": Converter(
        "granitemoe",
        LLAMA
        | GRANITE
        | USED
        | {"expert_count": "num_local_experts", "expert_shared_feed_forward_length": "shared_intermediate_size"},
        ROTARY,
        splits=lambda _: GRANITE_SPLITS,
    ),
    "gpt_oss": Converter(
        "gpt-oss",
        LLAMA
        | HEAD
        | WINDOW
        | USED
        | {"expert_count": "num_local_experts", "expert_feed_forward_length": "intermediate_size"},
        splits=lambda _: GPT_OSS_SPLITS,
    ),
    "deepseek_v2": Converter(
        "deepseek2", LATENT, fixed={"expert_gating_func": 1}, made=latent_sizes, splits=lambda _: LATENT_SPLITS
    ),
    "deepseek_v3": Converter(
        "deepseek2", LATENT, fixed={"expert_gating_func": 2}, made=latent_sizes, splits=lambda _: LATENT_SPLITS
    ),
    "glm4_moe_lite": Converter(
        "deepseek2",
        LATENT,
        fixed={"expert_gating_func": 2},
        made=lambda c: latent_sizes(c) | {"leading_dense_block_count": c.mlp_layer_types.count("dense")},
        splits=lambda _: LATENT_SPLITS,
    ),
    "olmoe": Converter("olmoe", LLAMA | USED | {"expert_count": "num_experts"}),
    "phimoe": Converter("phimoe", LLAMA | USED | {"expert_count": "num_local_experts"}),
    "ernie4_5_moe": Converter(
        "ernie4_5-moe",
        LLAMA
        | HEAD
        | {
            "expert_count": "moe_num_experts",
            "expert_used_count": "moe_k",
            "expert_feed_forward_length": "moe_intermediate_size",
            "expert_shared_count": "moe_num_shared_experts",
            "leading_dense_block_count": "moe_layer_start_index",
            "interleave_moe_layer_step": "moe_layer_interval",
        },
        made=lambda c: {"expert_shared_feed_forward_length": c.intermediate_size // c.num_key_value_heads},
    ),
    "hunyuan_v1_moe": Converter(
        "hunyuan-moe",
        LLAMA | HEAD | {"expert_count": "num_experts", "expert_feed_forward_length": "intermediate_size"},
        made=lambda c: {"expert_used_count": c.moe_topk, "expert_shared_count": 1},
    ),
    "glm4_moe": Converter("glm4moe", LLAMA | HEAD | ROUTED, fixed={"expert_gating_func": 2}),
    "solar_open": Converter(
        "glm4moe",
        SIZES | GROUPED | RMS | HEAD | ROUTED,
        # As published, though no layer is dense.
        fixed={"expert_gating_func": 2, "feed_forward_length": 64, "leading_dense_block_count": 0},
    ),
    "dots1": Converter("dots1", LLAMA | HEAD | ROUTED, fixed={"expert_gating_func": 2}),
    "exaone_moe": Converter(
        "exaone-moe",
        LLAMA
        | HEAD
        | WINDOW
        | EXPERTS
        | {
            "vocab_size": "vocab_size",
            "expert_shared_count": "num_shared_experts",
            "expert_weights_scale": "routed_scaling_factor",
            "expert_weights_norm": "norm_topk_prob",
            "leading_dense_block_count": "first_k_dense_replace",
        },
        fixed={"nextn_predict_layers": 0, "rope.scaling.type": "none", "expert_gating_func": 2},
        made=lambda c: {
            "attention.sliding_window_pattern": [kind == "sliding_attention" for kind in c.layer_types],
            "expert_shared_feed_forward_length": c.moe_intermediate_size * c.num_shared_experts,
            "leading_dense_block_count": c.mlp_layer_types.count("dense"),
        },
    ),
    "afmoe": Converter(
        "afmoe",
        LLAMA
        | HEAD
        | WINDOW
        | EXPERTS
        | {
            "vocab_size": "vocab_size",
            "expert_shared_count": "num_shared_experts",
            "leading_dense_block_count": "num_dense_layers",
            "expert_weights_scale": "route_scale",
        },
        fixed={"expert_weights_norm": True, "expert_gating_func": 2},
    ),
    "minimax_m2": Converter(
        "minimax-m2",
        LLAMA | HEAD | USED | {"expert_count": "num_local_experts", "expert_feed_forward_length": "intermediate_size"},
        fixed={"expert_gating_func": 2},
    ),
}
