"""How the cases of GGUF files are made: a tiny configuration, and of which type each tensor is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import transformers

from weft_reference.gguf_files import GgufCase
from weft_reference.inputs import text_batch

TINY: dict[str, Any] = {
    "vocab_size": 61,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}


def batch() -> dict[str, Any]:
    made = text_batch(61, (11, 7), "right")
    return {name: made[name] for name in ("input_ids", "attention_mask")}


def every(kind: str) -> Callable[[str, tuple[int, ...]], str]:
    """All matrices in one type but those whose rows are no whole blocks, as `llama-quantize --pure`."""

    def of(_name: str, shape: tuple[int, ...]) -> str:
        return kind if shape[-1] % 32 == 0 else "F16"

    return of


def but(kinds: dict[str, str], rest: str) -> Callable[[str, tuple[int, ...]], str]:
    """Tensors of some names in a type of their own."""
    return lambda name, shape: every(next((kind for part, kind in kinds.items() if part in name), rest))(name, shape)


def in_turn(kinds: tuple[str, ...]) -> Callable[[str, tuple[int, ...]], str]:
    """The matrices of the layers in these types, one after the other."""
    given: dict[str, str] = {}

    def of(name: str, shape: tuple[int, ...]) -> str:
        if not name.startswith("blk.") or shape[-1] % 256 != 0:
            return "Q8_0"
        return given.setdefault(name, kinds[len(given) % len(kinds)])

    return of


def case(model: str, name: str, prefix: str, kind: Any, base: dict[str, Any] = TINY, **changes: Any) -> GgufCase:
    config_class = changes.pop("config_class", f"{prefix}Config")
    head = changes.pop("head", "ForCausalLM")
    dropped = changes.pop("without", ())
    inputs = changes.pop("inputs", None) or batch()
    added, metadata = changes.pop("added", {}), changes.pop("metadata", {})
    fields = {field: value for field, value in (base | changes).items() if field not in dropped}
    config = getattr(transformers, config_class)(**fields)
    return GgufCase(f"gguf/{model}/{name}", f"{prefix}{head}", config, inputs, kind, metadata=metadata, added=added)
