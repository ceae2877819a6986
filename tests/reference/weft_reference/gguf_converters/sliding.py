"""Decoders in which most layers attend within a window: gated by head, beside their MLP, or with sinks."""

from __future__ import annotations

from typing import Any

from weft_reference.gguf_converters.changes import ROTARY
from weft_reference.gguf_converters.converter import (
    EXPERTS,
    GRANITE,
    GROUPED,
    HEAD,
    LLAMA,
    MLP,
    SIZES,
    USED,
    WINDOW,
    Converter,
)
from weft_reference.gguf_converters.splits import GATE_UP_SPLITS, same


def _pattern(c: Any) -> dict[str, Any]:
    return {"attention.sliding_window_pattern": [kind == "sliding_attention" for kind in c.layer_types]}


def _laguna(c: Any) -> dict[str, Any]:
    """Heads by layer, and how much of one turns where attention slides; which layers those are is not said."""
    share = c.rope_parameters["sliding_attention"].get("partial_rotary_factor", 1.0)
    return {
        **({"attention.sliding_window": c.sliding_window} if c.sliding_window else {}),
        "attention.head_count": c.num_attention_heads_per_layer,
        "leading_dense_block_count": c.mlp_layer_types.count("dense"),
        "rope.dimension_count_swa": int(c.head_dim * share),
    }


def _cohere2_moe(c: Any) -> dict[str, Any]:
    """The width of dense MLPs, and that of all shared experts."""
    made = _pattern(c) | {"feed_forward_length": c.prefix_dense_intermediate_size or c.intermediate_size}
    made["leading_dense_block_count"] = c.mlp_layer_types.count("dense")
    made["expert_gating_func"] = {"softmax": 1, "sigmoid": 2}[c.expert_selection_fn]
    if c.num_shared_experts:
        made["expert_shared_count"] = c.num_shared_experts
        made["expert_shared_feed_forward_length"] = c.intermediate_size * c.num_shared_experts
    return made


def _granite(c: Any) -> dict[str, Any]:
    """Which layers slide, and which have positions."""
    return _pattern(c) | {"attention.rope_pattern": [base != 0 for base in c.layer_rope_theta]}


SINKS = {r"self_attn\.sinks$": same("blk.{}.attn_sinks.weight")}


CONVERTERS = {
    "laguna": Converter(
        "laguna",
        LLAMA
        | HEAD
        | EXPERTS
        | {
            "vocab_size": "vocab_size",
            "expert_shared_feed_forward_length": "shared_expert_intermediate_size",
            "expert_weights_scale": "moe_routed_scaling_factor",
        },
        fixed={"expert_weights_norm": True, "expert_gating_func": 2},
        made=_laguna,
        splits=lambda _: {
            r"e_score_correction_bias$": same("blk.{}.exp_probs_b.bias"),
            r"g_proj\.weight$": same("blk.{}.attn_gate.weight"),
        },
        names="dots1",
    ),
    "cohere2_moe": Converter(
        "cohere2moe",
        SIZES
        | MLP
        | GROUPED
        | HEAD
        | WINDOW
        | USED
        | {
            "attention.layer_norm_epsilon": "layer_norm_eps",
            "attention.layer_norm_rms_epsilon": "rms_norm_eps",
            "vocab_size": "vocab_size",
            "logit_scale": "logit_scale",
            "expert_count": "num_experts",
            "expert_feed_forward_length": "intermediate_size",
            "expert_weights_norm": "norm_topk_prob",
        },
        fixed={"rope.scaling.type": "none"},
        made=_cohere2_moe,
        names="dots1",
    ),
    "granite_swa": Converter(
        "granite_swa", LLAMA | GRANITE | WINDOW, ROTARY, made=_granite, splits=lambda _: SINKS, names="granite"
    ),
    "granitemoe_swa": Converter(
        "granite_swa",
        LLAMA
        | GRANITE
        | WINDOW
        | USED
        | {"expert_count": "num_local_experts", "expert_shared_feed_forward_length": "shared_intermediate_size"},
        ROTARY,
        made=_granite,
        splits=lambda _: (
            SINKS
            | GATE_UP_SPLITS
            | {
                r"router\.weight$": same("blk.{}.ffn_gate_inp.weight"),
                r"shared_mlp\.input_linear\.weight$": same("blk.{}.ffn_up_shexp.weight"),
                r"shared_mlp\.output_linear\.weight$": same("blk.{}.ffn_down_shexp.weight"),
            }
        ),
        names="granitemoe",
    ),
}
