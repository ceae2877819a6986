"""CLIP's tasks: pictures against labels of the caller's own, and classes of pictures."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from transformers import CLIPConfig, CLIPImageProcessorPil

from weft_reference.byte_pairs import clip_tokenizer, vocabulary
from weft_reference.models import clip_text, clip_vision
from weft_reference.tasks import Call
from weft_reference.vision_tasks import VisionTaskCase

POSITIONS = 48


def config(**changes: Any) -> CLIPConfig:
    size = len(vocabulary())
    text = {"vocab_size": size, "bos_token_id": size - 2, "eos_token_id": size - 1, "pad_token_id": size - 1}
    return CLIPConfig(
        text_config=clip_text.sizes(**text, max_position_embeddings=POSITIONS),
        vision_config=clip_vision.sizes(),
        **({"projection_dim": 10} | changes),
    )


def tasks() -> Iterator[VisionTaskCase]:
    edge = config().vision_config.image_size
    processor = CLIPImageProcessorPil(size={"shortest_edge": edge}, crop_size={"height": edge, "width": edge})
    labels = ["a red disc", "blue bars", "A cat's tail, and more of it!"]
    yield VisionTaskCase(
        "clip/tasks/zero-shot-image-classification",
        "zero-shot-image-classification",
        "CLIPModel",
        config(),
        processor,
        (
            Call("rgb.png", {"candidate_labels": labels}),
            Call(["tall.png", "oriented.png"], {"candidate_labels": labels[:2], "hypothesis_template": "{}"}),
            Call("grey.png", {"candidate_labels": labels, "hypothesis_template": "A weaver's picture: {}!"}),
            Call("rgb.png", {"candidate_labels": ["cloth"]}),
        ),
        "One picture and several, labels of several lengths, sentences of one's own.",
        clip_tokenizer(POSITIONS),
    )
    yield VisionTaskCase(
        "clip/tasks/image-classification",
        "image-classification",
        "CLIPForImageClassification",
        config(num_labels=4),
        processor,
        (Call("rgb.png"), Call(["tall.png", "wide.png"], {"top_k": 2})),
        "One picture and several.",
    )
