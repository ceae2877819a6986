"""LXMERT: texts and image regions, each with layers of its own and layers of both."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import numpy as np
import transformers

from weft_reference import stores
from weft_reference.cases import Case, Store
from weft_reference.inputs import Padding, floats, text_batch

TINY: dict[str, Any] = {
    "vocab_size": 99,
    "hidden_size": 32,
    "num_attention_heads": 4,
    "num_qa_labels": 7,
    "num_object_labels": 5,
    "num_attr_labels": 3,
    "intermediate_size": 48,
    "max_position_embeddings": 40,
    "l_layers": 2,
    "x_layers": 2,
    "r_layers": 1,
    "visual_feat_dim": 20,
}
HEADS = ("Model", "ForPreTraining", "ForQuestionAnswering")


def config(**changes: Any) -> transformers.LxmertConfig:
    return transformers.LxmertConfig(**TINY | changes)


def inputs(chosen: Any, key: str, lengths: tuple[int, ...] = (9, 6), regions: int = 5, padding: Padding = "right") -> dict[str, np.ndarray]:
    """Texts with the regions of an image each, the last of the second image padding."""
    made = text_batch(chosen.vocab_size, lengths, padding, chosen.type_vocab_size, 0, key)
    seen = np.ones((len(lengths), regions), np.int64)
    if len(lengths) > 1 and regions > 1:
        seen[1, -1] = 0
    return made | {
        "visual_feats": floats(f"{key}.regions", (len(lengths), regions, chosen.visual_feat_dim), -2.0, 2.0),
        "visual_pos": floats(f"{key}.places", (len(lengths), regions, chosen.visual_pos_dim), 0.0, 1.0),
        "visual_attention_mask": seen,
    }


def case(name: str, head: str, notes: str, store: Store | None = None, given: Any = None, **changes: Any) -> Case:
    chosen = config(**changes)
    return Case(f"lxmert/{name}", f"Lxmert{head}", chosen, inputs(chosen, name) if given is None else given, notes, store)


def goldens() -> Iterator[Case]:
    yield case("base", "Model", "Two texts and two images, one of each padded.")
    bare = {name: value for name, value in inputs(config(), "bare").items() if name in ("input_ids", "visual_feats", "visual_pos", "token_type_ids")}
    yield case("no-masks", "Model", "No masks.", given=bare)
    yield case("left-padding", "Model", "The second text padded on the left.", given=inputs(config(), "left", padding="left"))
    yield case("pre-training", "ForPreTraining", "Tied decoder.")
    yield case("untied", "ForPreTraining", "A decoder of its own, no head of regions.", tie_word_embeddings=False, task_obj_predict=False, hidden_act="relu")
    yield case("question-answering", "ForQuestionAnswering", "Seven answers; places of six numbers.", visual_pos_dim=6)
    yield case("file", "ForPreTraining", "model.safetensors as save_pretrained writes it.", stores.whole)


def random_case(rng: Random, path: str) -> Case:
    heads = rng.choice((1, 2, 3))
    chosen = config(
        vocab_size=rng.randint(30, 200),
        hidden_size=heads * rng.randint(3, 12),
        num_attention_heads=heads,
        num_qa_labels=rng.randint(1, 20),
        intermediate_size=rng.randint(8, 60),
        type_vocab_size=rng.randint(1, 3),
        l_layers=rng.randint(1, 3),
        x_layers=rng.randint(1, 3),
        r_layers=rng.randint(1, 3),
        visual_feat_dim=rng.randint(1, 30),
        visual_pos_dim=rng.randint(1, 6),
        hidden_act=rng.choice(("gelu", "relu", "gelu_new")),
        tie_word_embeddings=rng.random() < 0.7,
        visual_attr_loss=rng.random() < 0.5,
    )
    lengths = tuple(sorted((rng.randint(1, 30) for _ in range(rng.randint(1, 4))), reverse=True))
    given = inputs(chosen, path, lengths, rng.randint(1, 9), rng.choice(("right", "left")))
    return Case(path, f"Lxmert{rng.choice(HEADS)}", chosen, given, "Drawn at random.", stores.whole)
