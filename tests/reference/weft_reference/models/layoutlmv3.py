"""LayoutLMv3: texts with bounding boxes, with and without the image of their page."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import numpy as np
import transformers

from weft_reference import document_tasks, stores
from weft_reference.bytepair import merges, vocabulary
from weft_reference.cases import Case, Store
from weft_reference.inputs import Padding, floats, integers, text_batch
from weft_reference.tasks import TaskCase

TINY: dict[str, Any] = {
    "vocab_size": 99,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 40,
    "max_2d_position_embeddings": 1024,
    "coordinate_size": 6,
    "shape_size": 4,
    "rel_pos_bins": 8,
    "max_rel_pos": 12,
    "rel_2d_pos_bins": 12,
    "max_rel_2d_pos": 200,
    "input_size": 24,
    "patch_size": 8,
}
HEADS = ("Model", "ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering")


def config(**changes: Any) -> transformers.LayoutLMv3Config:
    return transformers.LayoutLMv3Config(**TINY | changes)


def inputs(chosen: Any, key: str, lengths: tuple[int, ...] = (9, 6), padding: Padding = "right", image: bool = True) -> dict[str, np.ndarray]:
    made = text_batch(chosen.vocab_size, lengths, padding, chosen.type_vocab_size, chosen.pad_token_id, key)
    shape = (*made["input_ids"].shape, 2)
    first = integers(f"{key}.corner", shape, 0, 800)
    # A box may be higher than it ends: heights and widths are no less than 0.
    made["bbox"] = np.concatenate([first, first + integers(f"{key}.size", shape, -3, 200)], axis=-1).clip(0)
    if image:
        size = (len(lengths), chosen.num_channels, chosen.input_size, chosen.input_size)
        made["pixel_values"] = floats(f"{key}.page", size, -2.0, 2.0)
    return made


def case(name: str, head: str, notes: str, store: Store | None = None, given: Any = None, **changes: Any) -> Case:
    chosen = config(**changes)
    return Case(f"layoutlmv3/{name}", f"LayoutLMv3{head}", chosen, inputs(chosen, name) if given is None else given, notes, store)


def goldens() -> Iterator[Case | TaskCase]:
    yield case("base", "Model", "Two texts with pages, the second text padded.")
    yield case("text-only", "Model", "No page.", given=inputs(config(), "text", padding="left", image=False))
    bare = {name: value for name, value in inputs(config(), "bare").items() if name in ("input_ids", "pixel_values")}
    yield case("bare", "Model", "Without boxes and masks.", given=bare)
    yield case("no-spatial-bias", "Model", "Distances in the text alone.", has_spatial_attention_bias=False)
    yield case("no-bias", "Model", "No relative positions; another function.", has_relative_attention_bias=False, has_spatial_attention_bias=False, hidden_act="relu")
    yield case("long", "Model", "Longer than the distances that are told apart.", given=inputs(config(), "long", (33, 30)))
    yield case("sequence-classification", "ForSequenceClassification", "Three classes.", num_labels=3)
    yield case("token-classification", "ForTokenClassification", "Three classes, one linear layer.", num_labels=3)
    yield case("many-token-classes", "ForTokenClassification", "Twelve classes, two linear layers.", num_labels=12)
    yield case("question-answering", "ForQuestionAnswering", "Start and end of an answer.", num_labels=2)
    yield case("text-only-question-answering", "ForQuestionAnswering", "No page.", given=inputs(config(), "text", image=False))
    yield case("file", "ForTokenClassification", "model.safetensors as save_pretrained writes it.", stores.whole, num_labels=3)
    words = {token: index for index, token in enumerate(vocabulary())}
    asked = config(vocab_size=len(words), max_position_embeddings=82, num_labels=2)
    made = transformers.LayoutLMv3Tokenizer(vocab=words, merges=merges(), model_max_length=80)
    yield document_tasks.questions("layoutlmv3", "LayoutLMv3ForQuestionAnswering", asked, made)


def random_case(rng: Random, path: str) -> Case:
    heads, head = rng.choice((1, 2, 3)), rng.choice(HEADS)
    coordinate, patch, pad = rng.randint(1, 6), rng.randint(2, 8), rng.choice((0, 1))
    # Four edges and two lengths: their widths make up that of the model, which the heads divide.
    shape = next(size for size in range(1, 20) if (4 * coordinate + 2 * size) % heads == 0)
    chosen = config(
        vocab_size=rng.randint(30, 200),
        hidden_size=4 * coordinate + 2 * shape,
        coordinate_size=coordinate,
        shape_size=shape,
        num_hidden_layers=rng.randint(1, 4),
        num_attention_heads=heads,
        intermediate_size=rng.randint(8, 60),
        pad_token_id=pad,
        rel_pos_bins=2 * rng.randint(2, 10),
        max_rel_pos=rng.randint(12, 30),
        rel_2d_pos_bins=2 * rng.randint(2, 10),
        max_rel_2d_pos=rng.randint(20, 300),
        has_relative_attention_bias=rng.random() < 0.8,
        has_spatial_attention_bias=rng.random() < 0.8,
        patch_size=patch,
        input_size=patch * rng.randint(1, 5) + rng.randrange(patch),
        num_labels=2 if head == "ForQuestionAnswering" else rng.randint(1, 14),
    )
    lengths = tuple(sorted((rng.randint(1, 30) for _ in range(rng.randint(1, 4))), reverse=True))
    given = inputs(chosen, path, lengths, rng.choice(("right", "left")), rng.random() < 0.7)
    return Case(path, f"LayoutLMv3{head}", chosen, given, "Drawn at random.", stores.whole)
