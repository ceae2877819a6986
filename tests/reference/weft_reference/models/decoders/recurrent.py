"""Decoders with states of fixed size: convolutions over time, state spaces, linear attention; alone or beside attention."""

from __future__ import annotations

from weft_reference.models.decoders.family import BIAS, SPECIAL, TIED, TINY, UNTIED, Changes, Decoder

# More positions than the chunks that states are computed in.
LONG: Changes = {"max_position_embeddings": 128}
HYBRID: Changes = {"num_hidden_layers": 3}
MAMBA2: Changes = {
    "num_hidden_layers": 3,
    "mamba_n_heads": 8,
    "mamba_n_groups": 2,
    "mamba_d_state": 6,
    "mamba_chunk_size": 8,
}
DELTA: Changes = {
    "num_hidden_layers": 3,
    "layer_types": ["linear_attention", "full_attention", "linear_attention"],
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 6,
    "linear_value_head_dim": 5,
}
INTERVAL: Changes = {"layer_types": None, "full_attention_interval": 2}
# As the published file has it.
KIMI: Changes = {"num_heads": 2, "head_dim": 8, "short_conv_kernel_size": 3, "full_attn_layers": [2], "kda_layers": [1, 3]}
KIMI_WRITTEN: Changes = {
    "layer_types": None,
    "linear_attn_config": KIMI,
    "linear_num_heads": None,
    "linear_head_dim": None,
    "linear_conv_kernel_dim": None,
}
PATTERN: Changes = {"layers_block_type": None, "hybrid_override_pattern": "M*-ME", "num_hidden_layers": 5}
STATE: Changes = {"vocab_size": 61, "hidden_size": 32, "num_hidden_layers": 2} | SPECIAL

DECODERS = (
    Decoder(
        "lfm2",
        "Lfm2",
        HYBRID | {"layer_types": ["conv", "full_attention", "conv"], "block_multiple_of": 8},
        {
            "long": LONG,
            "bias": {"conv_bias": True, "conv_L_cache": 4},
            "listed": {"layer_types": None, "full_attn_idxs": [0, 2], "written": {"layer_types": None}},
            "whole-width": {"block_auto_adjust_ff_dim": False},
            "wider": {"block_ffn_dim_multiplier": 1.3},
            "untied": UNTIED,
        },
        base=TINY | {"pad_token_id": 0},
        states=True,
    ),
    Decoder(
        "mamba",
        "Mamba",
        {"state_size": 5, "conv_kernel": 4},
        {
            "long": {},
            "bias": {"use_bias": True, "use_conv_bias": False},
            "rank": {"time_step_rank": 3, "expand": 3, "conv_kernel": 3},
            "untied": UNTIED,
        },
        base=STATE,
        states=True,
    ),
    Decoder(
        "falcon_mamba",
        "FalconMamba",
        {"state_size": 5, "mixer_rms_eps": 1e-3},
        {"bias": {"use_bias": True, "use_conv_bias": False}, "rank": {"time_step_rank": 3, "expand": 3}, "untied": UNTIED},
        base=STATE,
        states=True,
    ),
    Decoder(
        "mamba2",
        "Mamba2",
        {"num_heads": 8, "head_dim": 8, "state_size": 6, "n_groups": 2, "chunk_size": 8},
        {
            "long": {},
            "bias": {"use_bias": True, "use_conv_bias": False},
            "one-group": {"n_groups": 1, "expand": 3, "head_dim": 12, "conv_kernel": 3},
            "limits": {"time_step_limit": [0.3, 0.9], "written": {"time_step_limit": [0.3, 0.9]}},
            "tied": TIED,
        },
        base=STATE,
        states=True,
    ),
    Decoder(
        "lfm2_moe",
        "Lfm2Moe",
        {
            "num_hidden_layers": 3,
            "layer_types": ["conv", "full_attention", "conv"],
            "num_dense_layers": 1,
            "num_experts": 5,
            "num_experts_per_tok": 2,
            "moe_intermediate_size": 24,
        },
        {
            "no-expert-bias": {"use_expert_bias": False, "norm_topk_prob": False, "routed_scaling_factor": 1.5},
            "bias": {"conv_bias": True, "conv_L_cache": 4},
            "untied": UNTIED,
        },
        states=True,
    ),
    Decoder(
        "bamba",
        "Bamba",
        MAMBA2 | {"attn_layer_indices": [1]},
        {
            "bias": {"attention_bias": True, "mlp_bias": True, "mamba_proj_bias": True, "mamba_conv_bias": False},
            "limits": {"time_step_limit": [0.3, 0.9]},
            "one-group": {"mamba_n_groups": 1, "mamba_expand": 1},
            "tied": TIED,
        },
        states=True,
    ),
    Decoder(
        "granitemoehybrid",
        "GraniteMoeHybrid",
        MAMBA2
        | {
            "layer_types": ["linear_attention", "full_attention", "linear_attention"],
            "num_local_experts": 5,
            "num_experts_per_tok": 2,
            "shared_intermediate_size": 40,
        },
        {
            "rope": {"position_embedding_type": "rope"},
            "dense": {"num_local_experts": 0, "num_experts_per_tok": 0},
            "multipliers": {
                "embedding_multiplier": 3.0,
                "logits_scaling": 2.0,
                "residual_multiplier": 0.3,
                "attention_multiplier": 0.2,
            },
            "older": {"written": {"layer_types": ["mamba", "attention", "mamba"]}},
            "bias": {"attention_bias": True, "mamba_proj_bias": True, "mamba_conv_bias": False},
            "tied": TIED,
        },
        states=True,
    ),
    Decoder(
        "jamba",
        "Jamba",
        {
            "num_hidden_layers": 4,
            "num_experts": 5,
            "num_experts_per_tok": 2,
            "attn_layer_period": 3,
            "attn_layer_offset": 1,
            "mamba_d_state": 5,
        },
        {
            "dense": {"num_experts": 1},
            "periods": {"expert_layer_period": 3, "expert_layer_offset": 0, "attn_layer_period": 2, "attn_layer_offset": 0},
            "bias": {"mamba_proj_bias": True, "mamba_conv_bias": False, "mamba_dt_rank": 3, "mamba_expand": 1},
            "tied": TIED,
        },
        states=True,
    ),
    Decoder(
        "falcon_h1",
        "FalconH1",
        MAMBA2 | {"num_hidden_layers": 2, "mamba_d_ssm": 40, "mamba_d_head": 5},
        {
            "norm": {"mamba_rms_norm": True},
            "norm-behind": {"mamba_rms_norm": True, "mamba_norm_before_gate": False, "mamba_n_groups": 1},
            "multipliers": {
                "lm_head_multiplier": 0.3,
                "embedding_multiplier": 3.0,
                "mlp_multipliers": [0.7, 0.4],
                "key_multiplier": 0.5,
                "attention_out_multiplier": 0.6,
                "attention_in_multiplier": 1.5,
                "ssm_multipliers": [0.4, 0.5, 0.6, 0.7, 0.8],
                "ssm_in_multiplier": 1.2,
                "ssm_out_multiplier": 0.3,
            },
            "expanded": {"mamba_d_ssm": None, "mamba_d_head": 8},
            "bias": {"attention_bias": True, "mlp_bias": True, "mamba_proj_bias": True, "projectors_bias": True},
            "tied": TIED,
        },
        states=True,
    ),
    Decoder(
        "qwen3_next",
        "Qwen3Next",
        DELTA
        | {
            # Norms of small numbers enlarge what half precision rounds off, which gives tokens to other experts.
            "rms_norm_eps": 1.0,
            "head_dim": 16,
            "num_hidden_layers": 2,
            "layer_types": ["linear_attention", "full_attention"],
            "num_experts": 5,
            "num_experts_per_tok": 2,
            "moe_intermediate_size": 24,
            "shared_expert_intermediate_size": 20,
        },
        {
            "long": LONG,
            "dense": {"mlp_only_layers": [0], "decoder_sparse_step": 2},
            "interval": {"layer_types": None, "full_attention_interval": 2, "written": INTERVAL},
            "ungrouped": {"linear_num_key_heads": 4, "linear_conv_kernel_dim": 3, "norm_topk_prob": False},
            "bias": BIAS,
            "tied": TIED,
        },
        states=True,
    ),
    Decoder(
        "olmo_hybrid",
        "OlmoHybrid",
        DELTA | {"linear_key_head_dim": 10, "rms_norm_eps": 0.5},
        {
            "long": LONG,
            "no-positions": {"rope_parameters": {"rope_theta": None, "rope_type": "default"}},
            "positive": {"linear_allow_neg_eigval": False, "linear_conv_kernel_dim": 3},
            "bias": BIAS,
            "tied": TIED,
        },
        states=True,
    ),
    Decoder(
        "kimi_linear",
        "KimiLinear",
        {
            "num_hidden_layers": 3,
            "layer_types": ["linear_attention", "full_attention", "linear_attention"],
            # Norms of small numbers enlarge what half precision rounds off, which gives tokens to other experts.
            "rms_norm_eps": 1.0,
            "num_experts": 4,
            "num_experts_per_tok": 2,
            "moe_intermediate_size": 24,
            "num_key_value_heads": 4,
            "kv_lora_rank": 10,
            "qk_rope_head_dim": 4,
            "qk_nope_head_dim": 8,
            "v_head_dim": 6,
            "linear_head_dim": 6,
            "linear_num_heads": 3,
        },
        {
            "long": LONG,
            "queries": {"q_lora_rank": 9, "linear_conv_kernel_dim": 3},
            "published": {"layer_types": None, "linear_attn_config": KIMI, "written": KIMI_WRITTEN},
            "dense": {"mlp_layer_types": ["sparse", "dense", "dense"], "norm_topk_prob": False, "n_shared_experts": 2},
            "groups": {"n_group": 2, "topk_group": 1},
            "bias": BIAS,
        },
        states=True,
    ),
    Decoder(
        "nemotron_h",
        "NemotronH",
        {
            "layers_block_type": ["linear_attention", "moe", "full_attention", "mlp", "linear_attention"],
            "layer_norm_epsilon": 1.0,
            "head_dim": 6,
            "mamba_num_heads": 8,
            "mamba_head_dim": 5,
            "ssm_state_size": 6,
            "n_groups": 2,
            "chunk_size": 8,
            "n_routed_experts": 5,
            "num_experts_per_tok": 2,
            "moe_intermediate_size": 24,
            "moe_shared_expert_intermediate_size": 20,
        },
        {
            "long": LONG | {"layers_block_type": ["linear_attention", "mlp", "full_attention", "linear_attention", "mlp"]},
            "latent": {"moe_latent_size": 12, "routed_scaling_factor": 1.5},
            "groups": {"n_routed_experts": 4, "n_group": 2, "topk_group": 1, "norm_topk_prob": False},
            "bias": {"use_bias": True, "mlp_bias": True, "use_conv_bias": False, "moe_latent_size": 12},
            "one-group": {"n_groups": 1, "conv_kernel": 3, "time_step_min": 0.1},
            "pattern": {"layers_block_type": None, "hybrid_override_pattern": "M*-ME", "written": PATTERN},
        },
        states=True,
    ),
    Decoder(
        "recurrent_gemma",
        "RecurrentGemma",
        {"num_hidden_layers": 3, "lru_width": 24, "attention_window_size": 5},
        {
            "long": LONG,
            "blocks": {"num_hidden_layers": 4, "block_types": ["attention", "recurrent"], "conv1d_width": 3},
            "square": {"lru_width": None, "logits_soft_cap": 3.0, "hidden_activation": "silu"},
            "bias": BIAS,
            "untied": UNTIED,
        },
        states=True,
    ),
)
