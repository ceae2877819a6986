"""Inputs for golden cases, drawn from the weight rule's bits so that they never change."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from weft_reference import weights

Padding = Literal["right", "left", "none"]


def integers(key: str, shape: tuple[int, ...], low: int, high: int) -> np.ndarray:
    """int64 numbers in low ... high - 1, different for each key."""
    drawn = weights.bits(f"input.{key}", math.prod(shape)) % np.uint64(high - low)
    return drawn.astype(np.int64).reshape(shape) + low


def text_batch(
    vocab_size: int,
    lengths: tuple[int, ...] = (11, 7),
    padding: Padding = "right",
    types: int = 2,
    pad: int = 0,
    key: str = "text",
) -> dict[str, np.ndarray]:
    """`input_ids`, `attention_mask`, `token_type_ids` `[batch, sequence]`; ids below 5 are kept for special tokens."""
    batch, sequence = len(lengths), max(lengths)
    ids = integers(key, (batch, sequence), 5, vocab_size)
    mask = np.ones((batch, sequence), np.int64)
    kinds = np.zeros((batch, sequence), np.int64)
    for row, length in enumerate(lengths):
        if padding != "none":
            gap = slice(length, sequence) if padding == "right" else slice(0, sequence - length)
            mask[row, gap] = 0
            ids[row, gap] = pad
        second = np.flatnonzero(mask[row])[length // 2 :]
        kinds[row, second] = types - 1
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": kinds}


def choices(batches: list[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """One batch a choice, stacked to `[batch, choices, sequence]`."""
    return {name: np.stack([batch[name] for batch in batches], axis=1) for name in batches[0]}


def floats(key: str, shape: tuple[int, ...], low: float = -1.0, high: float = 1.0) -> np.ndarray:
    """float32 numbers from low up to high, different for each key: pixels, samples."""
    drawn = (weights.bits(f"input.{key}", math.prod(shape)) >> np.uint64(40)).astype(np.float32) * np.float32(2.0**-24)
    return (drawn * np.float32(high - low) + np.float32(low)).reshape(shape)
