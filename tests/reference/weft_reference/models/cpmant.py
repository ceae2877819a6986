"""CPM-Ant: padding on the left, none, and in the middle; distances beyond the last bucket; prompts of several lengths."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import transformers

from weft_reference import stores
from weft_reference.cases import Case
from weft_reference.inputs import text_batch

TINY: dict[str, Any] = {
    "vocab_size": 40,
    "hidden_size": 20,
    "num_attention_heads": 3,
    "dim_head": 6,
    "dim_ff": 28,
    "num_hidden_layers": 2,
    "position_bias_num_buckets": 12,
    "position_bias_max_distance": 16,
    "prompt_types": 4,
    "prompt_length": 3,
    "segment_types": 5,
}


def text(lengths: tuple[int, ...], padding: str = "left") -> dict[str, np.ndarray]:
    return {"input_ids": text_batch(40, lengths, padding)["input_ids"]}  # type: ignore[arg-type]


def case(name: str, head: str, notes: str, inputs: dict[str, np.ndarray], **changes: Any) -> Case:
    config = transformers.CpmAntConfig(**(TINY | changes))
    return Case(f"cpmant/{name}", f"CpmAnt{head}", config, inputs, notes)


def goldens() -> Iterator[Case]:
    model, causal = "Model", "ForCausalLM"
    yield case("base", model, "Two texts, the second padded on the left.", text((9, 5)))
    yield case("causal-lm", causal, "Two texts, the second padded on the left.", text((9, 5)))
    far = text((33, 20, 1))
    yield case("far", causal, "Distances beyond the last bucket; a text of one token.", far, position_bias_num_buckets=8)
    notes = "Padding on the right, and an id of 0 within: as many positions at the end as there are others."
    right = text((9, 6), "right")
    right["input_ids"][0, 4] = 0
    yield case("right-padding", causal, notes, right)
    wide = {"prompt_types": 3, "prompt_length": 7, "segment_types": 3, "dim_head": 9, "eps": 1e-3}
    yield case("long-prompt", causal, "A prompt longer than the text; heads wider than the hidden states.", text((4, 4)), **wide)
    near = {"position_bias_num_buckets": 64, "position_bias_max_distance": 10}
    yield case("exact-beyond-longest", causal, "More buckets for single distances than the longest.", text((18, 11)), **near)
    stored = case("file", causal, "model.safetensors as written.", text((9, 5)))
    yield Case(**{**stored.__dict__, "store": stores.whole})
