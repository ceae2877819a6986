"""What all models are drawn with."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

import numpy as np

from weft_reference import stores
from weft_reference.cases import Store
from weft_reference.inputs import text_batch

Changes = dict[str, Any]

ACTIVATIONS = ("gelu", "gelu_new", "gelu_pytorch_tanh", "relu", "silu", "tanh")
EPSILONS = (1e-12, 1e-6, 1e-5, 1e-3)
EPSILON_NAMES = ("layer_norm_eps", "rms_norm_eps", "layer_norm_epsilon", "norm_eps", "norm_epsilon")
ACTIVATION_NAMES = ("hidden_act", "activation_function", "activation")


def lengths(rng: Random, longest: int) -> tuple[int, ...]:
    """Of one to five texts, the first of which is the longest."""
    first = rng.randint(1, longest)
    return (first, *(rng.randint(1, first) for _ in range(rng.randint(0, 4))))


def texts(rng: Random, key: str, vocab_size: int, longest: int, padding: str, pad: int = 0, types: int = 0) -> Changes:
    """A batch of texts; an attention_mask in most, token_type_ids where the model has `types` of them."""
    made = text_batch(vocab_size, lengths(rng, longest), padding, types or 1, pad, f"{key}.{rng.random()}")  # type: ignore[arg-type]
    if not types or rng.random() < 0.2:
        del made["token_type_ids"]
    return made


def without_mask(rng: Random, inputs: Changes) -> Changes:
    """One batch in five says nothing of padding."""
    if rng.random() < 0.2:
        inputs.pop("attention_mask", None)
    return inputs


def store(rng: Random) -> Store:
    return stores.sharded("40KB") if rng.random() < 0.3 else stores.whole


def functions(rng: Random, known: Mapping[str, Any]) -> Changes:
    """An activation and an epsilon, under the names that the configuration knows."""
    drawn: Changes = {}
    for name in EPSILON_NAMES:
        if isinstance(known.get(name), float):
            drawn[name] = rng.choice(EPSILONS)
    for name in ACTIVATION_NAMES:
        if isinstance(known.get(name), str) and rng.random() < 0.5:
            drawn[name] = rng.choice(ACTIVATIONS)
    return drawn


def grid(rng: Random, shape: tuple[int, ...], below: int) -> np.ndarray:
    """int64 numbers below `below`."""
    count = int(np.prod(shape))
    return np.array([rng.randrange(below) for _ in range(count)], np.int64).reshape(shape)
