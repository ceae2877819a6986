"""CLAP's text model: two texts, with and without the projection."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from transformers import ClapTextConfig

from weft_reference import stores
from weft_reference.cases import Case
from weft_reference.inputs import text_batch
from weft_reference.models.clap import TEXT, whole


def case(name: str, head: str, notes: str, padding: Any = "right", store: Any = None, **changes: Any) -> Case:
    config = ClapTextConfig(**(TEXT | {"projection_dim": 12} | changes))
    given = text_batch(TEXT["vocab_size"], (9, 5), padding, pad=1, key="clap-text")
    del given["token_type_ids"]
    return Case(f"clap-text/{name}", f"ClapTextModel{head}", config, given, notes, store)


def goldens() -> Iterator[Case]:
    yield case("base", "", "Two texts, the second padded on the right.")
    yield case("left-padding", "", "The second text is padded on the left.", "left")
    other = {"hidden_act": "relu", "projection_hidden_act": "gelu", "layer_norm_eps": 0.1, "projection_dim": 7}
    yield case("projection", "WithProjection", "The vector in the shared space.")
    both = stores.from_whole("ClapModel", whole())
    yield case("file-of-both", "WithProjection", "The text model in a checkpoint of both.", store=both)
    yield case("other-sizes", "WithProjection", "Other activations, epsilon and width.", **other)
    yield case("file", "WithProjection", "model.safetensors as save_pretrained writes it.", store=stores.whole)
