"""What every logits processor and warper makes of scores, alone and in a list."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from transformers import GenerationConfig

from weft_reference.cases import versions
from weft_reference.models.generation.record import numbers
from weft_reference.models.generation.table import table

VOCAB = 24
PROMPT = [[0, 0, 5, 6, 5], [7, 8, 9, 7, 8]]
MASK = [[0, 0, 1, 1, 1], [1, 1, 1, 1, 1]]
ENCODER = [[3, 4, 5, 6], [10, 11, 10, 0]]
# What was generated after the prompt, by length.
NEW = [[], [[6], [9]], [[6, 5, 6], [9, 7, 8]]]

PROCESSORS: list[dict[str, Any]] = [
    {"sequence_bias": [[[4], -2.5], [[5, 6], 3.0], [[7, 8, 9], -1.5]]},
    {"encoder_repetition_penalty": 1.7},
    {"repetition_penalty": 1.3},
    {"repetition_penalty": 0.6},
    {"no_repeat_ngram_size": 1},
    {"no_repeat_ngram_size": 2},
    {"no_repeat_ngram_size": 3},
    {"encoder_no_repeat_ngram_size": 2},
    {"bad_words_ids": [[3], [2], [5, 6], [9, 7, 8], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]]},
    {"min_length": 7},
    {"min_new_tokens": 3},
    {"forced_bos_token_id": 4},
    {"forced_eos_token_id": [2, 3], "max_length": 7},
    {"forced_eos_token_id": 2, "max_new_tokens": 4},
    {"exponential_decay_length_penalty": [1, 1.5]},
    {"suppress_tokens": [1, 5, 23]},
    {"begin_suppress_tokens": [1, 5]},
    {"renormalize_logits": True},
    {"repetition_penalty": 1.2, "no_repeat_ngram_size": 2, "min_new_tokens": 2, "suppress_tokens": [8]},
]

# Without the reference's own default of 50 tokens.
ALL = {"do_sample": True, "top_k": 0}
WARPERS: list[dict[str, Any]] = [
    {**ALL, "temperature": 0.7},
    {**ALL, "temperature": 1.8},
    {**ALL, "top_k": 5},
    {**ALL, "top_k": 1},
    {**ALL, "top_k": 99},
    {**ALL, "top_p": 0.9},
    {**ALL, "top_p": 0.3},
    {**ALL, "top_p": 0.0},
    {**ALL, "min_p": 0.1},
    {**ALL, "min_p": 1.0},
    {**ALL, "top_h": 0.4},
    {**ALL, "top_h": 0.9},
    {**ALL, "typical_p": 0.5},
    {**ALL, "typical_p": 0.95},
    {**ALL, "epsilon_cutoff": 0.02},
    {**ALL, "epsilon_cutoff": 0.9},
    {**ALL, "eta_cutoff": 0.05},
    {**ALL, "top_k": 3, "num_beams": 2},
    {**ALL, "top_p": 0.0, "num_beams": 2},
    {**ALL, "min_p": 1.0, "num_beams": 3},
    {**ALL, "typical_p": 0.1, "num_beams": 2},
    {**ALL, "epsilon_cutoff": 0.9, "num_beams": 2},
    {"do_sample": True, "temperature": 0.8, "top_k": 12, "top_p": 0.8, "min_p": 0.02, "repetition_penalty": 1.1},
    {**ALL, "temperature": 1.5, "typical_p": 0.8, "eta_cutoff": 0.01, "suppress_tokens": [2], "renormalize_logits": True},
]


def cases() -> Any:
    rng = np.random.default_rng(7)
    lists = [case(config, new, rng) for config in PROCESSORS for new in range(len(NEW))]
    lists += [case(config, 1, rng, width) for config in WARPERS for width in (1.0, 4.0)]
    lists += [case({"remove_invalid_values": True}, 1, rng, invalid=True)]
    lists += [one_token({"begin_suppress_tokens": [1, 5], "forced_bos_token_id": 4}, new, rng) for new in (0, 1)]
    return {"format": 1, "reference": versions(), "vocab_size": VOCAB, "cases": lists}


def case(config: dict[str, Any], new: int, rng: np.random.Generator, width: float = 3.0, invalid: bool = False) -> Any:
    ids = [row + (NEW[new][index] if NEW[new] else []) for index, row in enumerate(PROMPT)]
    return run(config, PROMPT, MASK, ENCODER, ids, rng, width, invalid)


def one_token(config: dict[str, Any], new: int, rng: np.random.Generator) -> Any:
    return run(config, [[9], [8]], [[1], [1]], ENCODER, [[9, 4][: new + 1], [8, 4][: new + 1]], rng, 3.0, False)


def run(
    config: dict[str, Any],
    prompt: list[list[int]],
    mask: list[list[int]],
    encoder: list[list[int]],
    ids: list[list[int]],
    rng: np.random.Generator,
    width: float,
    invalid: bool,
) -> Any:
    model = table()
    beams = config.get("num_beams", 1)
    settings = GenerationConfig(eos_token_id=[2, 3], pad_token_id=0)
    settings, _ = model._prepare_generation_config(settings, **config)
    model._prepare_special_tokens(settings, True, batch_size=2)
    length = len(prompt[0])
    settings = model._prepare_generated_length(
        settings, "max_length" not in config, "min_length" not in config, "input_ids", length, torch.tensor(prompt)
    )
    expand = [row for row in range(len(prompt)) for _ in range(beams)]
    processors = model._get_logits_processor(
        settings,
        input_ids_seq_length=length,
        encoder_input_ids=torch.tensor(encoder),
        device="cpu",
        model_kwargs={"attention_mask": torch.tensor(mask)[expand]},
    )
    scores = (rng.standard_normal((len(prompt) * beams, VOCAB)) * width).astype(np.float32)
    if invalid:
        scores[0, :3] = [np.nan, np.inf, -np.inf]
    want = processors(torch.tensor(ids)[expand], torch.from_numpy(scores.copy())).numpy()
    given = {"eos_token_id": [2, 3], "pad_token_id": 0, **config}
    return {
        "config": given,
        "prompt": prompt,
        "mask": mask,
        "encoder": encoder,
        "ids": ids,
        "scores": [numbers(row) for row in scores],
        "want": [numbers(row) for row in want],
    }
