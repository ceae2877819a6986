"""What texts say, and where it is in pictures: the task of OWL-ViT and its like."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers import PreTrainedConfig, PreTrainedModel

from weft_reference.byte_pairs import clip_tokenizer
from weft_reference.tasks import Answer, Call
from weft_reference.vision_tasks import TOO_CLOSE_TO_A_PIXEL, VisionTaskCase, pipeline

TEXTS = ["a red disc", "blue bars", "a cat's tail"]


def tasks(model: str, prefix: str, config: PreTrainedConfig, positions: int, threshold: float) -> Iterator[VisionTaskCase]:
    edge = config.vision_config.image_size
    processor = getattr(transformers, f"{prefix}ImageProcessorPil")(size={"height": edge, "width": edge})
    everything = {"candidate_labels": TEXTS, "threshold": 0.0}
    yield VisionTaskCase(
        f"{model}/tasks/zero-shot-object-detection",
        "zero-shot-object-detection",
        f"{prefix}ForObjectDetection",
        config,
        processor,
        (
            Call("rgb.png", everything),
            Call(["wide.png", "oriented.png"], {"candidate_labels": TEXTS[:2], "threshold": threshold}),
            Call("grey.png", everything | {"top_k": 3}),
            Call("rgb.png", {"candidate_labels": TEXTS[:1]}),
        ),
        "One picture and several; all boxes, some, the best, and the usual threshold.",
        clip_tokenizer(positions),
        answers=careful,
    )


def careful(task: str, model: PreTrainedModel, folder: Path) -> Answer:
    """The pipeline, where no score is near the threshold and no box near a whole pixel."""
    inner = pipeline(task, model, folder)
    processor = transformers.AutoImageProcessor.from_pretrained(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)

    def answer(inputs: Any, parameters: dict[str, Any]) -> Any:
        for path in inputs if isinstance(inputs, list) else [inputs]:
            image = transformers.image_utils.load_image(path)
            for text in parameters["candidate_labels"]:
                outputs = model(**tokenizer(text, return_tensors="pt"), **processor(images=[image], return_tensors="pt"))
                found = processor.post_process_object_detection(outputs, 0.0, torch.tensor([[image.height, image.width]]))[0]
                if ((found["scores"] - parameters.get("threshold", 0.1)).abs() < 1e-4).any():
                    raise ValueError(f"{path}: a score is too close to the threshold; choose another")
                if ((found["boxes"] - found["boxes"].round()).abs() < TOO_CLOSE_TO_A_PIXEL).any():
                    raise ValueError(f"{path}: a box is too close to a whole pixel; choose another picture")
        return [inner(one, parameters) for one in inputs] if isinstance(inputs, list) else inner(inputs, parameters)

    return answer
