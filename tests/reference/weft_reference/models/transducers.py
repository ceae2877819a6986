"""Parakeet with transducers: spectrograms and tokens so far."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from random import Random
from typing import Any

import transformers

from weft_reference import stores
from weft_reference.cases import Case, Inputs
from weft_reference.inputs import text_batch
from weft_reference.models.conformers import PARAKEET, spectrograms

MODELS = ("parakeet_rnnt", "parakeet_tdt")
SMALL: dict[str, Any] = {
    "vocab_size": 19,
    "decoder_hidden_size": 12,
    "num_decoder_layers": 2,
    "pad_token_id": 2,
    "blank_token_id": 18,
}


def case(
    model: str, name: str, notes: str, inputs: Inputs, encoder: dict[str, Any] | None = None, **changes: Any
) -> Case:
    kind = model.removeprefix("parakeet_").upper()
    config = getattr(transformers, f"Parakeet{kind}Config")(
        encoder_config=PARAKEET | (encoder or {}), **(SMALL | changes)
    )
    tokens = text_batch(config.vocab_size, (5, 5), "right", key=name)["input_ids"]
    return Case(f"{model}/{name}", f"ParakeetFor{kind}", config, {**inputs, "decoder_input_ids": tokens}, notes)


def goldens() -> Iterator[Case]:
    for model in MODELS:
        made = partial(case, model)
        yield made("transducer", "Two spectrograms, the second shorter, and five tokens.", spectrograms())
        other = {"num_decoder_layers": 1, "hidden_act": "tanh"} | (
            {"durations": [0, 2]} if model == "parakeet_tdt" else {}
        )
        yield made(
            "no-mask",
            "Without a mask; one layer, another activation.",
            spectrograms(lengths=(33, 33), masked=False),
            **other,
        )


def random_case(model: str, rng: Random, path: str) -> Case:
    encoder = {
        "num_hidden_layers": rng.randint(1, 3),
        "num_attention_heads": rng.choice((1, 2, 4)),
        "conv_kernel_size": rng.choice((3, 5, 7)),
    }
    changes = {"decoder_hidden_size": rng.randint(4, 20), "num_decoder_layers": rng.randint(1, 3)}
    inputs = spectrograms(12, (rng.randint(20, 50), rng.randint(8, 20)))
    return replace(case(model, "random", "Drawn at random.", inputs, encoder, **changes), path=path, store=stores.whole)


DRAWN = {model: partial(random_case, model) for model in MODELS}
