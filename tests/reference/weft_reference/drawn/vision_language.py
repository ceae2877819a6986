"""Decoders that read images drawn at random."""

from __future__ import annotations

from weft_reference.models import (
    blip,
    chameleon,
    colpali,
    colqwen2,
    embedding_gemma2,
    emu3,
    florence2,
    fuyu,
    gemma4,
    git,
    image_states,
    kosmos2_5,
    kosmos_2,
    modernvbert,
    omni,
    perceiver,
    pi0,
    pix2struct,
    pp_formulanet,
    talkers,
    vision_encoder_decoder,
)
from weft_reference.models.vision_language.table import FAMILIES

OWN = (
    blip,
    chameleon,
    colpali,
    colqwen2,
    embedding_gemma2,
    emu3,
    florence2,
    fuyu,
    gemma4,
    git,
    image_states,
    kosmos2_5,
    kosmos_2,
    modernvbert,
    omni,
    perceiver,
    pi0,
    pix2struct,
    pp_formulanet,
    talkers,
    vision_encoder_decoder,
)
DRAWN = {family.model: family.random_case for family in FAMILIES}
for own in OWN:
    DRAWN |= own.DRAWN
