"""By how much a model's choices are the best: between each and its runner-up, relative to `max(1, max|logits|)`.

A number format that may be off by more than that can choose otherwise and be as right. Then a test compares the logits of
every step on the reference's own tokens instead of the answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from transformers import PreTrainedModel

# Of a set of labels each takes a place; of a vocabulary or a sequence one is chosen.
RANKED = ("logits_per_image", "logits_per_text", "logits_per_audio", "logits_per_video")
SPANS = ("start_logits", "end_logits")


class Margin:
    """The least margin that was seen."""

    def __init__(self) -> None:
        self.least = float("inf")

    def see(self, gaps: torch.Tensor, logits: torch.Tensor) -> None:
        finite = logits[logits.isfinite() & (logits > torch.finfo(logits.dtype).min / 2)]
        if gaps.numel() and finite.numel():
            self.least = min(self.least, float(gaps.min()) / max(1.0, float(finite.abs().max())))

    def best(self, logits: torch.Tensor) -> None:
        """One of the last axis is chosen."""
        if logits.shape[-1] > 1:
            top = logits.topk(2, dim=-1).values
            self.see(top[..., 0] - top[..., 1], logits)

    def ranked(self, logits: torch.Tensor) -> None:
        """All of the last axis are put in order."""
        ordered = logits.sort(dim=-1, descending=True).values
        self.see(ordered[..., :-1] - ordered[..., 1:], logits)

    def output(self, model: PreTrainedModel, output: Any) -> None:
        """What a run of the model gave."""
        logits = output.get("logits")
        if "pred_boxes" in output or (torch.is_tensor(logits) and logits.ndim > 3):
            # Edges are cut to whole pixels: any may be at one. Of a map's pixels, some are always between two labels.
            self.least = 0.0
        if "predicted_depth" in output:
            # Nothing is chosen: numbers of a map are off by parts of its largest, not of their own.
            self.least = 0.0
        if "object_score_logits" in output:
            # Memory of frames is rounded to bfloat16: any number of it may be at an edge, and decides on all frames that follow.
            self.least = 0.0
        for name in SPANS:
            if name in output:
                self.best(output[name].float())
        for name in RANKED:
            if name in output:
                self.ranked(output[name].float())
        if torch.is_tensor(logits) and logits.is_floating_point() and "pred_boxes" not in output and logits.ndim < 4:
            logits = logits.float()
            if logits.ndim < 3:
                self.ranked(logits)
            else:
                # Of those that write, only the last position is chosen by.
                self.best(logits[:, -1] if model.can_generate() else logits)

    def answer(self, answer: Any) -> None:
        """Scores that put an answer's items in order."""
        for item in answer.values() if isinstance(answer, dict) else answer if isinstance(answer, list) else ():
            self.answer(item)
        if isinstance(answer, list):
            scores = [float(item["score"]) for item in answer if isinstance(item, dict) and item.get("score") is not None]
            if len(scores) > 1 and all(a >= b for a, b in zip(scores, scores[1:])):
                self.least = min([self.least, *(a - b for a, b in zip(scores, scores[1:]))])

    def rounded(self) -> float | None:
        """To two digits, as goldens have it; none where nothing was chosen."""
        return None if self.least == float("inf") else float(f"{self.least:.1e}")


@contextmanager
def margin(model: PreTrainedModel) -> Iterator[Margin]:
    """What the model's runs within it leave to chance."""
    seen = Margin()
    # What BLIP writes, its decoder generates.
    decoder = getattr(model, "text_decoder", None)
    model = decoder if hasattr(decoder, "generate") else model

    def look(_: Any, __: Any, output: Any) -> None:
        if isinstance(output, dict):
            seen.output(model, output)

    hook = model.register_forward_hook(look)
    try:
        yield seen
    finally:
        hook.remove()
