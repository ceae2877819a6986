"""Decoders that read recordings, and their encoders alone: one entry of a table a model."""

from __future__ import annotations

from collections.abc import Iterator

from weft_reference.cases import Case
from weft_reference.models.audio_language.encoders import ENCODERS
from weft_reference.models.audio_language.table import FAMILIES

MODELS = ROOTS = tuple(family.model for family in (*FAMILIES, *ENCODERS))
DRAWN = {family.model: family.random_case for family in (*FAMILIES, *ENCODERS)}


def goldens() -> Iterator[Case]:
    for family in (*FAMILIES, *ENCODERS):
        yield from family.goldens()
