"""Objects that texts name in videos, by the reference's own session, model and processors: no pipeline of it takes these."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch
import transformers
from PIL import Image, ImageSequence
from transformers import PreTrainedConfig, PreTrainedModel, Sam2VideoVideoProcessor, Sam3VideoProcessor
from transformers.models.sam3_video import modeling_sam3_video

from weft_reference.byte_pairs import clip_tokenizer
from weft_reference.tasks import Answer, Call
from weft_reference.vision_tasks import VisionTaskCase
from weft_reference.vision_tasks.segmentation import counts

VIDEO = "animated.gif"
TEXTS = ["a red disc", "blue bars"]


class Processors:
    """Those of a checkpoint, saved as the reference saves them; `edge` is that of frames as the model takes them."""

    def __init__(self, edge: int, positions: int) -> None:
        size = {"height": edge, "width": edge}
        images, videos = transformers.Sam3ImageProcessor(size=size), Sam2VideoVideoProcessor(size=size)
        self.processor = Sam3VideoProcessor(images, videos, clip_tokenizer(positions))

    def save_pretrained(self, folder: Path) -> None:
        self.processor.save_pretrained(folder)


class Kernels:
    """What the reference takes of `kernels-community/cv-utils`, where it is asked for; it goes on without what fails."""

    def __init__(self, parameters: dict[str, Any]) -> None:
        self.suppress, self.fill = (parameters.get(name, True) for name in ("suppress_overlapping", "fill_holes"))

    def generic_nms(self, ious: torch.Tensor, scores: torch.Tensor, threshold: float, use_iou_matrix: bool) -> torch.Tensor:
        if not self.suppress or not use_iou_matrix:
            raise NotImplementedError
        kept: list[int] = []
        for index in scores.argsort(descending=True, stable=True).tolist():
            if all(ious[index, other] <= threshold for other in kept):
                kept.append(index)
        return torch.tensor(kept, dtype=torch.long)

    def cc_2d(self, masks: torch.Tensor, get_counts: bool) -> tuple[torch.Tensor, torch.Tensor]:
        """Labels of pixels connected by edges or corners, and how many have each."""
        if not self.fill or not get_counts:
            raise NotImplementedError
        labels = torch.zeros(masks.shape, dtype=torch.int32)
        for index in np.ndindex(masks.shape[:2]):
            mask, number = masks[index].bool(), 0
            for place in mask.nonzero().tolist():
                if labels[index][tuple(place)]:
                    continue
                number += 1
                found = torch.zeros_like(mask)
                found[tuple(place)] = True
                before = 0
                while int(found.sum()) > before:
                    before = int(found.sum())
                    found = torch.nn.functional.max_pool2d(found[None].float(), 3, 1, 1)[0].bool() & mask
                labels[index][found] = number
        areas = torch.zeros_like(labels)
        for index in np.ndindex(masks.shape[:2]):
            sizes = torch.bincount(labels[index].flatten())
            areas[index] = torch.where(labels[index] > 0, sizes[labels[index]], 0).int()
        return labels, areas


def answers(_task: str, model: PreTrainedModel, folder: Path) -> Answer:
    made = json.loads((folder / "processor_config.json").read_text())
    processor = getattr(transformers, made["processor_class"]).from_pretrained(folder)

    def one(video: list[np.ndarray], parameters: dict[str, Any], factor: float) -> list[dict[str, Any]]:
        session = processor.init_video_session(video=video, dtype=torch.float32)
        session.processed_frames = {index: frame * factor for index, frame in session.processed_frames.items()}
        processor.add_text_prompt(session, text=parameters["candidate_labels"])
        ways = {name: parameters[name] for name in ("start_frame_idx", "max_frame_num_to_track", "reverse") if name in parameters}
        with mock.patch.object(modeling_sam3_video, "cv_utils_kernel", Kernels(parameters)):
            return [found(processor, session, frame) for frame in model.propagate_in_video_iterator(session, **ways)]

    def answer(inputs: Any, parameters: dict[str, Any]) -> Any:
        with Image.open(inputs) as image:
            video = [np.asarray(frame.convert("RGB")) for frame in ImageSequence.Iterator(image)]
        answer = one(video, parameters, 1.0)
        for factor in (1.0 - 1e-6, 1.0 + 1e-6):
            if discrete(one(video, parameters, factor)) != discrete(answer):
                raise ValueError("a score or a logit is too close to a threshold; choose another configuration")
        return answer

    return answer


def discrete(frames: list[dict[str, Any]]) -> Any:
    return [[{**found, "score": None} for found in frame["objects"]] for frame in frames]


def found(processor: Any, session: Any, frame: Any) -> dict[str, Any]:
    shown = processor.postprocess_outputs(session, frame)
    labels = {number: text for text, numbers in shown["prompt_to_obj_ids"].items() for number in numbers}
    objects = []
    for number, score, box, mask in zip(shown["object_ids"].tolist(), shown["scores"], shown["boxes"], shown["masks"], strict=True):
        edges = dict(zip(("xmin", "ymin", "xmax", "ymax"), map(int, box), strict=True))
        encoded = {"size": list(mask.shape), "counts": counts(mask.numpy())}
        objects.append({"object_id": number, "label": labels[number], "score": float(score), "box": edges, "mask": encoded})
    return {"frame_idx": frame.frame_idx, "objects": objects}


def tracked(name: str, config: PreTrainedConfig, edge: int, calls: tuple[dict[str, Any], ...], notes: str) -> VisionTaskCase:
    """`edge` is that of frames as the model takes them."""
    positions = config.detector_config.text_config.max_position_embeddings
    return VisionTaskCase(
        f"sam3_video/tasks/{name}",
        "zero-shot-object-tracking",
        "Sam3VideoModel",
        config,
        Processors(edge, positions),
        tuple(Call(VIDEO, {"candidate_labels": TEXTS} | call) for call in calls),
        notes,
        answers=answers,
    )
