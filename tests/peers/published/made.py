"""What a checkpoint is made of, and the numbers of its inputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import transformers

Inputs = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Checkpoint:
    model_class: str
    config: transformers.PreTrainedConfig | Mapping[str, Any]
    """Of `transformers`, or where it is a mapping, of `diffusers`."""
    inputs: Inputs
    dtype: torch.dtype = torch.float32
    gguf: bool = True
    """Whether it is written for llama.cpp too, where that has the class."""


def floats(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape, np.float32)


def ids(vocab_size: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(0).integers(3, vocab_size, shape, np.int64)


def text(vocab_size: int, length: int) -> Inputs:
    """A text without padding."""
    texts = ids(vocab_size, 1, length)
    return {"input_ids": texts, "attention_mask": np.ones_like(texts)}
