"""SigLIP's tasks: pictures against labels of the caller's own, each judged for itself, and
classes of pictures."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from transformers import SiglipConfig

from weft_reference.models import siglip_text, siglip_vision
from weft_reference.pieces import pieces, siglip_tokenizer
from weft_reference.tasks import Call
from weft_reference.vision_tasks import VisionTaskCase

# What the reference's pipeline fills texts up to.
LENGTH = 64

def config(**changes: Any) -> SiglipConfig:
    return SiglipConfig(
        text_config=siglip_text.sizes(vocab_size=len(pieces()), max_position_embeddings=LENGTH),
        vision_config=siglip_vision.sizes(),
        **changes,
    )


def tasks() -> Iterator[VisionTaskCase]:
    labels = ["a red disc", "blue bars", "A cat's tail, and more of it!"]
    long = "the weaver throws the weft across the warp and " * 4
    yield VisionTaskCase(
        "siglip/tasks/zero-shot-image-classification",
        "zero-shot-image-classification",
        "SiglipModel",
        config(),
        siglip_vision.processor(),
        (
            Call("rgb.png", {"candidate_labels": labels}),
            Call(["tall.png", "oriented.png"], {"candidate_labels": labels[:2], "hypothesis_template": "{}"}),
            Call("grey.png", {"candidate_labels": labels, "hypothesis_template": "A weaver's picture: {}!"}),
            Call("rgb.png", {"candidate_labels": ["cloth"]}),
            Call("wide.png", {"candidate_labels": [long, "cloth"]}),
        ),
        "Scores that are each for itself; labels of several lengths, one longer than what is read of it.",
        siglip_tokenizer(),
    )
    yield VisionTaskCase(
        "siglip/tasks/image-classification",
        "image-classification",
        "SiglipForImageClassification",
        config(num_labels=4),
        siglip_vision.processor(),
        (Call("rgb.png"), Call(["tall.png", "wide.png"], {"top_k": 2})),
        "One picture and several.",
    )
