"""ColQwen2: Qwen2-VL as a model within a model, whose tokens each have an embedding; each image is padded to as many patches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from random import Random

import numpy as np
from transformers import ColQwen2Config, ColQwen2Processor, Qwen2VLImageProcessorPil

from weft_reference import stores
from weft_reference.cases import Case, Inputs
from weft_reference.models.vision_language.packed import PACKED
from weft_reference.vision_tasks import VisionTaskCase
from weft_reference.vision_tasks.image_scores import retrieval, unmarked
from weft_reference.vision_tasks.vision_language import TOKEN, VISION, added

QWEN2_VL = next(family for family in PACKED if family.model == "qwen2_vl")


def padded(inputs: Inputs) -> Inputs:
    """Each image with as many patches as the largest has."""
    if "pixel_values" not in inputs:
        return inputs
    counts = np.asarray(inputs["image_grid_thw"]).prod(axis=1)
    images = np.split(np.asarray(inputs["pixel_values"]), np.cumsum(counts)[:-1])
    pixels = np.stack([np.pad(image, ((0, counts.max() - len(image)), (0, 0))) for image in images])
    return {**inputs, "pixel_values": pixels}


def wrapped(case: Case, store: object, path: str) -> Case:
    config = ColQwen2Config(vlm_config=case.config.to_dict(), embedding_dim=10)
    return Case(path, "ColQwen2ForRetrieval", config, padded(case.inputs), case.notes, store)


def goldens() -> Iterator[Case | VisionTaskCase]:
    family = replace(QWEN2_VL, model="colqwen2", told=lambda _: {}, tasks=None, flat=False, extras={})
    for case in family.goldens():
        if case.path.removeprefix("colqwen2/") in ("next-token", "base"):
            continue
        yield wrapped(case, stores.whole if case.store else None, case.path)
    made, text = added(TOKEN, {"image_token": TOKEN, "video_token": "<video>"} | VISION)
    image = Qwen2VLImageProcessorPil(patch_size=4, size={"shortest_edge": 500, "longest_edge": 1500})
    prompt = f"user : <|vision_start|>{TOKEN}<|vision_end|> What is it?"
    processor = ColQwen2Processor(image_processor=image, tokenizer=unmarked(made), visual_prompt_prefix=prompt)
    tokens = {"image_token_id": TOKEN, "video_token_id": "<video>"}
    inner = QWEN2_VL.config(text=text, **{name: made.convert_tokens_to_ids(token) for name, token in tokens.items()})
    yield retrieval("colqwen2", "ColQwen2ForRetrieval", ColQwen2Config(vlm_config=inner.to_dict(), embedding_dim=10), processor)


def random_case(rng: Random, path: str) -> Case:
    """One of Qwen2-VL's, as a model within a model."""
    return wrapped(QWEN2_VL.random_case(rng, path), stores.whole, path)


DRAWN = {"colqwen2": random_case}
