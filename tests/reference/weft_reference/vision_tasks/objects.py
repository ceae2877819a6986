"""What texts say, and where it is in pictures: the task of OWL-ViT and its like."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import torch
import transformers
from transformers import DetrImageProcessorPil, PreTrainedConfig, PreTrainedModel
from transformers.models.omdet_turbo import modeling_omdet_turbo, processing_omdet_turbo

from weft_reference.byte_pairs import clip_tokenizer
from weft_reference.tasks import Answer, Call
from weft_reference.vision_tasks import TOO_CLOSE_TO_A_PIXEL, VisionTaskCase, pipeline

LIKENESS = modeling_omdet_turbo.get_class_similarity
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


def suppressed(boxes: torch.Tensor, scores: torch.Tensor, labels: torch.Tensor, threshold: float) -> torch.Tensor:
    """`batched_nms` of torchvision: what is left when boxes are taken out that overlap a better one of their class by more."""
    kept: list[int] = []
    for index in scores.argsort(descending=True, stable=True).tolist():
        shares = [share(boxes[index], boxes[other]) for other in kept if labels[other] == labels[index]]
        if any(abs(one - threshold) < 1e-3 for one in shares):
            raise ValueError("two boxes overlap by nearly the threshold; choose another picture")
        if all(one <= threshold for one in shares):
            kept.append(index)
    return torch.tensor(kept, dtype=torch.long)


def share(one: torch.Tensor, other: torch.Tensor) -> float:
    low, high = torch.maximum(one[:2], other[:2]), torch.minimum(one[2:], other[2:])
    common = (high - low).clamp(min=0).prod()
    return float(common / ((one[2:] - one[:2]).prod() + (other[2:] - other[:2]).prod() - common))


def grounded(task: str, model: PreTrainedModel, folder: Path) -> Answer:
    """The processor's `post_process_grounded_object_detection`, in the form of the pipeline's answers, which has no such model; what
    texts become is written out here, for the processor takes torchvision."""
    images = DetrImageProcessorPil.from_pretrained(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    processing_omdet_turbo.batched_nms = suppressed

    def one(path: str, candidate_labels: list[str], threshold: float = 0.1, top_k: int | None = None) -> list[dict[str, Any]]:
        image = transformers.image_utils.load_image(path)
        given = {"pixel_values": images(images=[image], return_tensors="pt")["pixel_values"]}
        for name, texts in (("classes", candidate_labels), ("tasks", [f"Detect {', '.join(candidate_labels)}."])):
            encoded = tokenizer(texts, padding="max_length", max_length=model.config.text_config.max_position_embeddings, return_tensors="pt")
            given |= {f"{name}_{what}": encoded[what] for what in ("input_ids", "attention_mask")}
        with mock.patch.object(modeling_omdet_turbo, "get_class_similarity", wraps=modeling_omdet_turbo.get_class_similarity) as alike:
            positions = []
            alike.side_effect = lambda *given: positions.append(LIKENESS(*given)) or positions[-1]
            outputs = model(**given, classes_structure=torch.tensor([len(candidate_labels)]))
        ranked = positions[0].max(-1).values[0].sort(descending=True).values
        last = model.config.num_queries
        if ranked[last - 1] - ranked[last] < 1e-4 * ranked.abs().max():
            raise ValueError(f"{path}: the last position that is taken is too close to the next; choose another picture")
        if ((outputs.decoder_class_logits.sigmoid() - threshold).abs() < 1e-4).any():
            raise ValueError(f"{path}: a score is too close to the threshold; choose another")
        # The processor itself, without its files.
        post = processing_omdet_turbo.OmDetTurboProcessor.post_process_grounded_object_detection
        found = post(None, outputs, [candidate_labels], threshold, target_sizes=[(image.height, image.width)])[0]
        if (found["scores"].diff().abs() < 1e-4).any():
            raise ValueError(f"{path}: two scores are too close; choose another picture")
        if ((found["boxes"] - found["boxes"].round()).abs() < TOO_CLOSE_TO_A_PIXEL).any():
            inner = (found["boxes"] > 0) & (found["boxes"] < torch.tensor([image.width, image.height] * 2))
            if ((found["boxes"] - found["boxes"].round()).abs()[inner] < TOO_CLOSE_TO_A_PIXEL).any():
                raise ValueError(f"{path}: a box is too close to a whole pixel; choose another picture")
        edges = ("xmin", "ymin", "xmax", "ymax")
        every = zip(found["scores"].tolist(), found["text_labels"], found["boxes"].int().tolist(), strict=True)
        return [{"score": score, "label": label, "box": dict(zip(edges, box, strict=True))} for score, label, box in every][:top_k]

    def answer(inputs: Any, parameters: dict[str, Any]) -> Any:
        return [one(path, **parameters) for path in inputs] if isinstance(inputs, list) else one(inputs, **parameters)

    return answer


def of_task(model: str, model_class: str, config: PreTrainedConfig, edge: int, positions: int, threshold: float) -> VisionTaskCase:
    """Classes, and a task that names them all, by a checkpoint whose images are squares."""
    everything = {"candidate_labels": TEXTS, "threshold": 0.0}
    return VisionTaskCase(
        f"{model}/tasks/zero-shot-object-detection",
        "zero-shot-object-detection",
        model_class,
        config,
        DetrImageProcessorPil(size={"height": edge, "width": edge}, do_pad=False),
        (
            Call("rgb.png", everything),
            Call(["wide.png", "oriented.png"], {"candidate_labels": TEXTS[:2], "threshold": threshold}),
            Call("grey.png", everything | {"top_k": 3}),
            Call("rgb.png", {"candidate_labels": TEXTS[:1]}),
        ),
        "One picture and several; all boxes, some, the best, and the usual threshold.",
        clip_tokenizer(positions),
        answers=grounded,
    )
