"""Objects that are tracked through videos, by the reference's own session, model and processors: no pipeline of it takes these."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from PIL import Image, ImageSequence
from transformers import PreTrainedConfig, PreTrainedModel, Sam2VideoProcessor, Sam2VideoVideoProcessor, Sam3TrackerVideoProcessor

from weft_reference.tasks import Answer, Call
from weft_reference.vision_tasks import VisionTaskCase
from weft_reference.vision_tasks.segmentation import counts, refuse_near_ties

# A logit this close to the threshold, relative to the largest, could be on its other side.
TOO_CLOSE = 1e-4
VIDEO = "animated.gif"
# Logits of objects that are not in a frame are -1024.
ABSENT = -1000.0


class Processors:
    """Those of a checkpoint, saved as the reference saves them; `edge` is that of frames as the model takes them."""

    def __init__(self, edge: int, processor: type = Sam2VideoProcessor) -> None:
        size = {"height": edge, "width": edge}
        images = (transformers.Sam3ImageProcessor if processor is Sam3TrackerVideoProcessor else transformers.Sam2ImageProcessor)(size=size)
        self.processor = processor(image_processor=images, video_processor=Sam2VideoVideoProcessor(size=size))

    def save_pretrained(self, folder: Path) -> None:
        self.processor.save_pretrained(folder)


def refuse_near_scores(model: PreTrainedModel) -> None:
    """Where the best of several masks is taken, its score must be the highest by far."""
    forward = model._single_frame_forward

    def checked(*arguments: Any, **named: Any) -> Any:
        output = forward(*arguments, **named)
        best = output.iou_scores.flatten().sort(descending=True).values
        if named.get("multimask_output", True) and best[0] - best[1] < TOO_CLOSE:
            raise ValueError("two scores of masks are too close; choose another configuration")
        return output

    model._single_frame_forward = checked


def answers(_task: str, model: PreTrainedModel, folder: Path) -> Answer:
    refuse_near_scores(model)
    made = json.loads((folder / "processor_config.json").read_text())
    processor = getattr(transformers, made["processor_class"]).from_pretrained(folder)

    def answer(inputs: Any, parameters: dict[str, Any]) -> Any:
        with Image.open(inputs) as image:
            video = [np.asarray(frame.convert("RGB")) for frame in ImageSequence.Iterator(image)]
        if parameters.get("streaming"):
            return streamed(processor, model, video, parameters)
        session = processor.init_video_session(video=video, dtype=torch.float32)
        ways = ("start_frame_idx", "max_frame_num_to_track", "reverse")
        ways = {name: parameters[name] for name in ways if name in parameters}
        for prompts in parameters["prompts"]:
            add(processor, session, model, prompts)
        if "corrections" in parameters:
            list(model.propagate_in_video_iterator(session, **ways))
            for prompts in parameters["corrections"]:
                add(processor, session, model, prompts)
        return [found(processor, session, frame, parameters) for frame in model.propagate_in_video_iterator(session, **ways)]

    return answer


def streamed(processor: Any, model: PreTrainedModel, video: list[np.ndarray], parameters: dict[str, Any]) -> list[Any]:
    """Frames one by one, each with its prompts."""
    session, all_found = processor.init_video_session(dtype=torch.float32), []
    for index, frame in enumerate(video):
        inputs = processor(images=Image.fromarray(frame), return_tensors="pt")
        for prompts in parameters["prompts"]:
            if prompts["frame_idx"] == index:
                given(processor, session, prompts, original_size=inputs.original_sizes[0].tolist())
        outputs = model(session, frame=inputs.pixel_values[0])
        all_found.append(found(processor, session, outputs, parameters))
    return all_found


def add(processor: Any, session: Any, model: PreTrainedModel, prompts: dict[str, Any]) -> None:
    """Adds prompts and runs the frame, as the reference's documentation has it."""
    given(processor, session, prompts)
    model(session, frame_idx=prompts["frame_idx"])


def given(processor: Any, session: Any, prompts: dict[str, Any], **named: Any) -> None:
    """Adds prompts; there is one image."""
    plain = ("frame_idx", "obj_ids", "clear_old_inputs")
    named |= {name: value if name in plain else [value] for name, value in prompts.items()}
    if "input_masks" in named:
        named["input_masks"] = [decoded(mask) for mask in prompts["input_masks"]]
    processor.add_inputs_to_inference_session(session, **named)


def decoded(mask: dict[str, Any]) -> np.ndarray:
    height, width = mask["size"]
    inside = np.repeat(np.arange(len(mask["counts"])) % 2 == 1, mask["counts"])
    return inside.reshape(width, height).T


def encoded(mask: np.ndarray) -> dict[str, Any]:
    return {"size": list(mask.shape), "counts": counts(mask)}


def found(processor: Any, session: Any, frame: Any, parameters: dict[str, Any]) -> dict[str, Any]:
    size, threshold = [session.video_height, session.video_width], parameters.get("mask_threshold", 0.0)
    apart = parameters.get("apply_non_overlapping_constraints", False)
    logits = post_process(processor, frame, size, apart)
    if apart and len(logits) > 1:
        refuse_near_ties(post_process(processor, frame, size), VIDEO)
    if parameters.get("binarize", True):
        largest = float(logits[logits > ABSENT].abs().amax()) if (logits > ABSENT).any() else 1.0
        if (logits - threshold).abs().min() < TOO_CLOSE * max(1.0, largest):
            raise ValueError("a logit and the threshold are too close; choose another threshold")
        masks = [encoded(np.asarray(one > threshold)) for one in logits]
    else:
        masks = [[[round(float(logit), 6) for logit in row] for row in one] for one in logits]
    scores = [float(score) for score in frame.object_score_logits.flatten()]
    objects = zip(frame.object_ids, scores, masks, strict=True)
    return {
        "frame_idx": frame.frame_idx,
        "objects": [{"object_id": number, "object_score_logits": score, "mask": mask} for number, score, mask in objects],
    }


def post_process(processor: Any, frame: Any, size: list[int], apart: bool = False) -> torch.Tensor:
    """Logits `[objects, height, width]`."""
    options = {"binarize": False, "apply_non_overlapping_constraints": apart}
    return processor.post_process_masks([frame.pred_masks], [size], **options)[0][:, 0]


def disc(height: int = 28, width: int = 40) -> np.ndarray:
    y, x = np.mgrid[0:height, 0:width]
    return (x - 23.5) ** 2 + (y - 11.5) ** 2 < 50


def tracked(
    model: str,
    model_class: str,
    config: PreTrainedConfig,
    edge: int,
    thresholds: tuple[float | None, ...],
    processor: type = Sam2VideoProcessor,
) -> VisionTaskCase:
    """`edge` is that of frames as the model takes them; `thresholds` are those of the calls, none of them near a logit, or `None` where
    the reference fails."""
    point = {"frame_idx": 0, "obj_ids": [1], "input_points": [[[6, 8]]], "input_labels": [[1]]}
    box = {"frame_idx": 0, "obj_ids": [2], "input_boxes": [[16, 4, 31, 20]]}
    both = {"input_points": [[[5.5, 7], [30, 20]], [[23, 12]]], "input_labels": [[1, 0], [1]]}
    fixed = {"frame_idx": 4, "obj_ids": [1], "input_points": [[[26, 8], [3, 8]]], "input_labels": [[1, 0]]}
    more = {"frame_idx": 4, "obj_ids": [1], "input_points": [[[28, 6]]], "input_labels": [[1]], "clear_old_inputs": False}
    mask = {"frame_idx": 5, "obj_ids": 7, "input_masks": [encoded(disc())]}
    anchors = [{**point, "frame_idx": frame, "input_points": [[[6 + 5.5 * frame, 8]]]} for frame in (4, 0, 2, 1)]
    calls: tuple[dict[str, Any], ...] = (
        # Points for one object and a box for another; every frame, more than memory is of.
        {"prompts": [point, box]},
        # Two objects at once with unlike numbers of points; where they overlap, one has the pixel.
        {"prompts": [{"frame_idx": 1, "obj_ids": [3, 4], **both}], "apply_non_overlapping_constraints": True, "max_frame_num_to_track": 0},
        # Points on a frame that was tracked, twice.
        {"prompts": [point], "corrections": [fixed, more], "start_frame_idx": 3},
        # A mask in the last frame, and backwards from there; the second object first where it was tracked backwards already.
        {"prompts": [mask, {**point, "frame_idx": 3}], "reverse": True, "start_frame_idx": 5},
        # More frames with prompts than are attended to, out of order.
        {"prompts": anchors, "start_frame_idx": 3},
        {"prompts": anchors, "reverse": True, "start_frame_idx": 5, "max_frame_num_to_track": 3},
        # An object that is seen from a later frame on; another is tracked into that frame first.
        {"prompts": [point, {**box, "frame_idx": 3}, {**fixed, "frame_idx": 3}], "max_frame_num_to_track": 3},
        # The logits of a frame that attends to no other.
        {"prompts": [mask, {**both, "frame_idx": 5, "obj_ids": [3, 4]}], "max_frame_num_to_track": 0, "binarize": False},
        # Frames that come one by one.
        {"prompts": [point, {**box, "frame_idx": 2}, {**fixed, "frame_idx": 4}], "streaming": True},
    )
    return VisionTaskCase(
        f"{model}/tasks/object-tracking",
        "object-tracking",
        model_class,
        config,
        Processors(edge, processor),
        tuple(Call(VIDEO, call | {"mask_threshold": threshold}) for call, threshold in zip(calls, thresholds, strict=True) if threshold is not None),
        "Points, boxes, masks, corrections, several objects, backwards, more frames than memory is of.",
        answers=answers,
    )
