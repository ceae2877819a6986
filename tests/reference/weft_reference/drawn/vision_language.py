"""Decoders that read images drawn at random."""

from __future__ import annotations

from weft_reference.models import blip, colpali, colqwen2, fuyu, vision_encoder_decoder
from weft_reference.models.vision_language.table import FAMILIES

DRAWN = {family.model: family.random_case for family in FAMILIES}
for own in (blip, colpali, colqwen2, fuyu, vision_encoder_decoder):
    DRAWN |= own.DRAWN
