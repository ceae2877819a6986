"""What a decoder is described by, its sizes, and the cases that follow from it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import transformers

from weft_reference.cases import Case, Inputs
from weft_reference.inputs import text_batch
from weft_reference.models.decoders.ropes import ROPES, Changes
from weft_reference.models.decoders.steady import CHOSEN, SteadyCase

HEADS = {
    "base": "Model",
    "causal-lm": "ForCausalLM",
    "sequence-classification": "ForSequenceClassification",
    "token-classification": "ForTokenClassification",
    "question-answering": "ForQuestionAnswering",
}
CLASSIC = HEADS | {"causal-lm": "LMHeadModel"}
LABELLED = ("sequence-classification", "token-classification")

TINY: Changes = {
    "vocab_size": 61,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
PLAIN: Changes = {
    name: value for name, value in TINY.items() if name not in ("intermediate_size", "num_key_value_heads")
}
SPECIAL: Changes = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
WIDE_HEADS: Changes = {"head_dim": 12}
TIED: Changes = {"tie_word_embeddings": True}
UNTIED: Changes = {"tie_word_embeddings": False}
BIAS: Changes = {"attention_bias": True}
WINDOW: Changes = {"sliding_window": 4}
LAYERS: Changes = {"layer_types": ["sliding_attention", "full_attention"]}
# As published files have it: without `layer_types`, which `save_pretrained` writes.
PATTERN: Changes = {
    "num_hidden_layers": 4,
    "layer_types": None,
    "sliding_window_pattern": 3,
    "written": {"layer_types": None, "sliding_window_pattern": 3},
}
N_EMBD: Changes = {"vocab_size": 61, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64} | SPECIAL


class Decoder(NamedTuple):
    """`model` is the folder's name, `prefix` what classes begin with; `cases` are changes of the language model;
    outputs that begin with one of `without` are not compared; with `states` those of the cache are."""

    model: str
    prefix: str
    changes: Changes
    cases: dict[str, Changes] = {}
    heads: dict[str, str] = HEADS
    config: str = ""
    base: Changes = TINY
    without: tuple[str, ...] = ()
    states: bool = False


def batch(padding: str, key: str = "text", lengths: tuple[int, ...] = (11, 7)) -> Inputs:
    """Two texts, one of them padded."""
    made = text_batch(61, lengths, padding, key=key)  # type: ignore[arg-type]
    return {name: made[name] for name in ("input_ids", "attention_mask")}


def cases(decoder: Decoder) -> Iterator[Case]:
    config_class = getattr(transformers, f"{decoder.config or decoder.prefix}Config")

    right, left = batch("right"), batch("left")

    def case(name: str, model_class: str, notes: str, inputs: Inputs, **changes: Any) -> Case:
        written = changes.pop("written", {})
        config = config_class(**(decoder.base | decoder.changes | changes))
        # With biases of distance, Falcon's plain attention adds them twice.
        attention = "sdpa" if getattr(config, "alibi", False) is True else "eager"
        path = f"{decoder.model}/{name}"
        # Over texts longer than a chunk, where there is such a case.
        states = decoder.states and name == ("long" if "long" in decoder.cases else "causal-lm")
        if any(field in decoder.changes for field in CHOSEN):
            padding = "left" if inputs is left or name == "long" else "right"
            return SteadyCase(
                path, model_class, config, inputs, notes, attention=attention, padding=padding, written=written, states=states
            )
        return Case(
            path, model_class, config, inputs, notes, attention=attention, written=written, without=decoder.without, states=states
        )

    language = decoder.prefix + decoder.heads["causal-lm"]
    for name, suffix in decoder.heads.items():
        model_class = decoder.prefix + suffix
        if hasattr(transformers, model_class):
            changes = {"num_labels": 3} if name in LABELLED else {}
            yield case(name, model_class, "Two sequences, the second padded on the right.", right, **changes)
    if decoder.model == "openai_gpt":
        return  # Its padding on the left sees what comes after it.
    yield case("left-padding", language, "The second sequence is padded on the left.", left)
    if hasattr(transformers, f"{decoder.prefix}ForSequenceClassification"):
        pooled = decoder.prefix + decoder.heads["sequence-classification"]
        yield case(
            "left-padding-classification", pooled, "The last token of text padded on the left.", left, num_labels=3
        )
    if decoder.model == "llama":
        ids = {"input_ids": batch("none")["input_ids"]}
        yield case("ids-only", language, "No attention_mask: all ones.", ids)
        positions = np.stack([np.arange(11), np.arange(3, 14)]).astype(np.int64)
        yield case("position-ids", language, "Positions given.", right | {"position_ids": positions})
        yield case("single-token", language, "One sequence of one token.", batch("none", "single", (1,)))
        long = batch("right", "long", (21, 17))
        for rope_type in ("dynamic", "longrope"):
            name = f"rope-{rope_type}"
            # Not the language model: with frequencies of the text's length, steps from a cache give other scores.
            yield case(f"{name}-long", "LlamaModel", "More positions than were trained.", long, **ROPES[name])
    for name, changes in decoder.cases.items():
        notes = ", ".join(f"{key} {value}" for key, value in changes.items())
        # Steps from a cache do not see what comes later: a case of the base model alone.
        model_class = decoder.prefix + decoder.heads["base"] if "bidirectional" in name else language
        given = left if "window" in name or "left" in name else right
        if name == "long":
            given = batch("left", "long", (70, 61))
            notes = "Longer than the chunks that states are computed in, the second padded on the left"
        yield case(name, model_class, f"{notes}.", given, **changes)
