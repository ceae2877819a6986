"""Every kind of rotary positions."""

from __future__ import annotations

from typing import Any

Changes = dict[str, Any]


def rope(rope_type: str, **changes: Any) -> Changes:
    """Rotary positions of a kind, for 16 positions stretched to 64 where the kind stretches."""
    return {"rope_parameters": {"rope_type": rope_type, "rope_theta": 10000.0} | changes}


LONG = [1.0 + 0.5 * step for step in range(4)]
SHORT = [1.0, 1.0, 1.25, 1.5]
ROPES: dict[str, Changes] = {
    "rope-theta": rope("default", rope_theta=500.0),
    "rope-linear": rope("linear", factor=4.0),
    "rope-dynamic": rope("dynamic", factor=2.0) | {"max_position_embeddings": 16},
    "rope-yarn": rope("yarn", factor=4.0, original_max_position_embeddings=16, beta_fast=8.0, beta_slow=1.0),
    "rope-yarn-factor": rope("yarn", factor=4.0, original_max_position_embeddings=16, attention_factor=0.8),
    "rope-yarn-mscale": rope("yarn", factor=4.0, original_max_position_embeddings=16, mscale=0.7, mscale_all_dim=1.0),
    "rope-yarn-whole": rope("yarn", factor=4.0, original_max_position_embeddings=16, truncate=False),
    "rope-llama3": rope(
        "llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=16
    ),
    "rope-longrope": rope(
        "longrope", factor=4.0, original_max_position_embeddings=16, short_factor=SHORT, long_factor=LONG
    ),
}
