"""VisualBERT: texts with the features of image regions."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import numpy as np
import transformers

from weft_reference import stores
from weft_reference.cases import Case, Store
from weft_reference.inputs import Padding, floats, integers, text_batch

TINY: dict[str, Any] = {
    "vocab_size": 99,
    "hidden_size": 32,
    "visual_embedding_dim": 20,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 40,
    "type_vocab_size": 3,
}
LABELLED = ("ForQuestionAnswering", "ForVisualReasoning")
HEADS = ("Model", "ForPreTraining", "ForMultipleChoice", *LABELLED, "ForRegionToPhraseAlignment")


def config(**changes: Any) -> transformers.VisualBertConfig:
    return transformers.VisualBertConfig(**TINY | changes)


def inputs(chosen: Any, key: str, lengths: tuple[int, ...] = (9, 6), regions: int = 5, padding: Padding = "right") -> dict[str, np.ndarray]:
    """Texts with the regions of an image each, the last of the second image padding."""
    made = text_batch(chosen.vocab_size, lengths, padding, min(2, chosen.type_vocab_size), chosen.pad_token_id, key)
    seen = np.ones((len(lengths), regions), np.int64)
    if len(lengths) > 1 and regions > 1:
        seen[1, -1] = 0
    return made | {
        "visual_embeds": floats(f"{key}.regions", (len(lengths), regions, chosen.visual_embedding_dim), -2.0, 2.0),
        "visual_attention_mask": seen,
        "visual_token_type_ids": integers(f"{key}.types", (len(lengths), regions), 0, chosen.type_vocab_size),
    }


def case(name: str, head: str, notes: str, store: Store | None = None, given: Any = None, **changes: Any) -> Case:
    chosen = config(**changes)
    made = inputs(chosen, name) if given is None else given
    if head == "ForMultipleChoice":
        both = [inputs(chosen, f"{name}.{choice}") for choice in range(3)]
        made = {name: np.stack([one[name] for one in both], axis=1) for name in both[0]}
    if head == "ForRegionToPhraseAlignment":
        made["region_to_phrase_position"] = np.array([[3, 1, 5], [2, -1, 4]], np.int64)
    return Case(f"visual_bert/{name}", f"VisualBert{head}", chosen, made, notes, store)


def goldens() -> Iterator[Case]:
    yield case("base", "Model", "Two texts and two images, one of each padded.")
    bare = inputs(config(), "bare")
    bare = {name: bare[name] for name in ("input_ids", "visual_embeds")}
    yield case("no-masks", "Model", "No masks and no token types.", given=bare)
    yield case("left-padding", "Model", "The second text padded on the left.", given=inputs(config(), "left", padding="left"))
    yield case("pre-training", "ForPreTraining", "Tied decoder.")
    yield case("untied", "ForPreTraining", "A decoder of its own.", tie_word_embeddings=False, hidden_act="relu")
    yield case("multiple-choice", "ForMultipleChoice", "Three choices with an image each.")
    yield case("question-answering", "ForQuestionAnswering", "Answers by the last token but one.", num_labels=7)
    yield case("visual-reasoning", "ForVisualReasoning", "Two classes.", layer_norm_eps=0.01)
    yield case("region-alignment", "ForRegionToPhraseAlignment", "Three phrases, one of the second text none.")
    yield case("file", "ForPreTraining", "model.safetensors as save_pretrained writes it.", stores.whole)


def random_case(rng: Random, path: str) -> Case:
    heads = rng.choice((1, 2, 3))
    head = rng.choice(HEADS)
    chosen = config(
        vocab_size=rng.randint(30, 200),
        hidden_size=heads * rng.randint(3, 12),
        visual_embedding_dim=rng.randint(1, 30),
        num_hidden_layers=rng.randint(1, 4),
        num_attention_heads=heads,
        intermediate_size=rng.randint(8, 60),
        type_vocab_size=rng.randint(2, 4),
        hidden_act=rng.choice(("gelu", "relu", "gelu_new")),
        tie_word_embeddings=rng.random() < 0.7,
        **({"num_labels": rng.randint(1, 6)} if head in LABELLED else {}),
    )
    lengths = tuple(sorted((rng.randint(3, 30) for _ in range(rng.randint(1, 4))), reverse=True))
    given = inputs(chosen, path, lengths, rng.randint(1, 9), rng.choice(("right", "left")))
    if head == "ForMultipleChoice":
        given = {name: np.stack([value, value[::-1]], axis=1) for name, value in given.items()}
    if head == "ForRegionToPhraseAlignment":
        given["region_to_phrase_position"] = integers(f"{path}.phrases", (len(lengths), 4), -1, 3)
    return Case(path, f"VisualBert{head}", chosen, given, "Drawn at random.", stores.whole)
