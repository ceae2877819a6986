"""Decoders that read images drawn at random."""

from __future__ import annotations

from weft_reference.models.vision_language.table import FAMILIES

DRAWN = {family.model: family.random_case for family in FAMILIES}
