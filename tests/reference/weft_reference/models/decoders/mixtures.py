"""Mixtures of experts in which more varies than the fields of their configuration tell."""

from __future__ import annotations

from weft_reference.models.decoders.family import BIAS, WINDOW, Decoder
from weft_reference.models.decoders.ropes import LONG, SHORT, Changes


def longrope(original: int) -> Changes:
    """Phi-3.5-MoE's, which says itself what cosines and sines are multiplied by.

    No text here is longer than the original: there the reference keeps the short factors, which nothing was trained with.
    """
    kind = {"rope_type": "longrope", "rope_theta": 10000.0, "short_factor": SHORT, "long_factor": LONG}
    return {"rope_parameters": kind | {
        "short_mscale": 1.2, "long_mscale": 1.3, "original_max_position_embeddings": original, "factor": 4.0,
    }}


DECODERS: tuple[Decoder, ...] = (
    Decoder(
        "phimoe",
        "Phimoe",
        {"num_local_experts": 5, "num_experts_per_tok": 2},
        {
            "windows": WINDOW,
            "bias": BIAS | {"lm_head_bias": True},
            "wider": {"router_jitter_noise": 0.05},
            "longrope": longrope(16),
        },
    ),
)
