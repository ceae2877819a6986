"""ColPali: PaliGemma as a model within a model, whose tokens each have an embedding."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from random import Random

from transformers import ColPaliConfig, ColPaliProcessor, SiglipImageProcessorPil
from transformers.models.colpali import processing_colpali

from weft_reference import stores
from weft_reference.cases import Case
from weft_reference.models.vision_language.table import FAMILIES
from weft_reference.vision_tasks import VisionTaskCase
from weft_reference.vision_tasks.image_scores import retrieval, unmarked
from weft_reference.vision_tasks.vision_language import TOKEN, added

MODELS = ROOTS = ("colpali",)
PALIGEMMA = next(family for family in FAMILIES if family.model == "paligemma")


def wrapped(case: Case, store: object, path: str) -> Case:
    config = ColPaliConfig(vlm_config=case.config.to_dict(), embedding_dim=10)
    return Case(path, "ColPaliForRetrieval", config, case.inputs, case.notes, store, without=("image_hidden_states",))


def goldens() -> Iterator[Case | VisionTaskCase]:
    family = replace(PALIGEMMA, model="colpali", given=lambda _: {}, tasks=None)
    for case in family.goldens():
        name = case.path.removeprefix("colpali/")
        if name in ("next-token", "base"):
            continue
        yield wrapped(case, stores.whole if case.store else None, case.path)
    # The tokens of places and outlines, which no query has.
    processing_colpali.EXTRA_TOKENS = []
    made, text = added(TOKEN, {"image_token": TOKEN, "begin": "<bos>"})
    made.bos_token = "<bos>"
    image = SiglipImageProcessorPil(size={"height": 16, "width": 16})
    image.image_seq_length = 16
    processor = ColPaliProcessor(image_processor=image, tokenizer=unmarked(made))
    inner = PALIGEMMA.config(text=text | {"model_type": "gemma"}, image_token_index=made.convert_tokens_to_ids(TOKEN))
    yield retrieval("colpali", "ColPaliForRetrieval", ColPaliConfig(vlm_config=inner.to_dict(), embedding_dim=10), processor)


def random_case(rng: Random, path: str) -> Case:
    """One of PaliGemma's, as a model within a model."""
    return wrapped(PALIGEMMA.random_case(rng, path), stores.whole, path)


DRAWN = {"colpali": random_case}
