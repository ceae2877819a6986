"""The encoders around BERT: model cases of all, and tasks where a tokenizer or inputs differ from BERT's."""

from __future__ import annotations

from collections.abc import Iterator

from weft_reference.cases import Case
from weft_reference.models.encoders import tasks
from weft_reference.models.encoders.table import ENCODERS
from weft_reference.tasks import TaskCase

__all__ = ["MODELS", "goldens"]

MODELS = tuple(ENCODERS)


def goldens() -> Iterator[Case | TaskCase]:
    for model, encoder in ENCODERS.items():
        yield from encoder.goldens(model)
    yield from tasks.goldens()
