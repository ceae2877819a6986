"""Decision Transformer: episodes of two lengths, padding before the shorter, another activation, actions without bounds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import transformers

from weft_reference import stores
from weft_reference.cases import Case, Inputs
from weft_reference.inputs import floats, integers

TINY: dict[str, Any] = {
    "state_dim": 5,
    "act_dim": 3,
    "hidden_size": 24,
    "max_ep_len": 30,
    "n_positions": 40,
    "n_layer": 2,
    "n_head": 3,
}


def episodes(batch: int = 2, steps: int = 7, states: int = 5, actions: int = 3, key: str = "episode") -> dict[str, np.ndarray]:
    return {
        "states": floats(f"{key}.states", (batch, steps, states), -2.0, 2.0),
        "actions": floats(f"{key}.actions", (batch, steps, actions)),
        "returns_to_go": floats(f"{key}.returns", (batch, steps, 1), 0.0, 9.0),
        "timesteps": integers(f"{key}.times", (batch, 1), 0, 20) + np.arange(steps, dtype=np.int64)[None],
    }


def goldens() -> Iterator[Case]:
    def case(name: str, notes: str, inputs: Inputs, **changes: Any) -> Case:
        config = transformers.DecisionTransformerConfig(**(TINY | changes))
        return Case(f"decision_transformer/{name}", "DecisionTransformerModel", config, inputs, notes)

    mask = np.ones((2, 7), np.int64)
    mask[1, :3] = 0
    yield case("base", "Episodes of two lengths, padding before the shorter.", episodes() | {"attention_mask": mask})
    other = {"activation_function": "gelu", "action_tanh": False, "n_inner": 20, "scale_attn_by_inverse_layer_idx": True}
    yield case("unbounded", "Actions without bounds; attention scaled by layer.", episodes(), **other)
    yield case("unscaled", "Attention that is not scaled; one step.", episodes(steps=1), scale_attn_weights=False)
    stored = case("file", "model.safetensors as written.", episodes())
    yield Case(**{**stored.__dict__, "store": stores.whole})
