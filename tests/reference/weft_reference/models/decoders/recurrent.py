"""Decoders with states of fixed size: convolutions over time, state spaces, linear attention; alone or beside attention."""

from __future__ import annotations

from weft_reference.models.decoders.family import SPECIAL, TIED, TINY, UNTIED, Changes, Decoder

# More positions than the chunks that states are computed in.
LONG: Changes = {"max_position_embeddings": 128}
HYBRID: Changes = {"num_hidden_layers": 3}
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
)
