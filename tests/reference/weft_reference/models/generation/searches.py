"""Whole texts: what `generate` gives over a table of scores, greedily and with beams."""

from __future__ import annotations

from typing import Any

import torch

from weft_reference.cases import versions
from weft_reference.models.generation.record import numbers
from weft_reference.models.generation.table import SCALE, VOCAB, table

PROMPTS = [[[4, 5, 6], [0, 0, 7], [0, 8, 9]], [[11, 3, 12]], [[5], [6], [7], [8]]]
MASKS = [[[1, 1, 1], [0, 0, 1], [0, 1, 1]], [[1, 1, 1]], [[1], [1], [1], [1]]]

ENDS: dict[str, Any] = {"eos_token_id": 2, "pad_token_id": 0}
SEARCHES: list[dict[str, Any]] = [
    {"max_new_tokens": 12},
    {"max_new_tokens": 12, **ENDS},
    {"max_new_tokens": 12, "eos_token_id": [2, 3, 10], "pad_token_id": 1},
    {"max_length": 9, "eos_token_id": 2},
    {**ENDS},
    {"max_new_tokens": 14, "repetition_penalty": 1.8, **ENDS},
    {"max_new_tokens": 14, "no_repeat_ngram_size": 2, **ENDS},
    {"max_new_tokens": 9, "min_new_tokens": 6, "eos_token_id": [2, 3, 10, 11], "pad_token_id": 0},
    {"max_new_tokens": 6, "forced_eos_token_id": 2, "bad_words_ids": [[5], [6, 7]], **ENDS},
    {"max_new_tokens": 8, "num_beams": 2},
    {"max_new_tokens": 10, "num_beams": 3, **ENDS},
    {"max_new_tokens": 10, "num_beams": 3, "num_return_sequences": 3, **ENDS},
    {"max_new_tokens": 10, "num_beams": 4, "num_return_sequences": 2, "eos_token_id": [2, 3, 10], "pad_token_id": 1},
    {"max_new_tokens": 10, "num_beams": 4, "length_penalty": 0.0, "num_return_sequences": 4, **ENDS},
    {"max_new_tokens": 10, "num_beams": 4, "length_penalty": 2.0, **ENDS},
    {"max_new_tokens": 10, "num_beams": 4, "length_penalty": -1.0, "num_return_sequences": 2, **ENDS},
    {"max_new_tokens": 12, "num_beams": 3, "early_stopping": True, "num_return_sequences": 3, **ENDS},
    {"max_new_tokens": 12, "num_beams": 5, "early_stopping": True, "eos_token_id": [2, 3, 10, 12], "pad_token_id": 0},
    {"max_new_tokens": 12, "num_beams": 3, "early_stopping": "never", "num_return_sequences": 2, **ENDS},
    {"max_new_tokens": 12, "num_beams": 3, "early_stopping": "never", "length_penalty": -0.5, **ENDS},
    {"max_new_tokens": 12, "num_beams": 3, "early_stopping": "never", "length_penalty": 0.0, **ENDS},
    {"max_new_tokens": 10, "num_beams": 3, "no_repeat_ngram_size": 2, "min_new_tokens": 5, **ENDS},
    {"max_new_tokens": 8, "num_beams": 3, "repetition_penalty": 1.4, "forced_eos_token_id": 2, **ENDS},
    {"max_new_tokens": 8, "num_beams": 3, "renormalize_logits": True, "suppress_tokens": [4, 9], **ENDS},
    {"max_new_tokens": 1, "num_beams": 3, "num_return_sequences": 3, **ENDS},
    {"max_new_tokens": 8, "num_beams": 8, "num_return_sequences": 8, **ENDS},
]


def cases() -> Any:
    found = [search(config, index) for config in SEARCHES for index in range(len(PROMPTS))]
    return {"format": 1, "reference": versions(), "vocab_size": VOCAB, "scale": float(SCALE), "cases": found}


def search(config: dict[str, Any], index: int) -> Any:
    ids, mask = torch.tensor(PROMPTS[index]), torch.tensor(MASKS[index])
    made = table().generate(
        ids, attention_mask=mask, use_cache=False, return_dict_in_generate=True, output_scores=True, **config
    )
    scores = getattr(made, "sequences_scores", None)
    return {
        "config": config,
        "prompt": PROMPTS[index],
        "mask": MASKS[index],
        "sequences": made.sequences.tolist(),
        "scores": None if scores is None else numbers(scores.numpy()),
    }
