"""More decoders with states of fixed size: those that share layers, forget at fixed rates or read no padding mask."""

from __future__ import annotations

from weft_reference.models.decoders.family import BIAS, SPECIAL, TIED, TINY, UNTIED, Changes, Decoder
from weft_reference.models.decoders.recurrent import LONG
from weft_reference.models.decoders.ropes import rope

SHARED: Changes = {
    "num_hidden_layers": 5,
    "layers_block_type": ["linear_attention", "hybrid", "hybrid", "linear_attention", "hybrid"],
}
DEFAULT_LAYERS: Changes = {"layers_block_type": None, "num_hidden_layers": 10, "attn_layer_period": 3, "attn_layer_offset": 1}
FACTORS: Changes = {
    "full_attn_alpha_factor": 1.5,
    "full_attn_beta_factor": 0.7,
    "linear_attn_alpha_factor": 1.3,
    "linear_attn_beta_factor": 0.6,
    "mlp_alpha_factor": 1.2,
    "mlp_beta_factor": 0.8,
}
LFM3_ROPE: Changes = {
    "full_attention": {"rope_type": "proportional", "rope_theta": 1000.0, "partial_rotary_factor": 0.5},
    "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
}
RECURRENT: Changes = {"vocab_size": 61, "hidden_size": 32, "num_hidden_layers": 3} | SPECIAL

DECODERS: tuple[Decoder, ...] = (
    Decoder(
        "zamba2",
        "Zamba2",
        SHARED
        | {
            "num_mem_blocks": 2,
            "adapter_rank": 7,
            "n_mamba_heads": 8,
            "mamba_ngroups": 2,
            "mamba_d_state": 6,
            "chunk_size": 8,
        },
        {
            "long": LONG,
            # The reference's adapters of keys are as wide as those of queries.
            "adapters": {"use_shared_attention_adapter": True, "num_key_value_heads": 4},
            "rope": {"use_mem_rope": True, "rope_parameters": {"rope_type": "default", "rope_theta": 1000.0}},
            "bias": {"add_bias_linear": True},
            "one-block": {"num_mem_blocks": 1, "mamba_ngroups": 1, "time_step_min": 0.1, "mamba_d_conv": 3},
        },
        states=True,
    ),
    Decoder(
        "zamba",
        "Zamba",
        SHARED | {"mamba_d_state": 5, "n_mamba_heads": 2},
        {
            "long": LONG,
            "bias": {"mamba_proj_bias": True, "mamba_conv_bias": False, "mamba_dt_rank": 3},
            "one-head": {"n_mamba_heads": 1, "mamba_d_conv": 3, "mamba_expand": 3},
            "periods": DEFAULT_LAYERS | {"written": DEFAULT_LAYERS},
        },
        states=True,
    ),
    Decoder(
        "minimax",
        "MiniMax",
        {
            "num_hidden_layers": 3,
            "layer_types": ["linear_attention", "full_attention", "linear_attention"],
            "rms_norm_eps": 1.0,
            "num_local_experts": 4,
            "num_experts_per_tok": 2,
            "block_size": 8,
        },
        {
            # So long a text is steady where experts are not chosen.
            "long": LONG | {"num_local_experts": 2},
            "factors": FACTORS | {"num_local_experts": 2, "num_hidden_layers": 2, "layer_types": ["full_attention", "linear_attention"]},
            "wide-heads": {"head_dim": 12},
            "window": {"sliding_window": 4},
            "tied": TIED,
        },
        states=True,
    ),
    Decoder(
        "bailing_hybrid",
        "BailingHybrid",
        {
            "num_hidden_layers": 3,
            "layer_types": ["linear_attention", "full_attention", "linear_attention"],
            "mlp_layer_types": ["dense", "sparse", "sparse"],
            "rms_norm_eps": 1.0,
            "num_local_experts": 4,
            "num_experts_per_tok": 2,
            "n_group": 1,
            "topk_group": 1,
            "moe_intermediate_size": 24,
            "num_key_value_heads": 4,
            "head_dim": 6,
            "kv_lora_rank": 10,
            "qk_rope_head_dim": 4,
            "qk_nope_head_dim": 8,
            "v_head_dim": 6,
        },
        {
            "long": LONG,
            "unbounded": {"kda_safe_gate": False, "short_conv_kernel_size": 3},
            "intervals": {"layer_types": None, "layer_group_size": 2, "mlp_layer_types": None, "first_k_dense_replace": 1},
            "groups": {"n_group": 2, "topk_group": 1, "moe_renormalize": False, "kda_lower_bound": -2.0},
            "bias": BIAS,
            "yarn": rope("yarn", factor=4.0, original_max_position_embeddings=16, mscale=0.7, mscale_all_dim=1.0),
        },
        states=True,
    ),
    Decoder(
        "lfm3",
        "Lfm3",
        {
            "num_hidden_layers": 4,
            "layer_types": ["conv", "full_attention", "sliding_attention", "conv"],
            "head_dim": 8,
            "sliding_window": 4,
            "rope_parameters": LFM3_ROPE,
        },
        {
            "long": LONG,
            "bias": BIAS | {"conv_bias": True, "conv_L_cache": 4},
            "plain": {"use_sandwich_norm": False, "use_attention_gate": False},
            "untied": UNTIED,
        },
        states=True,
    ),
    Decoder(
        "rwkv",
        "Rwkv",
        {"rescale_every": 2},
        {
            "long": {},
            "not-rescaled": {"rescale_every": 0},
            "wide": {"attention_hidden_size": 24, "intermediate_size": 40, "use_cache": False},
            "tied": TIED,
        },
        base=RECURRENT,
        without=("state",),
        states=True,
    ),
    Decoder(
        "xlstm",
        "xLSTM",
        {"num_hidden_layers": 2, "num_heads": 2, "hidden_size": 32, "use_cache": False, "ffn_round_up_to_multiple_of": 8},
        {
            "long": {},
            "bias": {"use_bias": True, "qk_dim_factor": 0.25},
            "narrow": {"v_dim_factor": 0.5},
            "capped": {"gate_soft_cap": 3.0, "output_logit_soft_cap": 2.0, "eps": 1e-2},
        },
        base=RECURRENT,
        states=True,
    ),
)
