"""Encoders of texts and images in one sequence or side by side, drawn at random."""

from __future__ import annotations

from functools import partial

from weft_reference.models import bridgetower, dual_encoders, flava, layoutlmv3, lxmert, udop, vilt, visual_bert

DRAWN = {
    "bridgetower": bridgetower.random_case,
    "flava": flava.random_case,
    "layoutlmv3": layoutlmv3.random_case,
    "lxmert": lxmert.random_case,
    "udop": udop.random_case,
    "vilt": vilt.random_case,
    "visual_bert": visual_bert.random_case,
    **{model: partial(dual_encoders.random_case, model) for model in dual_encoders.MODELS},
}
