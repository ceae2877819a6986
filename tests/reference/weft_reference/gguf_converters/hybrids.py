"""Decoders whose layers are of several kinds, or have attention and a state space side by side."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft_reference.gguf_converters.changes import (
    COLUMN,
    DECAY,
    DECAY_COLUMN,
    GROUPED_NORM,
    ROTARY,
    SQUEEZED,
    Array,
    Change,
)
from weft_reference.gguf_converters.converter import HEAD, LLAMA, MLP, RMS, SIZES, USED, Converter
from weft_reference.gguf_converters.splits import same


def _scaled(factor: Any) -> Change:
    """Multiplied by what a function says of the configuration."""
    return Change(lambda w, c: w * factor(c), lambda w, c: w / factor(c))


def _key_heads(c: Any, is_attention: list[bool]) -> list[int]:
    """By layer; those without attention have none."""
    return [c.num_key_value_heads * attends for attends in is_attention]


def _jamba(c: Any) -> dict[str, Any]:
    return {
        "ssm.inner_size": c.mamba_expand * c.hidden_size,
        "attention.head_count_kv": _key_heads(c, [kind == "full_attention" for kind in c.layer_types]),
    }


def _bamba(c: Any) -> dict[str, Any]:
    return {
        "ssm.inner_size": c.mamba_n_heads * c.mamba_d_head,
        "attention.head_count_kv": _key_heads(c, [layer in c.attn_layer_indices for layer in range(c.num_hidden_layers)]),
        "rope.scaling.finetuned": True,
    }


def _ssm_rows(c: Any) -> Array:
    """What rows of Falcon-H1's input projection are multiplied with: those of its gate, x, B, C and ∆."""
    widths = [c.mamba_d_ssm] * 2 + [c.mamba_n_groups * c.mamba_d_state] * 2 + [c.mamba_n_heads]
    return np.repeat(c.ssm_multipliers, widths)[:, None].astype(np.float32) * c.ssm_in_multiplier


FALCON_H1 = {
    r"down_proj\.weight$": _scaled(lambda c: c.mlp_multipliers[1]),
    r"gate_proj\.weight$": _scaled(lambda c: c.mlp_multipliers[0]),
    r"k_proj\.weight$": _scaled(lambda c: c.key_multiplier * c.attention_in_multiplier),
    r"[qv]_proj\.weight$": _scaled(lambda c: c.attention_in_multiplier),
    r"o_proj\.weight$": _scaled(lambda c: c.attention_out_multiplier),
    r"out_proj\.weight$": _scaled(lambda c: c.ssm_out_multiplier),
    r"in_proj\.weight$": _scaled(_ssm_rows),
    r"lm_head\.weight$": _scaled(lambda c: c.lm_head_multiplier),
    r"embed_tokens\.weight$": _scaled(lambda c: c.embedding_multiplier),
}


def _nemotron(c: Any) -> dict[str, Any]:
    """By layer: key heads of those with attention, and widths of those that are an MLP or experts."""
    kinds = c.layers_block_type
    width = {"mlp": c.intermediate_size, "moe": c.moe_intermediate_size}
    return {
        "block_count": len(kinds),
        "ssm.inner_size": c.mamba_num_heads * c.mamba_head_dim,
        "attention.head_count_kv": _key_heads(c, [kind == "full_attention" for kind in kinds]),
        "feed_forward_length": [width.get(kind, 0) for kind in kinds],
    }


NEMOTRON = (
    SIZES
    | HEAD
    | {
        "attention.layer_norm_epsilon": "layer_norm_epsilon",
        "attention.layer_norm_rms_epsilon": "layer_norm_epsilon",
        "ssm.conv_kernel": "conv_kernel",
        "ssm.state_size": "ssm_state_size",
        "ssm.group_count": "n_groups",
        "ssm.time_step_rank": "mamba_num_heads",
    }
)
NEMOTRON_MOE = USED | {
    "expert_count": "n_routed_experts",
    "expert_feed_forward_length": "moe_intermediate_size",
    "expert_shared_feed_forward_length": "moe_shared_expert_intermediate_size",
    "expert_shared_count": "n_shared_experts",
    "expert_weights_norm": "norm_topk_prob",
    "expert_weights_scale": "routed_scaling_factor",
    "expert_group_count": "n_group",
    "moe_latent_size": "moe_latent_size",
}
STATE = {
    "ssm.conv_kernel": "mamba_d_conv",
    "ssm.state_size": "mamba_d_state",
    "ssm.group_count": "mamba_n_groups",
    "ssm.time_step_rank": "mamba_n_heads",
}
NEMOTRON_CHANGES = SQUEEZED | DECAY_COLUMN | COLUMN | GROUPED_NORM


CONVERTERS = {
    "minimax": Converter(
        "minimax-01",
        LLAMA | HEAD | USED | {"expert_count": "num_local_experts", "residual_scale": "mlp_alpha_factor"},
        dropped=("slope_rate", "query_decay", "key_decay", "diagonal_decay"),
        splits=lambda _: {
            r"self_attn\.norm\.weight$": same("blk.{}.attn_norm_2.weight"),
            r"output_gate\.weight$": same("blk.{}.attn_gate.weight"),
            r"qkv_proj\.weight$": same("blk.{}.attn_qkv.weight"),
            r"out_proj\.weight$": same("blk.{}.attn_output.weight"),
        },
        renamed={r"^.*\.(slope_rate|\w+_decay)$": r"\1"},
        names="llama",
    ),
    "jamba": Converter(
        "jamba",
        SIZES
        | MLP
        | RMS
        | USED
        | {
            "expert_count": "num_experts",
            "ssm.conv_kernel": "mamba_d_conv",
            "ssm.state_size": "mamba_d_state",
            "ssm.time_step_rank": "mamba_dt_rank",
        },
        SQUEEZED | DECAY,
        rope=False,
        made=_jamba,
        renamed={"feed_forward.experts": "mlp.experts"},
    ),
    "falcon_h1": Converter(
        "falcon-h1",
        LLAMA | HEAD | STATE | {"ssm.inner_size": "mamba_d_ssm", "vocab_size": "vocab_size"},
        FALCON_H1 | SQUEEZED | DECAY_COLUMN | COLUMN | GROUPED_NORM,
    ),
    "bamba": Converter(
        "granitehybrid",
        SIZES | MLP | RMS | STATE,
        ROTARY | SQUEEZED | DECAY_COLUMN | COLUMN | GROUPED_NORM,
        made=_bamba,
    ),
    "nemotron_h": Converter("nemotron_h", NEMOTRON, NEMOTRON_CHANGES, rope=False, made=_nemotron),
    "nemotron_h_moe": Converter(
        "nemotron_h_moe",
        NEMOTRON | NEMOTRON_MOE,
        NEMOTRON_CHANGES,
        rope=False,
        made=_nemotron,
        renamed={r"backbone\.(layers\.\d+\.)mixer\.experts": r"model.\1mlp.experts"},
    ),
}
