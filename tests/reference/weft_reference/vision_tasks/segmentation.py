"""Segments of pictures: labels, scores and masks, the masks as run lengths down their columns (COCO's, uncompressed)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from torch.nn.functional import interpolate
from transformers import PreTrainedConfig, PreTrainedModel

from weft_reference.tasks import Answer, Call
from weft_reference.vision_tasks import VisionTaskCase, pipeline

LABELS = ["warp", "weft", "loom", "shuttle"]
# Two labels or queries closer than this, relative to the largest number, could change places at a pixel.
TOO_CLOSE = 5e-6


def counts(mask: np.ndarray) -> list[int]:
    """The lengths of runs down one column after the other, outside of the mask first."""
    flat = mask.astype(bool).T.reshape(-1)
    changes = np.flatnonzero(np.diff(np.concatenate([[False], flat])))
    return np.diff(np.concatenate([[0], changes, [flat.size]])).tolist()


def encoded(segments: list[dict[str, Any]]) -> list[dict[str, Any]]:
    def one(segment: dict[str, Any]) -> dict[str, Any]:
        mask = np.asarray(segment["mask"])
        return {"score": segment["score"], "label": segment["label"], "mask": {"size": list(mask.shape), "counts": counts(mask)}}

    return [one(segment) for segment in segments]


def refuse_near_ties(maps: torch.Tensor, what: str) -> None:
    """`maps` `[candidates, height, width]`: the best at each pixel must be the best by far."""
    if len(maps) > 1:
        best = maps.topk(2, dim=0).values
        if (best[0] - best[1]).min() < TOO_CLOSE * max(1.0, float(maps.abs().max())):
            raise ValueError(f"{what}: two candidates are too close at a pixel; choose another configuration")


def by_labels(model: PreTrainedModel, inputs: Any, size: tuple[int, int], what: str) -> None:
    logits = model(**inputs).logits
    refuse_near_ties(interpolate(logits, size=size, mode="bilinear", align_corners=False)[0], what)


def careful(task: str, model: PreTrainedModel, folder: Path) -> Answer:
    """The pipeline, where each pixel's label is clear."""
    inner = pipeline(task, model, folder)
    processor = transformers.AutoImageProcessor.from_pretrained(folder)

    def answer(inputs: Any, parameters: dict[str, Any]) -> Any:
        for path in inputs if isinstance(inputs, list) else [inputs]:
            image = transformers.image_utils.load_image(path)
            by_labels(model, processor(images=[image], return_tensors="pt"), (image.height, image.width), path)
        found = inner(inputs, parameters)
        return [encoded(segments) for segments in found] if isinstance(inputs, list) else encoded(found)

    return answer


def semantic(
    model: str, model_class: str, config: PreTrainedConfig, processor: Any, labels: Sequence[str] = LABELS
) -> VisionTaskCase:
    """`config` is a tiny one, which gets `labels`."""
    config.id2label = dict(enumerate(labels))
    config.label2id = {name: index for index, name in enumerate(labels)}
    return VisionTaskCase(
        f"{model}/tasks/image-segmentation",
        "image-segmentation",
        model_class,
        config,
        processor,
        (Call("rgb.png"), Call(["tall.png", "wide.png", "oriented.png"], {"subtask": "semantic"})),
        "One picture and several, upright and wide.",
        answers=careful,
    )


def queries(outputs: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """Of an image, the logits of labels and the probabilities of masks, whatever the model calls them."""
    return outputs.logits[0], outputs.pred_masks[0].sigmoid()


def careful_queries(task: str, model: PreTrainedModel, folder: Path) -> Answer:
    """The pipeline, where each pixel's query is clear, and no score and no part of a mask is near its threshold."""
    inner = pipeline(task, model, folder)
    processor = transformers.AutoImageProcessor.from_pretrained(folder)

    def check(path: str, threshold: float = 0.9, mask_threshold: float = 0.5, overlap_mask_area_threshold: float = 0.5) -> None:
        image = transformers.image_utils.load_image(path)
        labels, masks = queries(model(**processor(images=[image], return_tensors="pt")))
        scores, classes = labels.softmax(-1).max(-1)
        if ((scores - threshold).abs() < 1e-4).any():
            raise ValueError(f"{path}: a score is too close to the threshold; choose another")
        kept = (scores > threshold) & (classes < labels.shape[-1] - 1)
        if not kept.any():
            return
        size = (image.height, image.width)
        maps = interpolate(masks[kept][None], size=size, mode="bilinear", align_corners=False)[0] * scores[kept][:, None, None]
        refuse_near_ties(maps, path)
        found = maps.argmax(0)
        for index, own in enumerate((maps >= mask_threshold).sum((1, 2)).tolist()):
            if own and abs(int((found == index).sum()) / own - overlap_mask_area_threshold) < 5e-3:
                raise ValueError(f"{path}: an overlap is too close to the threshold; choose another")

    def answer(inputs: Any, parameters: dict[str, Any]) -> Any:
        options = {name: value for name, value in parameters.items() if name != "subtask"}
        for path in inputs if isinstance(inputs, list) else [inputs]:
            check(path, **options)
        found = inner(inputs, parameters)
        return [encoded(segments) for segments in found] if isinstance(inputs, list) else encoded(found)

    return answer


def panoptic(model: str, model_class: str, config: PreTrainedConfig, processor: Any, threshold: float, part: float) -> VisionTaskCase:
    """Some of the scores are above `threshold`; masks count from `part` on."""
    config.id2label = dict(enumerate(LABELS))
    config.label2id = {name: index for index, name in enumerate(LABELS)}
    some = {"threshold": threshold, "mask_threshold": part, "overlap_mask_area_threshold": 0.2}
    return VisionTaskCase(
        f"{model}/tasks/image-segmentation",
        "image-segmentation",
        model_class,
        config,
        processor,
        (
            Call("rgb.png", some),
            Call(["tall.png", "wide.png"], some | {"subtask": "instance"}),
            Call(["oriented.png"], {"subtask": "semantic"}),
            Call("rgb.png"),
        ),
        "Panoptic, instances, semantic; and the usual thresholds.",
        answers=careful_queries,
    )


def with_instances(inner: Answer, model: PreTrainedModel, folder: Path) -> Answer:
    """The pipeline, and instances of EoMT, to whose `post_process_instance_segmentation` the pipeline gives options that it has not."""
    processor = transformers.AutoImageProcessor.from_pretrained(folder)

    def answer(path: str, parameters: dict[str, Any]) -> Any:
        if parameters.get("subtask") != "instance" or not type(processor).__name__.startswith("Eomt"):
            return inner(path, parameters)
        image = transformers.image_utils.load_image(path)
        outputs = model(**processor(images=[image], return_tensors="pt"))
        found = processor.post_process_instance_segmentation(outputs, [(image.height, image.width)], parameters["threshold"])[0]
        of = [(segment, found["segmentation"] == segment["id"]) for segment in found["segments_info"]]
        return [{"score": s["score"], "label": model.config.id2label[s["label_id"]], "mask": mask.numpy()} for s, mask in of]

    return answer


def steady(task: str, model: PreTrainedModel, folder: Path) -> Answer:
    """The pipeline, where the same is found when the model's logits differ by a little."""
    inner = with_instances(pipeline(task, model, folder), model, folder)

    def disturbed(seed: int, inputs: Any, parameters: dict[str, Any]) -> Any:
        drawn = torch.Generator().manual_seed(seed)

        def noise(_: Any, __: Any, outputs: Any) -> Any:
            for name in ("class_queries_logits", "masks_queries_logits"):
                logits = outputs[name]
                shift = torch.rand(logits.shape, generator=drawn) * 2 - 1
                outputs[name] = logits + shift * TOO_CLOSE * max(1.0, float(logits.abs().max()))
            return outputs

        hook = model.register_forward_hook(noise)
        found = inner(inputs, parameters)
        hook.remove()
        return found

    def answer(inputs: Any, parameters: dict[str, Any]) -> Any:
        if isinstance(inputs, list):
            return [answer(one, parameters) for one in inputs]
        found = encoded(inner(inputs, parameters))
        for seed in range(4):
            again = encoded(disturbed(seed, inputs, parameters))
            if [(one["label"], one["mask"]) for one in again] != [(one["label"], one["mask"]) for one in found]:
                raise ValueError(f"{inputs}: what is found hangs on the last bits of logits; choose another configuration")
        return found

    return answer


def universal(
    model: str, model_class: str, config: PreTrainedConfig, processor: Any, some: dict[str, float], instance: float, **more: Any
) -> VisionTaskCase:
    """Of 70 labels, more than which the reference orders pairs of query and label by their scores; scores are small."""
    config.id2label = {index: f"label {index}" for index in range(70)}
    config.label2id = {name: index for index, name in config.id2label.items()}
    return VisionTaskCase(
        f"{model}/tasks/image-segmentation",
        "image-segmentation",
        model_class,
        config,
        processor,
        (
            Call("rgb.png", some),
            Call(["tall.png", "wide.png"], {"subtask": "instance", "threshold": instance}),
            Call(["oriented.png"], {"subtask": "semantic"}),
            Call("rgb.png"),
        ),
        "Panoptic, instances, semantic; and the usual thresholds.",
        answers=steady,
        **more,
    )
