"""Muse Glimmer Assistant: windows shorter than the context and longer, contexts of several lengths, padding, positions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
import transformers
from transformers.cache_utils import DFlashCache

from weft_reference import stores
from weft_reference.cases import Case
from weft_reference.inputs import floats, integers

TINY: dict[str, Any] = {
    "hidden_size": 16,
    "intermediate_size": 20,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 6,
    "sliding_window": 5,
    "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
    "max_position_embeddings": 64,
    "target_layer_ids": [1, 3],
    "block_size": 4,
}


@contextmanager
def told() -> Iterator[None]:
    """Runs the model as a search does: with a cache that is told how many hidden states of the larger model there are."""
    model = transformers.MuseGlimmerAssistantModel
    plain = model.forward

    def forward(self: Any, *, context_hidden_states: torch.Tensor, **given: Any) -> Any:
        cache = DFlashCache(config=self.config)
        cache.set_previous_accepted_tokens(context_hidden_states.shape[1])
        return plain(self, context_hidden_states=context_hidden_states, past_key_values=cache, **given)

    model.forward = forward
    try:
        yield
    finally:
        model.forward = plain


def inputs(context: int = 9, block: int = 4, hidden_size: int = 16, layers: int = 2) -> dict[str, np.ndarray]:
    return {
        "noise_embeds": floats("noise", (2, block, hidden_size), -2.0, 2.0),
        "context_hidden_states": floats("context", (2, context, layers * hidden_size), -2.0, 2.0),
    }


def case(name: str, notes: str, given: dict[str, np.ndarray], **changes: Any) -> Case:
    config = transformers.MuseGlimmerAssistantConfig(**(TINY | changes))
    path = f"muse_glimmer_assistant/{name}"
    return Case(path, "MuseGlimmerAssistantModel", config, given, notes, within=told)


def goldens() -> Iterator[Case]:
    yield case("base", "A window shorter than the context, in two of three layers.", inputs())
    mask = np.ones((2, 13), np.int64)
    mask[1, :3] = 0
    yield case("padded", "The second context is padded on the left.", inputs() | {"attention_mask": mask})
    far = {"position_ids": integers("positions", (2, 13), 0, 60)}
    yield case("positions", "Positions as given.", inputs() | far)
    wide = {"layer_types": None, "sliding_window": 30, "num_key_value_heads": 4, "hidden_act": "gelu"}
    yield case("wide-window", "All layers have a window longer than the context.", inputs(5, 7), **wide)
    three = {"target_layer_ids": [0, 1, 2], "rope_parameters": {"rope_type": "default", "rope_theta": 100.0}}
    yield case("three-layers", "Hidden states of three layers; a block of one token.", inputs(12, 1, layers=3), **three)
    stored = case("file", "model.safetensors as written.", inputs())
    yield Case(**{**stored.__dict__, "store": stores.whole})
