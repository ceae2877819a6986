"""What llama.cpp's converter makes of one tensor: several, or one of another name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from weft_reference.gguf_converters.changes import Array


class Split(NamedTuple):
    """What the converter makes of one tensor: others, by their names in files, in which `{}` is the number of a layer; and its inverse."""

    names: tuple[str, ...]
    there: Callable[[Array, Any], list[Array]]
    back: Callable[[list[Array], Any], Array]


def _turned(w: Array) -> Array:
    return w.swapaxes(-1, -2)


def _halves(w: Array, _config: Any) -> list[Array]:
    return np.split(w, 2, axis=-2)


def _joined(parts: list[Array], _config: Any) -> Array:
    return np.concatenate(parts, axis=-2)


def _alternating(parts: list[Array]) -> Array:
    return np.stack(parts, -1).reshape(*parts[0].shape[:-1], -1)


def _keys_values(w: Array, c: Any) -> list[Array]:
    by_head = w.reshape(c.num_attention_heads, -1, c.kv_lora_rank)
    return [_turned(by_head[:, : c.qk_nope_head_dim]), by_head[:, c.qk_nope_head_dim :]]


def _latent(parts: list[Array], c: Any) -> Array:
    return np.concatenate([_turned(parts[0]), parts[1]], 1).reshape(-1, c.kv_lora_rank)


def same(name: str) -> Split:
    """One tensor as it was, under a name."""
    return Split((name,), lambda w, _: [w], lambda parts, _: parts[0])


GATE_UP = tuple(f"blk.{{}}.ffn_{part}_exps" for part in ("gate", "up"))


GATE_UP_WEIGHT = tuple(f"{name}.weight" for name in GATE_UP)


GPT_OSS_SPLITS = {
    r"experts\.gate_up_proj$": Split(
        GATE_UP_WEIGHT,
        lambda w, _: [_turned(w[..., part::2]) for part in (0, 1)],
        lambda parts, _: _alternating([_turned(part) for part in parts]),
    ),
    r"experts\.gate_up_proj_bias$": Split(
        tuple(f"{name}.bias" for name in GATE_UP),
        lambda w, _: [w[..., part::2] for part in (0, 1)],
        lambda parts, _: _alternating(parts),
    ),
    r"experts\.down_proj$": Split(
        ("blk.{}.ffn_down_exps.weight",), lambda w, _: [_turned(w)], lambda parts, _: _turned(parts[0])
    ),
    r"experts\.down_proj_bias$": same("blk.{}.ffn_down_exps.bias"),
    r"self_attn\.sinks$": same("blk.{}.attn_sinks.weight"),
}


GRANITE_SPLITS = {
    r"block_sparse_moe\.input_linear\.weight$": Split(GATE_UP_WEIGHT, _halves, _joined),
    r"shared_mlp\.input_linear\.weight$": Split(
        ("blk.{}.ffn_gate_shexp.weight", "blk.{}.ffn_up_shexp.weight"), _halves, _joined
    ),
}


LATENT_SPLITS = {
    r"kv_b_proj\.weight$": Split(("blk.{}.attn_k_b.weight", "blk.{}.attn_v_b.weight"), _keys_values, _latent)
}


GATE_UP_SPLITS = {
    r"experts\.gate_up_proj$": Split(GATE_UP_WEIGHT, _halves, _joined),
    r"experts\.down_proj$": same("blk.{}.ffn_down_exps.weight"),
}


BATCHED_SPLITS = {
    r"experts\.gate_up_proj$": same("blk.{}.ffn_gate_up_exps.weight"),
    r"experts\.down_proj$": same("blk.{}.ffn_down_exps.weight"),
}


def hybrid_splits(c: Any) -> dict[str, Split]:
    """Granite's; without experts, the shared one is the MLP."""
    if c.num_local_experts:
        return GRANITE_SPLITS
    names = ("blk.{}.ffn_gate.weight", "blk.{}.ffn_up.weight")
    return {
        r"shared_mlp\.input_linear\.weight$": Split(names, _halves, _joined),
        r"shared_mlp\.output_linear\.weight$": same("blk.{}.ffn_down.weight"),
    }


def _by_kind(w: Array, c: Any) -> list[Array]:
    """Queries, keys and values of all heads, and their gates, of those by key head."""
    key, heads = c.linear_key_head_dim, c.linear_num_key_heads
    grouped = w.reshape(heads, -1, w.shape[-1])
    shared = (grouped.shape[1] - 2 * key) // 2
    bounds = (0, key, 2 * key, 2 * key + shared, 2 * (key + shared))
    kinds = [grouped[:, first:last].reshape(-1, w.shape[-1]) for first, last in zip(bounds, bounds[1:], strict=False)]
    return [np.concatenate(kinds[:3]), kinds[3]]


def _by_key_head(parts: list[Array], c: Any) -> Array:
    keys = c.linear_key_head_dim * c.linear_num_key_heads
    kinds = [*np.split(parts[0], [keys, 2 * keys]), parts[1]]
    grouped = [kind.reshape(c.linear_num_key_heads, -1, kind.shape[-1]) for kind in kinds]
    return np.concatenate(grouped, 1).reshape(-1, parts[0].shape[-1])


DELTA_SPLITS = {
    r"in_proj_qkvz\.weight$": Split(("blk.{}.attn_qkv.weight", "blk.{}.attn_gate.weight"), _by_kind, _by_key_head)
}


GEMMA3N_SPLITS = {r"altup\.correct_output_scale$": same("blk.{}.altup_correct_scale.weight")}


GEMMA4_SPLITS = BATCHED_SPLITS | {
    r"layer_scalar$": same("blk.{}.layer_output_scale.weight"),
    r"router\.scale$": same("blk.{}.ffn_gate_inp.scale"),
    r"router\.per_expert_scale$": same("blk.{}.ffn_down_exps.scale"),
}


GEMMA4_ASSISTANT_SPLITS = GEMMA4_SPLITS | {
    rf"^{part}_projection\.weight$": same(f"nextn.{part}_projection.weight") for part in ("pre", "post")
}


def _by_expert(w: Array, c: Any) -> Array:
    return w.reshape(c.ffn_config.moe_num_experts, -1, w.shape[-1])


def _flat(w: Array) -> Array:
    return w.reshape(-1, w.shape[-1])


DBRX_SPLITS = {
    r"mlp\.w1$": Split((GATE_UP_WEIGHT[0],), lambda w, c: [_by_expert(w, c)], lambda parts, _: _flat(parts[0])),
    r"mlp\.v1$": Split((GATE_UP_WEIGHT[1],), lambda w, c: [_by_expert(w, c)], lambda parts, _: _flat(parts[0])),
    r"mlp\.w2$": Split(
        ("blk.{}.ffn_down_exps.weight",),
        lambda w, c: [_turned(_by_expert(w, c))],
        lambda parts, _: _flat(_turned(parts[0])),
    ),
}


HY_V3_SPLITS = {r"expert_bias$": same("blk.{}.exp_probs_b")}


MIMO2_SPLITS = {r"attention_sink_bias$": same("blk.{}.attn_sinks.weight")}


LLAMA4_SPLITS = {
    r"experts\.gate_up_proj$": Split(
        GATE_UP_WEIGHT,
        lambda w, c: _halves(_turned(w), c),
        lambda parts, c: _turned(_joined(parts, c)),
    ),
    r"experts\.down_proj$": Split(
        ("blk.{}.ffn_down_exps.weight",), lambda w, _: [_turned(w)], lambda parts, _: _turned(parts[0])
    ),
}
