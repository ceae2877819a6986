"""Decoders with states of fixed size: convolutions over time, state spaces, linear attention; alone or beside attention."""

from __future__ import annotations

from weft_reference.models.decoders.family import SPECIAL, TIED, TINY, UNTIED, Changes, Decoder

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
    ),
    Decoder(
        "falcon_mamba",
        "FalconMamba",
        {"state_size": 5, "mixer_rms_eps": 1e-3},
        {"bias": {"use_bias": True, "use_conv_bias": False}, "rank": {"time_step_rank": 3, "expand": 3}, "untied": UNTIED},
        base=STATE,
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
            "dense": {"num_local_experts": 0},
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
    ),
)
