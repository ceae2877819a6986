"""The depth of pictures: a number for each pixel."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedConfig, PreTrainedModel

from weft_reference.tasks import Answer, Call
from weft_reference.vision_tasks import VisionTaskCase, pipeline


def numbers(depth: torch.Tensor) -> list[list[float]]:
    """Rows of numbers to six digits."""
    return [[float(f"{number:.6g}") for number in row] for row in depth.tolist()]


def answers(task: str, model: PreTrainedModel, folder: Path) -> Answer:
    """The pipeline's depth, without the picture that is made of it."""
    inner = pipeline(task, model, folder)

    def answer(inputs: Any, parameters: dict[str, Any]) -> Any:
        found = inner(inputs, parameters)
        if isinstance(inputs, list):
            return [{"predicted_depth": numbers(one["predicted_depth"])} for one in found]
        return {"predicted_depth": numbers(found["predicted_depth"])}

    return answer


def depth(model: str, model_class: str, config: PreTrainedConfig, processor: Any, picture: str = "rgb.png") -> VisionTaskCase:
    return VisionTaskCase(
        f"{model}/tasks/depth-estimation",
        "depth-estimation",
        model_class,
        config,
        processor,
        (Call(picture), Call([picture])),
        "One picture, alone and in a list.",
        answers=answers,
    )
