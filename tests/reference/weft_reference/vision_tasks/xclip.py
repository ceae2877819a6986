"""Videos against labels of the caller's own.

The release has no pipeline for it: frames are taken evenly from the beginning, as `VideoClassificationPipeline` takes
them; every label is put into the template (default: the label alone); `XCLIPProcessor`'s parts make the inputs; the
scores are the softmax of `logits_per_video`, best first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from PIL import Image, ImageSequence
from transformers import PreTrainedModel, VideoMAEImageProcessorPil, XCLIPConfig

from weft_reference.byte_pairs import clip_tokenizer, vocabulary
from weft_reference.tasks import Answer, Call
from weft_reference.vision_tasks import VisionTaskCase

POSITIONS = 40


def zero_shot(_task: str, model: PreTrainedModel, folder: Path) -> Answer:
    processor = transformers.AutoImageProcessor.from_pretrained(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)

    def one(
        path: str,
        candidate_labels: list[str],
        hypothesis_template: str = "{}",
        num_frames: int | None = None,
        frame_sampling_rate: int = 1,
    ) -> list[dict[str, Any]]:
        count = num_frames or model.config.vision_config.num_frames
        places = np.linspace(0, count * frame_sampling_rate - 1, num=count, dtype=np.int64)
        with Image.open(path) as image:
            frames = [frame.convert("RGB") for frame in ImageSequence.Iterator(image)]
        pixels = processor([frames[place] for place in places], return_tensors="pt")
        texts = tokenizer([hypothesis_template.format(x) for x in candidate_labels], padding=True, return_tensors="pt")
        scores = torch.softmax(model(**texts, **pixels).logits_per_video[0], dim=-1).tolist()
        ranked = sorted(zip(scores, candidate_labels), key=lambda pair: -pair[0])
        return [{"score": score, "label": label} for score, label in ranked]

    def answer(inputs: Any, parameters: dict[str, Any]) -> Any:
        return [one(path, **parameters) for path in inputs] if isinstance(inputs, list) else one(inputs, **parameters)

    return answer


def tasks(config: Callable[..., XCLIPConfig]) -> Iterator[VisionTaskCase]:
    """`config(text, vision)` makes a tiny configuration with these changes."""
    size = len(vocabulary())
    text = {"vocab_size": size, "bos_token_id": size - 2, "pad_token_id": size - 1}
    chosen = config(text | {"max_position_embeddings": POSITIONS}, {"num_frames": 3})
    edge = chosen.vision_config.image_size
    processor = VideoMAEImageProcessorPil(size={"shortest_edge": edge}, crop_size={"height": edge, "width": edge})
    labels = ["a square moves to the right", "nothing happens", "it fades!"]
    yield VisionTaskCase(
        "xclip/tasks/zero-shot-video-classification",
        "zero-shot-video-classification",
        "XCLIPModel",
        chosen,
        processor,
        (
            Call("animated.gif", {"candidate_labels": labels}),
            Call(["animated.gif"], {"candidate_labels": labels[:2], "frame_sampling_rate": 2}),
            Call("animated.gif", {"candidate_labels": labels, "hypothesis_template": "A video: {}."}),
        ),
        "The first frames and every other one; labels of several lengths.",
        clip_tokenizer(POSITIONS),
        zero_shot,
    )
