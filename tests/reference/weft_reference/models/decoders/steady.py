"""Texts on which a mixture of experts is a fair test: no token's choice of experts hangs on a rounding.

A choice is all or nothing: where two experts are nearly equally good, half precision picks the other, and what comes out
is another number altogether. Such a text says nothing about a backend, and no tolerance would make it say more.
"""

from __future__ import annotations

import tempfile
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
import transformers

from weft_reference.cases import Case, Inputs, run
from weft_reference.files import Files
from weft_reference.inputs import text_batch

# The fields that say how many experts a token is given to, and so that a model is such a mixture.
CHOSEN = ("num_experts_per_tok", "moe_k", "moe_topk", "ffn_config")
DRAWS = 6
NOISE = 0.005  # About as much as bfloat16 rounds by, twice.
MOST = 0.025  # Where a choice changes, outputs change by more.
TEXTS = 300


@dataclass(frozen=True)
class SteadyCase(Case):
    """A case whose texts are found when it is made: two, of which the second is padded on this side."""

    padding: str = "right"

    def make(self) -> Files:
        return Case.make(self.found())

    def intermediates(self) -> dict[str, np.ndarray]:
        return Case.intermediates(self.found())

    def found(self) -> SteadyCase:
        """The first texts whose outputs stay what they are under small changes of weights."""
        with tempfile.TemporaryDirectory() as folder:
            model, _ = self.model(Path(folder))
        shaken = [shake(model, seed) for seed in range(DRAWS)]
        for number in range(TEXTS):
            inputs = self.texts(number)
            outputs = run(model, inputs, self.forward)
            if all(distance(outputs, run(other, inputs, self.forward)) < MOST for other in shaken):
                return replace(self, inputs=inputs)
        raise ValueError(f"{self.path}: of {TEXTS} texts each has a token that two experts suit; change its sizes")

    def texts(self, number: int) -> Inputs:
        lengths = tuple(int(length) for length in self.inputs["attention_mask"].sum(axis=1))
        made = text_batch(self.config.vocab_size, lengths, self.padding, key=f"text.{number}")  # type: ignore[arg-type]
        return {name: made[name] for name in ("input_ids", "attention_mask")}


def shake(model: transformers.PreTrainedModel, seed: int) -> transformers.PreTrainedModel:
    """The model with every weight up to `NOISE` larger or smaller."""
    other = deepcopy(model)
    generator = torch.Generator().manual_seed(seed)
    for parameter in other.parameters():
        parameter.mul_(1 + NOISE * (2 * torch.rand(parameter.shape, generator=generator) - 1))
    return other


def distance(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> float:
    """The largest difference, relative as the comparison of cases takes it."""
    return max(float(np.abs(other[name] - want).max() / max(1.0, np.abs(want).max())) for name, want in one.items())
