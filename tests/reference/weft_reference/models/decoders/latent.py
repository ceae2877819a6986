"""Multi-head latent attention, over all keys or those that an indexer selects, mostly with mixtures of experts."""

from __future__ import annotations

from weft_reference.models.decoders.family import BIAS, TIED, TINY, Decoder
from weft_reference.models.decoders.ropes import Changes, rope

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
SPARSE_FIRST: Changes = {"mlp_layer_types": ["sparse", "dense"]}
LATENT_BY_TYPE: Changes = {name: value for name, value in LATENT.items() if name != "first_k_dense_replace"}
LATENT_BASE: Changes = {
    name: LATENT[name]
    for name in ("num_key_value_heads", "kv_lora_rank", "q_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim")
}
# Heads enough that no two keys have the score 0, of which any may be read.
SPARSE: Changes = LATENT | {
    "n_group": 4, "topk_group": 2, "index_topk": 4, "index_head_dim": 6, "index_n_heads": 8, "rms_norm_eps": 1.0,
}
GROUPS: Changes = {"n_group": 4, "topk_group": 2}
ONE_GROUP: Changes = {"n_group": 1, "topk_group": 1}


DECODERS: tuple[Decoder, ...] = (
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
        "mistral4",
        "Mistral4",
        LATENT | GROUPS | rope("yarn", factor=4.0, original_max_position_embeddings=4, llama_4_scaling_beta=0.1, mscale_all_dim=1.0),
        {
            "one-group": ONE_GROUP,
            "whole-queries": {"q_lora_rank": None},
            "all-sparse": {"first_k_dense_replace": 0},
            "not-normalised": {"norm_topk_prob": False},
            "halves": {"rope_interleave": False},
            "bias": BIAS,
        },
    ),
    Decoder(
        "glm4_moe_lite",
        "Glm4MoeLite",
        LATENT_BY_TYPE,
        {
            "groups": GROUPS,
            "whole-queries": {"q_lora_rank": None},
            "mlp-layer-types": SPARSE_FIRST,
            "not-normalised": {"norm_topk_prob": False},
            "halves": {"rope_interleave": False},
            "bias": BIAS,
            "tied": TIED,
        },
    ),
    Decoder(
        "axk1",
        "AXK1",
        LATENT_BY_TYPE | GROUPS,
        {
            "one-group": ONE_GROUP,
            "mlp-layer-types": SPARSE_FIRST,
            "not-normalised": {"norm_topk_prob": False},
            "halves": {"rope_interleave": False},
            "bias": BIAS,
            "tied": TIED,
            "yarn": YARN,
            # As published files have it.
            "dense-first": {
                "num_hidden_layers": 4,
                "mlp_layer_types": ["dense", "dense", "sparse", "dense"],
                "written": {"mlp_layer_types": None, "first_k_dense_replace": 1, "moe_layer_freq": 2},
            },
        },
    ),
    Decoder(
        "deepseek_v32",
        "DeepseekV32",
        SPARSE,
        {
            "mlp-layer-types": SPARSE_FIRST,
            "not-normalised": {"norm_topk_prob": False},
            "all-keys": {"index_topk": 30},
            "bias": BIAS,
            "yarn": YARN,
        },
    ),
    Decoder(
        "glm_moe_dsa",
        "GlmMoeDsa",
        SPARSE | {"n_group": 1, "topk_group": 1},
        {
            "shared": {"num_hidden_layers": 3, "indexer_types": ["full", "shared", "full"]},
            "periods": {"mlp_layer_types": ["dense"] * 4, "num_hidden_layers": 4, "index_topk_freq": 2, "written": {"indexer_types": None, "index_topk_freq": 2}},
            "bias": BIAS,
        },
    ),
    Decoder(
        "longcat_flash",
        "LongcatFlash",
        LATENT_BASE
        | {
            "num_layers": 2,
            "moe_topk": 2,
            "n_routed_experts": 4,
            "zero_expert_num": 2,
            "expert_ffn_hidden_size": 24,
            "ffn_hidden_size": 40,
            "head_dim": 4,
            "rms_norm_eps": 1.0,
            "num_experts_per_tok": 2,
            "routed_scaling_factor": 1.5,
        },
        {
            "no-zero-experts": {"zero_expert_num": 0, "routed_scaling_factor": 0.7},
            "bias": BIAS,
            "yarn": YARN,
        },
        base={name: value for name, value in TINY.items() if name not in ("num_hidden_layers", "intermediate_size")},
    ),
)
