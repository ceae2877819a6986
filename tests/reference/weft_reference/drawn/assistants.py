"""Gemma 4's assistants drawn at random."""

from __future__ import annotations

from functools import partial
from random import Random
from typing import Any

import numpy as np

from weft_reference import stores
from weft_reference.cases import Case
from weft_reference.drawn.common import ACTIVATIONS, EPSILONS
from weft_reference.models.gemma4_assistant import (
    KEYS_AS_VALUES,
    KINDS,
    MODELS,
    assistant,
    config,
    inputs,
    ordered,
)

Changes = dict[str, Any]


def random_case(model: str, rng: Random, path: str) -> Case:
    layers, kv_heads = rng.randint(1, 5), rng.choice((1, 2))
    centroids = rng.randint(1, 9)
    text: Changes = {
        "vocab_size": centroids * rng.randint(4, 12),
        "hidden_size": rng.randint(6, 30),
        "intermediate_size": rng.randint(6, 40),
        "num_hidden_layers": layers,
        "layer_types": [rng.choice(KINDS) for _ in range(layers - 1)] + ["full_attention"],
        "num_attention_heads": kv_heads * rng.choice((1, 2)),
        "num_key_value_heads": kv_heads,
        "head_dim": 2 * rng.randint(2, 6),
        "global_head_dim": 2 * rng.randint(4, 8),
        "sliding_window": rng.randint(2, 12),
        "attention_bias": rng.random() < 0.3,
        "hidden_activation": rng.choice(ACTIVATIONS),
        "rms_norm_eps": rng.choice(EPSILONS),
        "use_bidirectional_attention": rng.choice((None, "all")),
        **(KEYS_AS_VALUES if rng.random() < 0.4 else {}),
    }
    if "unified" in model:
        text["use_double_wide_mlp"] = rng.random() < 0.5
    changes: Changes = {"backbone_hidden_size": rng.randint(4, 20), "tie_word_embeddings": rng.random() < 0.6}
    is_ordered = rng.random() < 0.6
    if is_ordered:
        top = rng.randint(1, centroids)
        changes |= {"use_ordered_embeddings": True, "num_centroids": centroids, "centroid_intermediate_top_k": top}
    chosen = config(model, text, **changes)
    keys, batch = rng.randint(1, 20), rng.randint(1, 3)
    sliding = rng.randint(1, keys) if rng.random() < 0.5 else None
    made = inputs(chosen, path, rng.randint(1, 6), keys, sliding, batch)
    if rng.random() < 0.6:
        mask = np.ones((batch, keys), np.int64)
        for row in mask:
            row[: rng.randint(0, keys - 1)] = 0
        made["attention_mask"] = mask
    store = ordered(path) if is_ordered else stores.whole
    return assistant(path, chosen, made, "Drawn at random.", store)


DRAWN = {model: partial(random_case, model) for model in MODELS}
