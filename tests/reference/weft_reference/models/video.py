"""Video classifiers, VideoMAE, TimeSformer and ViViT: tubelets of several sizes, attention over time and space."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import transformers
from PIL import Image, ImageSequence
from transformers import PreTrainedModel

from weft_reference import stores
from weft_reference.cases import Case, Store
from weft_reference.inputs import floats
from weft_reference.tasks import Answer, Call
from weft_reference.vision_tasks import VisionTaskCase

CLASSES = "ForVideoClassification"
KIN = {"videomae": "VideoMAE", "timesformer": "Timesformer", "vivit": "Vivit"}
MODELS = tuple(KIN)
ROOTS = MODELS
TINY: dict[str, Any] = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 24,
    "image_size": 12,
    "num_frames": 4,
}
OWN = {"videomae": {"patch_size": 4}, "timesformer": {"patch_size": 4}, "vivit": {"tubelet_size": [2, 4, 4]}}


def config(model: str, **changes: Any) -> transformers.PreTrainedConfig:
    return getattr(transformers, f"{KIN[model]}Config")(**(TINY | OWN[model] | changes))


def case(model: str, name: str, head: str, notes: str, store: Store | None = None, **changes: Any) -> Case:
    chosen = config(model, **changes)
    size = (2, chosen.num_frames, chosen.num_channels, chosen.image_size, chosen.image_size)
    return Case(f"{model}/{name}", KIN[model] + head, chosen, {"pixel_values": floats("video", size, -2.0, 2.0)}, notes, store)


def classified(_task: str, model: PreTrainedModel, folder: Path) -> Answer:
    """`VideoClassificationPipeline`, which reads videos by a package of its own."""
    processor = transformers.AutoImageProcessor.from_pretrained(folder)

    def one(path: str, top_k: int = 5, num_frames: int | None = None, frame_sampling_rate: int = 1) -> Any:
        count = num_frames or model.config.num_frames
        places = np.linspace(0, count * frame_sampling_rate - 1, num=count, dtype=np.int64)
        with Image.open(path) as image:
            frames = [frame.convert("RGB") for frame in ImageSequence.Iterator(image)]
        pixels = processor([frames[place] for place in places], return_tensors="pt")
        scores, ids = model(**pixels).logits[0].softmax(-1).topk(min(top_k, model.config.num_labels))
        pairs = zip(scores.tolist(), ids.tolist())
        return [{"score": score, "label": model.config.id2label[index]} for score, index in pairs]

    def answer(inputs: Any, parameters: dict[str, Any]) -> Any:
        return [one(path, **parameters) for path in inputs] if isinstance(inputs, list) else one(inputs, **parameters)

    return answer


def goldens() -> Iterator[Case | VisionTaskCase]:
    for model, prefix in KIN.items():
        yield case(model, "base", "Model", "Two videos.")
        yield case(model, "video-classification", CLASSES, "Three classes.", num_labels=3)
        yield case(model, "file", CLASSES, "model.safetensors as save_pretrained writes it.", stores.whole, num_labels=3)
        other = {"image_size": 15, "num_frames": 5, "num_channels": 1, "hidden_act": "relu", "layer_norm_eps": 1e-2}
        more = {"num_attention_heads": 4, "num_hidden_layers": 3}
        bias = "qv_bias" if model == "videomae" else "qkv_bias"
        yield case(model, "other-sizes", "Model", "Frames and edges that tubelets do not divide; no biases.", **other, **more, **{bias: False})
        yield from options(model)
        edge = {"height": 12, "width": 12}
        processor = transformers.VivitImageProcessor if model == "vivit" else transformers.VideoMAEImageProcessorPil
        labels = ["warp", "weft", "loom", "shuttle"]
        named = {"id2label": dict(enumerate(labels)), "label2id": {name: index for index, name in enumerate(labels)}}
        yield VisionTaskCase(
            f"{model}/tasks/video-classification",
            "video-classification",
            f"{prefix}{CLASSES}",
            config(model, num_frames=3 if model == "timesformer" else 4, **named),
            processor(size={"shortest_edge": 14}, crop_size=edge),
            (Call("animated.gif"), Call(["animated.gif"], {"top_k": 2}))
            + ((Call("animated.gif", {"frame_sampling_rate": 2}),) if model == "timesformer" else ()),
            "The first frames of a video.",
            answers=classified,
        )


def options(model: str) -> Iterator[Case]:
    if model == "videomae":
        yield case(model, "first-position", CLASSES, "Classes by the first position.", use_mean_pooling=False)
        yield case(model, "single-frames", "Model", "Tubelets of one frame; a final norm.", tubelet_size=1, use_mean_pooling=False)
    if model == "timesformer":
        for kind in ("space_only", "joint_space_time"):
            yield case(model, kind.replace("_", "-"), "Model", "Another attention.", attention_type=kind)
        yield case(model, "joint-classes", CLASSES, "Classes by attention over all positions.", attention_type="joint_space_time")
    if model == "vivit":
        yield case(model, "flat-tubelets", "Model", "Tubelets of one frame, higher than wide.", tubelet_size=[1, 4, 3], pooler_output_size=6)
