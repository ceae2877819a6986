"""X-CLIP's text model: the token with the largest id ends a text, whatever the configuration says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from transformers import XCLIPTextConfig

from weft_reference import stores
from weft_reference.cases import Case
from weft_reference.models.clip_text import END, texts
from weft_reference.models.xclip import text_sizes


def case(name: str, notes: str, inputs: Any = None, store: Any = None, **changes: Any) -> Case:
    config = XCLIPTextConfig(**text_sizes(**changes))
    return Case(f"xclip-text/{name}", "XCLIPTextModel", config, inputs or texts(), notes, store)


def goldens() -> Iterator[Case]:
    yield case("base", "Two texts, the second padded on the right.")
    yield case("end-is-padding", "Padding is the end token too: the first one counts.", {"input_ids": texts(pad=END)["input_ids"]})
    yield case("left-padding", "The second text is padded on the left.", texts(padding="left"), hidden_act="gelu")
    yield case("file", "model.safetensors as save_pretrained writes it.", store=stores.whole, num_hidden_layers=1)
