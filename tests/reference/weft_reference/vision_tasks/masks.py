"""Masks of what points and boxes stand for: no pipeline of the reference takes these, so that its processor and model are called."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from transformers import PreTrainedConfig, PreTrainedModel

from weft_reference.tasks import Answer, Call
from weft_reference.vision_tasks import VisionTaskCase
from weft_reference.vision_tasks.segmentation import counts

# A logit this close to the threshold could be on its other side.
TOO_CLOSE = 5e-6


def answers(_task: str, model: PreTrainedModel, folder: Path) -> Answer:
    images = transformers.AutoImageProcessor.from_pretrained(folder)
    processor = getattr(transformers, type(model).__name__.replace("Model", "Processor"))(images)

    def answer(inputs: Any, parameters: dict[str, Any]) -> Any:
        image = transformers.image_utils.load_image(inputs)
        prompts = {name: [parameters[name]] for name in ("input_points", "input_labels", "input_boxes") if name in parameters}
        made = processor(image, **prompts, return_tensors="pt")
        for name in ("input_points", "input_boxes"):
            if name in made:
                made[name] = made[name].float()
        sizes = {name: made.pop(name).tolist() for name in ("original_sizes", "reshaped_input_sizes") if name in made}
        outputs = model(**made)
        masks = images.post_process_masks(outputs.pred_masks, **sizes, binarize=False)[0]
        threshold = parameters.get("mask_threshold", 0.0)
        return [found for logits, scores in zip(masks, outputs.iou_scores[0]) for found in chosen(logits, scores, threshold, parameters)]

    return answer


def chosen(logits: torch.Tensor, scores: torch.Tensor, threshold: float, parameters: dict[str, Any]) -> list[dict[str, Any]]:
    """The best mask of a prompt, or all."""
    best = scores.topk(2).values
    if best[0] - best[1] < 1e-4 or (logits - threshold).abs().min() < TOO_CLOSE * max(1.0, float(logits.abs().max())):
        raise ValueError("two scores, or a logit and the threshold, are too close; choose another configuration")

    def one(index: int) -> dict[str, Any]:
        mask = np.asarray(logits[index] > threshold)
        return {"score": float(scores[index]), "mask": {"size": list(mask.shape), "counts": counts(mask)}}

    return [one(index) for index in (range(len(scores)) if parameters.get("multimask_output") else [int(scores.argmax())])]


def prompted(model: str, model_class: str, config: PreTrainedConfig, processor: Any, thresholds: tuple[float, ...]) -> VisionTaskCase:
    """`thresholds` are those of the calls, none of them near a logit."""
    calls = ("rgb.png", "rgb.png", "wide.png", "tall.png")
    points = [[[10, 12], [30.5, 8]], [[20, 20]]]
    prompts: tuple[dict[str, Any], ...] = (
        {"input_points": points[:1], "input_labels": [[1, 0]]},
        {"input_points": points[1:], "multimask_output": True},
        {"input_boxes": [[3, 2, 20, 15], [1, 1, 9, 12.5]]},
        {"input_points": points[1:], "input_boxes": [[2, 4, 12, 22]]},
    )
    return VisionTaskCase(
        f"{model}/tasks/mask-generation",
        "mask-generation",
        model_class,
        config,
        processor,
        tuple(Call(name, prompt | {"mask_threshold": threshold}) for name, prompt, threshold in zip(calls, prompts, thresholds, strict=True)),
        "Points on an object and beside it, all masks of a point, boxes, a point in a box.",
        answers=answers,
    )
