"""The task of DETR and its like: objects and where they are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers import DetrImageProcessorPil, PreTrainedConfig, PreTrainedModel

from weft_reference.tasks import Answer, Call
from weft_reference.vision_tasks import TOO_CLOSE_TO_A_PIXEL, VisionTaskCase, pipeline

LABELS = ["N/A", "disc", "bar", "square"]


def tasks(
    config: PreTrainedConfig, model: str = "detr", prefix: str = "Detr", threshold: float = 0.492, processor: Any = None, edges: tuple[int, int] = (32, 48)
) -> Iterator[VisionTaskCase]:
    """`config` is a tiny one with as many labels as `LABELS`; some of its scores are above the threshold, others below."""
    config.id2label = dict(enumerate(LABELS))
    config.label2id = {name: index for index, name in enumerate(LABELS)}
    processor = (processor or DetrImageProcessorPil)(size=dict(zip(("shortest_edge", "longest_edge"), edges, strict=True)))
    everything = {"threshold": 0.0}
    yield VisionTaskCase(
        f"{model}/tasks/object-detection",
        "object-detection",
        f"{prefix}ForObjectDetection",
        config,
        processor,
        (
            Call("rgb.png", everything),
            Call(["tall.png", "wide.png", "oriented.png"], everything),
            Call(["rgb.png"], {"threshold": threshold}),
            Call("oriented.png"),
            Call("rgb.png"),
        ),
        "One picture and several, upright and wide; all queries, some, and the usual threshold.",
        answers=careful,
    )


def careful(task: str, model: PreTrainedModel, folder: Path) -> Answer:
    """The pipeline, where no score is near the threshold and no box near a whole pixel."""
    inner = pipeline(task, model, folder)
    processor = transformers.AutoImageProcessor.from_pretrained(folder)

    def answer(inputs: Any, parameters: dict[str, Any]) -> Any:
        for path in inputs if isinstance(inputs, list) else [inputs]:
            image = transformers.image_utils.load_image(path)
            outputs = model(**processor(images=[image], return_tensors="pt"))
            sizes = torch.tensor([[image.height, image.width]])
            found = processor.post_process_object_detection(outputs, 0.0, sizes)[0]
            threshold = parameters.get("threshold", 0.5)
            if ((found["scores"] - threshold).abs() < 1e-4).any():
                raise ValueError(f"{path}: a score is too close to the threshold; choose another")
            whole = found["boxes"].round()
            if ((found["boxes"] - whole).abs() < TOO_CLOSE_TO_A_PIXEL).any():
                raise ValueError(f"{path}: a box is too close to a whole pixel; choose another picture")
        return inner(inputs, parameters)

    return answer
