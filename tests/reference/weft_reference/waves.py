"""Waveforms as inputs of a model."""

from __future__ import annotations

import numpy as np

from weft_reference.weights import values


def batch(key: str, lengths: tuple[int, ...], masked: bool = True) -> dict[str, np.ndarray]:
    """`input_values` `[batch, samples]` of tones under noise, and `attention_mask`: padding is zeros at the end."""
    longest = max(lengths)
    waves = np.zeros((len(lengths), longest), np.float32)
    mask = np.zeros((len(lengths), longest), np.int64)
    for row, length in enumerate(lengths):
        t = np.arange(length)
        tone = np.sin(t * (0.05 + 0.04 * row) + 1e-4 * t**2)
        waves[row, :length] = tone + values(f"{key}.{row}.in_proj", (length, 1))[:, 0] * 0.3
        mask[row, :length] = 1
    return {"input_values": waves, "attention_mask": mask} if masked else {"input_values": waves}
