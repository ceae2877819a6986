"""Moonshine: waveforms through strided convolutions, texts with and without padding."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import transformers

from weft_reference import waves
from weft_reference.cases import Case
from weft_reference.inputs import text_batch

SMALL: dict[str, Any] = {
    "vocab_size": 40,
    "hidden_size": 24,
    "intermediate_size": 20,
    "encoder_num_hidden_layers": 2,
    "decoder_num_hidden_layers": 2,
    "encoder_num_attention_heads": 2,
    "decoder_num_attention_heads": 2,
    "max_position_embeddings": 30,
    "pad_token_id": 0,
}


def case(
    name: str, head: str, notes: str, samples: tuple[int, ...] = (3900, 2700), masked: bool = True, **changes: Any
) -> Case:
    config = transformers.MoonshineConfig(**(SMALL | changes))
    text = text_batch(config.vocab_size, (7, 5), "right", key=name)
    given = {**waves.batch(name, samples, masked), "decoder_input_ids": text["input_ids"]}
    given["decoder_attention_mask"] = text["attention_mask"]
    return Case(f"moonshine/{name}", f"Moonshine{head}", config, given, notes)


def goldens() -> Iterator[Case]:
    speech = "ForConditionalGeneration"
    yield case("base", "Model", "Two waveforms, the second shorter, and texts so far.")
    yield case("speech", speech, "Logits of tokens.")
    yield case("speech-no-mask", speech, "No mask of samples.", (3300, 3300), masked=False)
    other = {"tie_word_embeddings": False, "attention_bias": True, "pad_head_dim_to_multiple_of": 8}
    yield case("speech-untied", speech, "A table of its own for logits, biases, heads filled up.", **other)
    rope = {"rope_parameters": {"rope_type": "default", "rope_theta": 500.0, "partial_rotary_factor": 0.5}}
    acts = {"encoder_hidden_act": "relu", "decoder_hidden_act": "gelu", "encoder_num_hidden_layers": 1}
    yield case("speech-rope", speech, "Half of each head turns, by another base.", **rope, **acts)
