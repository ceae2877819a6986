"""Decoders whose layers are stacks that run in cycles."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft_reference.gguf_converters.changes import Array
from weft_reference.gguf_converters.converter import HEAD, MLP, RMS, SIZES, Converter
from weft_reference.gguf_converters.splits import Split, same


def _pieces(names: tuple[str, ...]) -> Split:
    """Rows that are several tensors, each as many."""

    def there(w: Array, _config: Any) -> list[Array]:
        return np.split(w, len(names))

    return Split(names, there, lambda parts, _: np.concatenate(parts))


def _blocks(c: Any) -> dict[str, Split]:
    """The fast stack's layers, then those of the slow one."""
    made = {r"z_L_init$": same("hrm.z_l_init")}
    for stack, first in (("L", 0), ("H", c.num_layers_per_stack)):
        for layer in range(c.num_layers_per_stack):
            own, block = rf"{stack}_module\.layers\.{layer}\.", f"blk.{first + layer}."
            heads = tuple(f"{block}attn_{part}.weight" for part in ("gate", "q", "k", "v"))
            made[own + r"attn\.gqkv_proj"] = _pieces(heads)
            made[own + r"attn\.o_proj"] = same(f"{block}attn_output.weight")
            made[own + r"mlp\.gate_up_proj"] = _pieces((f"{block}ffn_gate.weight", f"{block}ffn_up.weight"))
            made[own + r"mlp\.down_proj"] = same(f"{block}ffn_down.weight")
    return made


CONVERTERS = {
    "hrm_text": Converter(
        "hrm_text",
        SIZES
        | MLP
        | HEAD
        | RMS
        | {
            "vocab_size": "vocab_size",
            "embedding_scale": "embedding_scale",
            "hrm.layers_per_stack": "num_layers_per_stack",
            "hrm.h_cycles": "H_cycles",
            "hrm.l_cycles": "L_cycles",
            "hrm.prefix_lm": "prefix_lm",
        },
        splits=_blocks,
        names="llama",
    ),
}
