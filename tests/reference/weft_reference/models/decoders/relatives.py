"""Decoders that no table describes: what varies in one follows from the fields of its configuration."""

from __future__ import annotations

from dataclasses import MISSING, fields

import transformers
from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

from weft_reference import specs
from weft_reference.models.decoders.family import LAYERS, WIDE_HEADS, WINDOW, Decoder
from weft_reference.models.decoders.ropes import Changes

LANGUAGE = "ForCausalLM"


def relatives(known: set[str]) -> tuple[Decoder, ...]:
    """The models with a spec that extends one of the known and that the reference has under the same name."""
    found = specs.relatives(known, specs.parents())
    return tuple(relative(model) for model in found if model in CONFIG_MAPPING_NAMES)


def relative(model: str) -> Decoder:
    """A window where there is one, and a case for each field that turns something on or off."""
    language = MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.get(model, "")
    if not language.endswith(LANGUAGE):
        raise ValueError(f"the reference's {model} has no class that ends in {LANGUAGE}: describe it in a table")
    config_class = getattr(transformers, CONFIG_MAPPING_NAMES[model])
    defaults = {field.name: field.default for field in fields(config_class) if field.default is not MISSING}
    cases: dict[str, Changes] = {}
    if "sliding_window" in defaults:
        cases["full"] = {"sliding_window": None}
    if "layer_types" in defaults:
        cases["layer-types"] = LAYERS
    if "head_dim" in defaults:
        cases["wide-heads"] = WIDE_HEADS
    tied = bool(defaults.get("tie_word_embeddings"))
    cases["untied" if tied else "tied"] = {"tie_word_embeddings": not tied}
    biases = {name: not value for name, value in defaults.items() if name.endswith("_bias") and isinstance(value, bool)}
    if biases:
        cases["biases"] = biases
    return Decoder(
        model,
        language.removesuffix(LANGUAGE),
        WINDOW if "sliding_window" in defaults else {},
        cases,
        config=config_class.__name__.removesuffix("Config"),
    )
