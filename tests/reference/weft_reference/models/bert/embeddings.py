"""Sentence embeddings on tiny BERT checkpoints: every pooling, with and without normalization."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from weft_reference.models.bert.tasks import LONG, POSITIONS, config
from weft_reference.sentences import SentenceCase
from weft_reference.tasks import Call
from weft_reference.wordpiece import bert_tokenizer

TEXTS = ["The cat sleeps on the warm roof.", "Café 東京 😀😎", LONG]


def case(name: str, notes: str, *more: Call, calls: tuple[Call, ...] = (), **options: Any) -> SentenceCase:
    shared = {"hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 24}
    given = calls or (Call(TEXTS[0]), Call(TEXTS), *more)
    return SentenceCase(
        f"bert/tasks/sentence-embedding-{name}",
        "BertModel",
        config(**shared),
        bert_tokenizer(POSITIONS),
        given,
        notes=notes,
        **options,
    )


def goldens() -> Iterator[SentenceCase]:
    yield case(
        "mean",
        "Mean pooling, normalized; batches smaller than the list, empty texts.",
        Call(TEXTS, {"batch_size": 1}),
        Call([""]),
        Call([]),
        max_seq_length=32,
    )
    yield case(
        "mean-plain",
        "Mean pooling, not normalized unless the call asks.",
        Call(TEXTS, {"normalize_embeddings": True}),
        normalize=False,
        max_seq_length=12,
    )
    yield case("cls", "The first token.", pooling=("cls",), max_seq_length=32)
    yield case("max", "The largest value of every dimension.", pooling=("max",), normalize=False, max_seq_length=32)
    yield case(
        "several",
        "Poolings side by side, in the library's order.",
        pooling=("cls", "max", "mean", "mean_sqrt_len_tokens"),
        max_seq_length=32,
    )
    yield case("weighted-mean", "Later tokens weigh more.", pooling=("weightedmean",), max_seq_length=32)
    yield case("last-token", "The last token that is not padding.", pooling=("lasttoken",), max_seq_length=32)
    yield case("no-limit", "No max_seq_length: the tokenizer's limit holds.", max_seq_length=None)
    yield case("current-layout", "Files as sentence-transformers 6 saves them.", layout="current", max_seq_length=20)
    prompts = {"query": "the question: ", "document": ""}
    yield case(
        "prompts",
        "Prompts by name and by text, left out of the mean.",
        prompts=prompts,
        include_prompt=False,
        layout="current",
        max_seq_length=32,
        calls=(Call(TEXTS[0]), Call(TEXTS, {"prompt_name": "query"}), Call(TEXTS[0], {"prompt": "bread and "})),
    )
