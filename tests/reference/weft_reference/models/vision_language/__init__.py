"""Decoders that read images: one entry of the table a model."""

from __future__ import annotations

from collections.abc import Iterator

from weft_reference.cases import Case
from weft_reference.models.vision_language.table import FAMILIES
from weft_reference.vision_tasks import VisionTaskCase

MODELS = ROOTS = tuple(family.model for family in FAMILIES)


def goldens() -> Iterator[Case | VisionTaskCase]:
    for family in FAMILIES:
        yield from family.goldens()
