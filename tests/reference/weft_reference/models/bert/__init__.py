"""BERT's goldens: model cases, and tasks on tiny checkpoints with a real tokenizer."""

from __future__ import annotations

from collections.abc import Iterator

from weft_reference.cases import Case
from weft_reference.models.bert import cases, embeddings, tasks
from weft_reference.models.bert.draw import random_case
from weft_reference.sentences import SentenceCase
from weft_reference.tasks import TaskCase

__all__ = ["goldens", "random_case"]


def goldens() -> Iterator[Case | TaskCase | SentenceCase]:
    yield from cases.goldens()
    yield from tasks.goldens()
    yield from embeddings.goldens()
