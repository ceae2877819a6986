"""ShieldGemma 2: Gemma 3 with images as a model within a model, asked for yes or no."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from transformers import ShieldGemma2Config

from weft_reference import stores
from weft_reference.cases import Case, Store
from weft_reference.inputs import text_batch
from weft_reference.models.gemma3 import IMAGE, case, config

ANSWERS = {"yes_token_index": 17, "no_token_index": 5}
CLASS = "ForImageClassification"


def judged(name: str, notes: str, places: list[list[int]], store: Store | None = None, **changes: Any) -> Case:
    own = {"path": "shieldgemma2", "prefix": "ShieldGemma2", "of": ShieldGemma2Config}
    return case(name, CLASS, notes, places, store=store, **own, **ANSWERS, **changes)


def goldens() -> Iterator[Case]:
    yield judged("base", "Two texts with an image each, one of them padded on the left.", [[2], [0]])
    yield judged("two-images", "Two images in the first text, one in the second.", [[1, 8], [2]])
    alone = text_batch(IMAGE, (7, 4), "left", key="shieldgemma2")
    del alone["token_type_ids"]
    chosen = config(of=ShieldGemma2Config, **ANSWERS)
    yield Case("shieldgemma2/text-alone", f"ShieldGemma2{CLASS}", chosen, alone, "Two texts without images.")
    yield judged(
        "file",
        "model.safetensors as save_pretrained writes it.",
        [[2], [1]],
        store=stores.whole,
        text={"num_hidden_layers": 1, "layer_types": ["sliding_attention"]},
    )
