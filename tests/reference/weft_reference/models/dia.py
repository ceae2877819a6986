"""Dia: bytes of texts and codes of speech, with padding on either side of each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import transformers

from weft_reference import stores
from weft_reference.cases import Case, Inputs
from weft_reference.inputs import text_batch

ENCODER: dict[str, Any] = {
    "vocab_size": 40,
    "hidden_size": 16,
    "intermediate_size": 20,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "head_dim": 6,
    "max_position_embeddings": 30,
}
DECODER: dict[str, Any] = {
    "vocab_size": 20,
    "hidden_size": 24,
    "intermediate_size": 28,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 4,
    "cross_num_attention_heads": 6,
    "cross_num_key_value_heads": 3,
    "cross_head_dim": 8,
    "cross_hidden_size": 16,
    "num_channels": 3,
    "max_position_embeddings": 40,
    "pad_token_id": 17,
    "eos_token_id": 16,
    "bos_token_id": 18,
}


def codes(key: str, channels: int, padding: str = "left") -> Inputs:
    """Codes of each channel, which lie in the axis behind positions."""
    made = [text_batch(20, (6, 4), padding, key=f"{key}.{channel}") for channel in range(channels)]
    ids = np.stack([text["input_ids"] for text in made], axis=2)
    return {"decoder_input_ids": ids, "decoder_attention_mask": made[0]["attention_mask"]}


def case(
    name: str, head: str, notes: str, padding: str = "right", encoder: dict[str, Any] | None = None, **changes: Any
) -> Case:
    written = DECODER | changes
    config = transformers.DiaConfig(
        encoder_config=ENCODER | (encoder or {}),
        decoder_config=written,
        delay_pattern=list(range(written["num_channels"])),
    )
    made = text_batch(ENCODER["vocab_size"], (9, 6), padding, key=name)
    text = {key: made[key] for key in ("input_ids", "attention_mask")}
    return Case(f"dia/{name}", f"Dia{head}", config, {**text, **codes(name, written["num_channels"])}, notes)


def goldens() -> Iterator[Case]:
    speech = "ForConditionalGeneration"
    yield case("base", "Model", "Two texts and codes so far, both padded.")
    yield case("codes", speech, "Logits of each channel's codes.", "left")
    rope = {"rope_parameters": {"rope_type": "default", "rope_theta": 300.0}, "hidden_act": "gelu", "norm_eps": 0.01}
    yield case(
        "other", speech, "Another base of rotary position embeddings, activation and epsilon.", encoder=rope, **rope
    )


def random_case(rng: Random, path: str) -> Case:
    encoder = {
        "num_hidden_layers": rng.randint(1, 3),
        "head_dim": rng.choice((4, 6, 8)),
        "num_key_value_heads": rng.choice((1, 2, 4)),
    }
    kept = rng.choice((1, 2, 3))
    changes = {
        "num_hidden_layers": rng.randint(1, 3),
        "num_key_value_heads": rng.choice((1, 2, 4)),
        "cross_num_attention_heads": kept * rng.randint(1, 3),
        "cross_num_key_value_heads": kept,
        "num_channels": rng.randint(1, 5),
        "hidden_size": 8 * rng.randint(1, 4),
    }
    head = rng.choice(("Model", "ForConditionalGeneration"))
    return replace(case("random", head, "Drawn at random.", "right", encoder, **changes), path=path, store=stores.whole)


DRAWN = {"dia": random_case}
