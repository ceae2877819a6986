"""Images made larger, mattes and poses: no pipeline of the reference gives these, so that its processors and models are called."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from transformers import PreTrainedConfig, PreTrainedModel

from weft_reference.tasks import Answer, Call
from weft_reference.vision_tasks import VisionTaskCase

# What a heatmap's largest value and the next differ by, at the least.
TOO_CLOSE_PEAKS = 1e-4


def numbers(array: Any) -> Any:
    """Nested lists of numbers to six digits."""
    return float(f"{array:.6g}") if np.ndim(array) == 0 else [numbers(inner) for inner in array]


def each(one: Any) -> Answer:
    """An answer for one input, or for each of a list."""
    return lambda inputs, parameters: [one(item, parameters) for item in inputs] if isinstance(inputs, list) else one(inputs, parameters)


def opened(path: str) -> Any:
    return transformers.image_utils.load_image(path)


def super_resolution(model: str, model_class: str, config: PreTrainedConfig, processor: Any) -> VisionTaskCase:
    """As `ImageToImagePipeline` of release 4.57, without what the processor pads images by."""

    def answers(_task: str, made: PreTrainedModel, folder: Path) -> Answer:
        images = transformers.AutoImageProcessor.from_pretrained(folder)

        def one(path: str, _parameters: dict[str, Any]) -> Any:
            image = opened(path)
            pixels = images(image, return_tensors="pt")
            larger = made(**pixels).reconstruction[0]
            times = larger.shape[-1] // pixels["pixel_values"].shape[-1]
            return {"reconstruction": numbers(larger[:, : times * image.height, : times * image.width].numpy())}

        return each(one)

    calls = (Call("tiny.png"), Call(["tiny.png"]))
    notes = "One picture, alone and in a list; what is padded is cut off."
    return VisionTaskCase(f"{model}/tasks/image-super-resolution", "image-super-resolution", model_class, config, processor, calls, notes, answers=answers)


def image_matting(model: str, model_class: str, config: PreTrainedConfig, processor: Any) -> VisionTaskCase:
    def answers(_task: str, made: PreTrainedModel, folder: Path) -> Answer:
        images = transformers.AutoImageProcessor.from_pretrained(folder)

        def one(given: dict[str, str], _parameters: dict[str, Any]) -> Any:
            image, trimap = opened(given["image"]), transformers.image_utils.load_image(given["trimap"]).convert("L")
            outputs = made(**images(image, trimap, return_tensors="pt"))
            return {"alphas": numbers(outputs.alphas[0, 0, : image.height, : image.width].numpy())}

        return each(one)

    given = {"image": "rgb.png", "trimap": "trimap.png"}
    notes = "One picture with its trimap, alone and in a list; what is padded is cut off."
    return VisionTaskCase(f"{model}/tasks/image-matting", "image-matting", model_class, config, processor, (Call(given), Call([given])), notes, answers=answers)


def poses(model: str, model_class: str, config: PreTrainedConfig, processor: Any, threshold: float) -> VisionTaskCase:
    def answers(_task: str, made: PreTrainedModel, folder: Path) -> Answer:
        images = transformers.AutoImageProcessor.from_pretrained(folder)

        def one(path: str, parameters: dict[str, Any]) -> Any:
            image = opened(path)
            boxes = [parameters.get("boxes", [[0, 0, image.width, image.height]])]
            outputs = made(**images(image, boxes, return_tensors="pt"))
            peaks = outputs.heatmaps.flatten(2).topk(2).values
            least = parameters.get("threshold")
            close = (peaks[..., 0] - peaks[..., 1]).min() < TOO_CLOSE_PEAKS or peaks[..., 0].abs().min() < TOO_CLOSE_PEAKS
            if close or (least is not None and (peaks[..., 0] - least).abs().min() < TOO_CLOSE_PEAKS):
                raise ValueError(f"{path}: the peaks of a heatmap are too close; choose another configuration")
            options = {name: parameters[name] for name in ("threshold", "kernel_size") if name in parameters}
            found = images.post_process_pose_estimation(outputs, boxes, **options)[0]
            return [{name: numbers(pose[name].numpy()) for name in ("keypoints", "scores", "bbox")} | {"labels": pose["labels"].tolist()} for pose in found]

        return each(one)

    boxes = [[5, 3, 20, 25], [12.5, 8, 30, 18.25]]
    calls = (
        Call("rgb.png", {"boxes": boxes}),
        Call("rgb.png", {"boxes": boxes[:1], "threshold": threshold, "kernel_size": 3}),
        Call(["tall.png"]),
    )
    notes = "Two boxes, one of them wide; a threshold and a smaller kernel; a whole picture."
    return VisionTaskCase(f"{model}/tasks/pose-estimation", "pose-estimation", model_class, config, processor, calls, notes, answers=answers)
