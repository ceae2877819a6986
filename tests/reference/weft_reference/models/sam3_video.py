"""SAM 3 on videos: what a text names in a frame, and an object in it, of its memory of earlier frames."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import numpy as np
import torch
import transformers
from transformers import PreTrainedConfig
from transformers.utils import ModelOutput

from weft_reference import stores
from weft_reference.byte_pairs import vocabulary
from weft_reference.cases import Case, Inputs, Store
from weft_reference.inputs import floats, text_batch
from weft_reference.models import sam2_video
from weft_reference.models.promptable import points
from weft_reference.models.sam3 import concept
from weft_reference.vision_tasks import VisionTaskCase
from weft_reference.vision_tasks.concepts import tracked

MODELS = ("sam3_video",)
SIZE, SIDE, WIDTH, MEMORY = 56, 7, 128, 64
DETECTED = ("pred_masks", "pred_boxes", "pred_logits", "presence_logits")


def config(tracker: dict[str, Any] | None = None, **detector: Any) -> PreTrainedConfig:
    """Both with maps of 128 channels of one image encoder."""
    followed = sam2_video.sam3_tracker(WIDTH, **(tracker or {}))
    found = concept(width=WIDTH, **detector)
    return transformers.Sam3VideoConfig(detector_config=found, tracker_config=followed, low_res_mask_size=4 * SIDE)


def step(model: Any, return_dict: bool = True, **given: torch.Tensor) -> ModelOutput:
    """One frame by the reference's own methods: what each text names, and each object."""
    vision = model.detector_model.get_vision_features(pixel_values=given["pixel_values"])
    text = {name: given.pop(name) for name in ("input_ids", "attention_mask")}
    embeds = model.detector_model.get_text_features(**text, return_dict=True)
    found = model.detector_model(vision_embeds=vision, text_embeds=embeds, attention_mask=text["attention_mask"])
    followed = []
    for row in range(len(given["pixel_values"])):
        one = {name: value[row : row + 1] for name, value in given.items()}
        features = model.get_vision_features_for_tracker(model.detector_model.get_vision_features(pixel_values=one["pixel_values"]))
        cached = dict(zip(("vision_feats", "vision_pos_embeds"), features, strict=True))
        followed.append(sam2_video.one(model.tracker_model, one, cached))
    outputs = {f"detector_output.{name}": found[name] for name in DETECTED}
    return ModelOutput(outputs | {f"tracker_output.{name}": torch.cat([row[name] for row in followed]) for name in followed[0]})


@contextmanager
def of_tensors() -> Iterator[None]:
    with mock.patch.object(transformers.Sam3VideoModel, "forward", step):
        yield


def inputs(name: str, lengths: tuple[int, int] = (6, 4)) -> Inputs:
    given = text_batch(99, lengths, "right", key=name)
    del given["token_type_ids"]
    return {**given, "pixel_values": floats("pixels", (2, 3, SIZE, SIZE), -2.0, 2.0)}


def goldens() -> Iterator[Case | VisionTaskCase]:
    def one(name: str, notes: str, given: Inputs, store: Store | None = None, **changes: Any) -> Case:
        return Case(f"sam3_video/{name}", "Sam3VideoModel", config(**changes), {**inputs(name), **given}, notes, store, within=of_tensors)

    def flags(multimask: int, prompted: int) -> Inputs:
        return {"multimask_output": np.full(2, multimask, np.int64), "is_mask_from_pts": np.full(2, prompted, np.int64)}

    memory = sam2_video.memory(of=(MEMORY, SIDE, SIDE))
    mask = {"mask_inputs": (floats("mask", (2, 1, SIZE, SIZE), -1.0, 1.0) > 0.2).astype(np.float32)}
    prompts = {"input_points": points(SIZE)["input_points"][:, :1], "input_labels": np.array([[[1, 0]], [[1, -10]]], np.int64)}
    yield one("mask", "Texts, and the first frame of objects by masks.", {**mask, **flags(1, 1)})
    yield one("memory", "Texts, of which the second is padded, and objects of three and two frames' memory.", {**memory, **flags(1, 0)})
    other = {"encoder": {"num_layers": 1, "hidden_act": "gelu"}, "decoder": {"num_layers": 3, "num_queries": 3, "num_attention_heads": 4}}
    tracker = {"memory_attention_num_attention_heads": 2, "enable_occlusion_spatial_embedding": False, "num_maskmem": 5}
    yield one("other", "Other layers and heads of both.", {**memory, **prompts, **flags(0, 1)}, tracker=tracker, **other)
    yield one("file", "model.safetensors as save_pretrained writes it.", {**memory, **flags(1, 0)}, stores.whole)
    yield from tasks()


def tasks() -> Iterator[VisionTaskCase]:
    size = len(vocabulary())
    text = {"vocab_size": size, "bos_token_id": size - 2, "eos_token_id": size - 1, "pad_token_id": size - 1, "max_position_embeddings": 32}

    def made(queries: int, **thresholds: Any) -> PreTrainedConfig:
        made = config(tracker={"num_maskmem": 4}, decoder={"num_queries": queries}, text=text)
        for name, value in thresholds.items():
            setattr(made, name, value)
        return made

    few = {"hotstart_delay": 3, "hotstart_unmatch_thresh": 2, "hotstart_dup_thresh": 2, "recondition_every_nth_frame": 2}
    sure = {"score_threshold_detection": 0.2, "new_det_thresh": 0.25, "high_conf_thresh": 0.2, "high_iou_thresh": 0.3}
    notes = "One object of each text, which sure detections confirm every second frame."
    yield tracked("zero-shot-object-tracking", made(5, **few, **sure), SIZE, ({}, {"candidate_labels": ["a cat's tail"], "max_frame_num_to_track": 2}), notes)
    many = {"score_threshold_detection": 0.02, "new_det_thresh": 0.03, "high_conf_thresh": 0.2, "high_iou_thresh": 0.3}
    many |= {"det_nms_thresh": 0.95, "assoc_iou_thresh": 0.58, "trk_assoc_iou_thresh": 0.6}
    few_frames = {"max_frame_num_to_track": 2}
    calls: tuple[dict[str, Any], ...] = (few_frames, {"suppress_overlapping": False, **few_frames}, {"fill_holes": False, "start_frame_idx": 2})
    notes = "Many objects, of which some are dropped since they are not detected or detected twice."
    yield tracked("dropped-objects", made(4, **few, **many), SIZE, calls, notes)
    kept = {"det_nms_thresh": 0.0, "assoc_iou_thresh": 0.7, "trk_assoc_iou_thresh": 0.75, "hotstart_delay": 0, "max_num_objects": 4}
    kept |= {"suppress_unmatched_only_within_hotstart": False, "init_trk_keep_alive": 1, "max_trk_keep_alive": 2, "fill_hole_area": 9}
    kept |= {"recondition_on_trk_masks": False, "recondition_every_nth_frame": 1, "high_conf_thresh": 0.1}
    kept |= {"suppress_overlapping_based_on_recent_occlusion_threshold": 0.5}
    notes = "Backwards and forwards without waiting; no more than four objects, hidden where they are not detected for long."
    yield tracked("hidden-objects", made(6, **(many | kept)), SIZE, ({"reverse": True, "start_frame_idx": 5}, {}), notes)
