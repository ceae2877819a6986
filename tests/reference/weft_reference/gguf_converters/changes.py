"""What llama.cpp's converter does to values of tensors, and its inverse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray


class Change(NamedTuple):
    """What the converter does to a tensor, and its inverse."""

    there: Callable[[Array, Any], Array]
    back: Callable[[Array, Any], Array]


def _rotary(heads: Callable[[Any], int]) -> Change:
    def there(w: Array, c: Any) -> Array:
        return w.reshape(heads(c), 2, w.shape[0] // heads(c) // 2, *w.shape[1:]).swapaxes(1, 2).reshape(w.shape)

    def back(w: Array, c: Any) -> Array:
        return w.reshape(heads(c), w.shape[0] // heads(c) // 2, 2, *w.shape[1:]).swapaxes(1, 2).reshape(w.shape)

    return Change(there, back)


def head_groups(c: Any) -> tuple[int, int]:
    """How many key heads there are, and how many query heads share one."""
    heads, kv = c.num_attention_heads, c.num_attention_heads
    if c.model_type == "falcon":
        kv = c.num_kv_heads if c.new_decoder_architecture else 1 if c.multi_query else kv
    return kv, heads // kv


def _split(w: Array, c: Any) -> Array:
    kv, queries = head_groups(c)
    grouped = w.reshape(kv, queries + 2, -1, *w.shape[1:])
    parts = (grouped[:, :queries], grouped[:, queries:-1], grouped[:, -1:])
    return np.concatenate([part.reshape(-1, *w.shape[1:]) for part in parts])


def _interleave(w: Array, c: Any) -> Array:
    kv, queries = head_groups(c)
    width = w.shape[0] // kv // (queries + 2)
    parts = np.split(w, [kv * queries * width, kv * (queries + 1) * width])
    grouped = [part.reshape(kv, -1, width, *w.shape[1:]) for part in parts]
    return np.concatenate(grouped, 1).reshape(w.shape)


ROTARY = {
    r"q_proj\.(weight|bias)$": _rotary(lambda c: c.num_attention_heads),
    r"k_proj\.(weight|bias)$": _rotary(lambda c: c.num_key_value_heads),
}


PLUS_ONE = {r"norm\.weight$": Change(lambda w, _: w + 1, lambda w, _: w - 1)}


TRANSPOSED = {r"(c_attn|c_fc|c_proj)\.weight$": Change(lambda w, _: w.T, lambda w, _: w.T)}


SPLIT = {r"query_key_value\.(weight|bias)$": Change(_split, _interleave)}


def _ternary(w: Array, _config: Any) -> Array:
    """Its mean magnitude, nothing, or the negative mean."""
    scale = max(np.abs(w).mean(), 1e-5)
    return np.clip(np.round(w / scale), -1, 1) * scale


TERNARY = {r"_proj\.weight$": Change(_ternary, lambda w, _: w)}


FLAT = {r"shared_expert_gate\.weight$": Change(lambda w, _: w[0], lambda w, _: w[None])}


SQUEEZED = {r"conv(1d)?\.weight$": Change(lambda w, _: w[:, 0], lambda w, _: w[:, None])}


DECAY = {r"A_log$": Change(lambda w, _: -np.exp(w), lambda w, _: np.log(-w))}


DECAY_COLUMN = {r"A_log$": Change(lambda w, _: -np.exp(w)[:, None], lambda w, _: np.log(-w)[:, 0])}


GROWTH_COLUMN = {r"A_log$": Change(lambda w, _: np.exp(w)[:, None], lambda w, _: np.log(w)[:, 0])}


COLUMN = {r"(mixer|mamba)\.D$": Change(lambda w, _: w[:, None], lambda w, _: w[:, 0])}


GROUPED_NORM = {
    r"(mixer|mamba)\.norm\.weight$": Change(
        lambda w, c: w.reshape(getattr(c, "mamba_n_groups", 0) or c.n_groups, -1), lambda w, _: w.reshape(-1)
    )
}
