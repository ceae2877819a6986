"""Mixtures of experts in which more varies than the fields of their configuration tell."""

from __future__ import annotations

from weft_reference.models.decoders.family import BIAS, WIDE_HEADS, WINDOW, Decoder
from weft_reference.models.decoders.ropes import LONG, SHORT, Changes, rope


def longrope(original: int) -> Changes:
    """Phi-3.5-MoE's, which says itself what cosines and sines are multiplied by.

    No text here is longer than the original: there the reference keeps the short factors, which nothing was trained with.
    """
    kind = {"rope_type": "longrope", "rope_theta": 10000.0, "short_factor": SHORT, "long_factor": LONG}
    return {"rope_parameters": kind | {
        "short_mscale": 1.2, "long_mscale": 1.3, "original_max_position_embeddings": original, "factor": 4.0,
    }}


LATENT: Changes = {
    "num_key_value_heads": 4,
    "kv_lora_rank": 10,
    "q_lora_rank": 14,
    "qk_nope_head_dim": 8,
    "qk_rope_head_dim": 4,
    "v_head_dim": 6,
    "n_routed_experts": 8,
    "n_shared_experts": 2,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 24,
    "first_k_dense_replace": 1,
    "routed_scaling_factor": 1.5,
}
YARN = rope("yarn", factor=4.0, original_max_position_embeddings=16, mscale=0.7, mscale_all_dim=1.0)

DECODERS: tuple[Decoder, ...] = (
    Decoder(
        "phimoe",
        "Phimoe",
        {"num_local_experts": 5, "num_experts_per_tok": 2},
        {
            "windows": WINDOW,
            "bias": BIAS | {"lm_head_bias": True},
            "wider": {"router_jitter_noise": 0.05},
            "longrope": longrope(16),
        },
    ),
    Decoder(
        "deepseek_v2",
        "DeepseekV2",
        LATENT,
        {
            "groups": {"topk_method": "group_limited_greedy", "n_group": 4, "topk_group": 2},
            "whole-queries": {"q_lora_rank": None},
            "all-sparse": {"first_k_dense_replace": 0},
            "bias": BIAS | {"mlp_bias": True},
            "yarn": YARN,
        },
    ),
    Decoder(
        "deepseek_v3",
        "DeepseekV3",
        LATENT | {"n_group": 4, "topk_group": 2},
        {
            "one-group": {"n_group": 1, "topk_group": 1},
            "whole-queries": {"q_lora_rank": None},
            "all-sparse": {"first_k_dense_replace": 0},
            "not-normalised": {"norm_topk_prob": False},
            "halves": {"rope_interleave": False},
            "bias": BIAS,
            "yarn": YARN,
        },
    ),
    Decoder(
        "gpt_oss",
        "GptOss",
        {"num_local_experts": 5, "num_experts_per_tok": 2, "head_dim": 8} | WINDOW,
        {
            "layer-types": {"layer_types": ["full_attention", "sliding_attention"]},
            "wide-heads": WIDE_HEADS,
            "tight": {"swiglu_limit": 0.7, "swiglu_alpha": 1.2},
            "unbiased": {"attention_bias": False},
            "yarn": YARN,
        },
    ),
)
