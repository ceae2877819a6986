"""Keypoints of pictures, and those of two that match: what the reference's models and their image processors give.

`KeypointMatchingPipeline` hands the processor widths for heights, so that keypoints of pictures that are not square lie
elsewhere; these are placed by heights and widths.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import transformers
from transformers import PreTrainedConfig, PreTrainedModel

from weft_reference.cases import Store
from weft_reference.tasks import Answer, Call
from weft_reference.vision_tasks import VisionTaskCase
from weft_reference.vision_tasks.made import each, numbers, opened


def keypoint_detection(model: str, model_class: str, config: PreTrainedConfig, processor: Any) -> VisionTaskCase:
    def answers(_task: str, made: PreTrainedModel, folder: Path) -> Answer:
        images = transformers.AutoImageProcessor.from_pretrained(folder)

        def one(path: str, _parameters: dict[str, Any]) -> Any:
            image = opened(path)
            outputs = made(**images(image, return_tensors="pt"))
            found = images.post_process_keypoint_detection(outputs, [(image.height, image.width)])[0]
            shown = {name: numbers(found[name].numpy()) for name in ("scores", "descriptors")}
            return {"keypoints": found["keypoints"].tolist()} | shown

        return each(one)

    calls = (Call("rgb.png"), Call(["tall.png", "grey.png"]))
    notes = "A picture, and a list of two others, of which one is grey."
    return VisionTaskCase(
        f"{model}/tasks/keypoint-detection",
        "keypoint-detection",
        model_class,
        config,
        processor,
        calls,
        notes,
        answers=answers,
    )


def keypoint_matching(
    model: str, model_class: str, config: PreTrainedConfig, processor: Any, threshold: float, store: Store | None = None
) -> VisionTaskCase:
    def answers(_task: str, made: PreTrainedModel, folder: Path) -> Answer:
        images = transformers.AutoImageProcessor.from_pretrained(folder)

        def one(paths: list[str], parameters: dict[str, Any]) -> Any:
            pair = [opened(path) for path in paths]
            outputs = made(**images(pair, return_tensors="pt"))
            sizes = [[(image.height, image.width) for image in pair]]
            found = images.post_process_keypoint_matching(outputs, sizes, **parameters)[0]
            places = [[{"x": x, "y": y} for x, y in found[name].tolist()] for name in ("keypoints0", "keypoints1")]
            scores = numbers(found["matching_scores"].numpy())
            matches = [
                {"keypoint_image_0": first, "keypoint_image_1": second, "score": score}
                for first, second, score in zip(*places, scores, strict=True)
            ]
            return sorted(matches, key=lambda match: match["score"], reverse=True)

        def answer(inputs: Any, parameters: dict[str, Any]) -> Any:
            single = isinstance(inputs[0], str)
            return one(inputs, parameters) if single else [one(pair, parameters) for pair in inputs]

        return answer

    pair = ["rgb.png", "tall.png"]
    calls = (Call(pair), Call([pair, ["rgb.png", "rgb.png"]]), Call(pair, {"threshold": threshold}))
    notes = "Two pictures of other sizes; the same and a picture with itself; a threshold."
    return VisionTaskCase(
        f"{model}/tasks/keypoint-matching",
        "keypoint-matching",
        model_class,
        config,
        processor,
        calls,
        notes,
        answers=answers,
        store=store,
    )
