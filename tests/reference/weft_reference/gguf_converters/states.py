"""Decoders with states: Mamba, short convolutions, gated delta rules, and hybrids of them with attention."""

from __future__ import annotations

from typing import Any

from weft_reference.gguf_converters.changes import (
    COLUMN,
    DECAY,
    DECAY_COLUMN,
    FLAT,
    GROUPED_NORM,
    PLUS_ONE,
    ROTARY,
    SQUEEZED,
)
from weft_reference.gguf_converters.converter import EXPERTS, GRANITE, HEAD, LLAMA, MLP, RMS, SIZES, Converter
from weft_reference.gguf_converters.splits import DELTA_SPLITS, hybrid_splits


def _adjusted(config: Any) -> int:
    """The width of LFM2's MLPs."""
    width = config.intermediate_size
    if config.block_auto_adjust_ff_dim:
        width = int(config.block_ffn_dim_multiplier * int(2 * width / 3))
        width = -(-width // config.block_multiple_of) * config.block_multiple_of
    return width


STATES = {
    "embedding_length": "hidden_size",
    "block_count": "num_hidden_layers",
    "ssm.conv_kernel": "conv_kernel",
    "ssm.state_size": "state_size",
    "attention.layer_norm_rms_epsilon": "layer_norm_epsilon",
}


# Written because llama.cpp asks for them.
UNUSED = {"context_length": 2**20, "feed_forward_length": 0, "attention.head_count": 0}


SHORT_CONVOLUTIONS = SIZES | {"attention.layer_norm_rms_epsilon": "norm_eps", "shortconv.l_cache": "conv_L_cache"}


def _key_heads(c: Any) -> dict[str, Any]:
    """By layer; those without attention have none."""
    return {"attention.head_count_kv": [c.num_key_value_heads * (kind == "full_attention") for kind in c.layer_types]}


def _granite_hybrid(c: Any) -> dict[str, Any]:
    made = _key_heads(c) | {
        "ssm.inner_size": c.mamba_n_heads * c.mamba_d_head,
        "rope.scaling.finetuned": c.position_embedding_type == "rope",
    }
    if c.num_local_experts:
        made |= {"expert_count": c.num_local_experts, "expert_used_count": c.num_experts_per_tok}
    return made


MAMBA = Converter(
    "mamba",
    STATES | {"ssm.inner_size": "intermediate_size", "ssm.time_step_rank": "time_step_rank"},
    SQUEEZED | DECAY,
    rope=False,
    fixed=UNUSED,
    made=lambda c: {"ssm.dt_b_c_rms": c.model_type == "falcon_mamba"},
)


CONVERTERS = {
    "mamba": MAMBA,
    "falcon_mamba": MAMBA,
    "mamba2": Converter(
        "mamba2",
        STATES | {"ssm.time_step_rank": "num_heads", "ssm.group_count": "n_groups"},
        SQUEEZED | DECAY_COLUMN | COLUMN | GROUPED_NORM,
        rope=False,
        fixed=UNUSED,
        made=lambda c: {"ssm.inner_size": int(c.expand * c.hidden_size)},
    ),
    "lfm2": Converter(
        "lfm2",
        SHORT_CONVOLUTIONS,
        SQUEEZED,
        made=lambda c: {"feed_forward_length": _adjusted(c)} | _key_heads(c),
    ),
    "lfm2_moe": Converter(
        "lfm2moe",
        SHORT_CONVOLUTIONS | MLP | EXPERTS | {"leading_dense_block_count": "num_dense_layers"},
        SQUEEZED,
        fixed={"expert_gating_func": 2},
        made=_key_heads,
        renamed={"experts.w1": "experts.gate_proj", "experts.w3": "experts.up_proj", "experts.w2": "experts.down_proj"},
    ),
    "granitemoehybrid": Converter(
        "granitehybrid",
        SIZES
        | MLP
        | RMS
        | GRANITE
        | {
            "ssm.conv_kernel": "mamba_d_conv",
            "ssm.state_size": "mamba_d_state",
            "ssm.group_count": "mamba_n_groups",
            "ssm.time_step_rank": "mamba_n_heads",
            "expert_shared_feed_forward_length": "shared_intermediate_size",
        },
        ROTARY | SQUEEZED | DECAY_COLUMN | COLUMN | GROUPED_NORM,
        made=_granite_hybrid,
        splits=hybrid_splits,
    ),
    "qwen3_next": Converter(
        "qwen3next",
        LLAMA
        | HEAD
        | EXPERTS
        | {
            "expert_shared_feed_forward_length": "shared_expert_intermediate_size",
            "ssm.conv_kernel": "linear_conv_kernel_dim",
            "ssm.state_size": "linear_key_head_dim",
            "ssm.group_count": "linear_num_key_heads",
            "ssm.time_step_rank": "linear_num_value_heads",
        },
        {r"(?<!linear_attn\.)norm\.weight$": PLUS_ONE[r"norm\.weight$"]} | FLAT | SQUEEZED | DECAY,
        made=lambda c: {
            "ssm.inner_size": c.linear_value_head_dim * c.linear_num_value_heads,
            "full_attention_interval": c.layer_types.index("full_attention") + 1,
        },
        splits=lambda _: DELTA_SPLITS,
    ),
}
