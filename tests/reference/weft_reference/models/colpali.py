"""ColPali: PaliGemma as a model within a model, whose tokens each have an embedding."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from transformers import ColPaliConfig

from weft_reference import stores
from weft_reference.cases import Case
from weft_reference.models.vision_language.table import FAMILIES

MODELS = ROOTS = ("colpali",)
PALIGEMMA = next(family for family in FAMILIES if family.model == "paligemma")


def goldens() -> Iterator[Case]:
    family = replace(PALIGEMMA, model="colpali", given=lambda _: {}, tasks=None)
    for case in family.goldens():
        name = case.path.removeprefix("colpali/")
        if name in ("next-token", "base"):
            continue
        config = ColPaliConfig(vlm_config=case.config.to_dict(), embedding_dim=10)
        store = stores.whole if case.store else None
        yield Case(
            case.path, "ColPaliForRetrieval", config, case.inputs, case.notes, store, without=("image_hidden_states",)
        )
