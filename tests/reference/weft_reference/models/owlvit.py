"""OWL-ViT and OWLv2: boxes of what texts say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import transformers
from transformers import PreTrainedConfig

from weft_reference import stores
from weft_reference.cases import Case, Store
from weft_reference.byte_pairs import vocabulary
from weft_reference.models import clip_text, clip_vision
from weft_reference.vision_tasks import VisionTaskCase
from weft_reference.vision_tasks.objects import tasks

MODELS = ("owlvit", "owlv2")
POSITIONS = 24


def config(prefix: str, text: dict[str, Any] | None = None, vision: dict[str, Any] | None = None, **changes: Any) -> PreTrainedConfig:
    sizes = [clip_text.sizes(**(text or {})), clip_vision.sizes(**({"hidden_size": 12, "num_attention_heads": 3} | (vision or {})))]
    for size in sizes:
        size.pop("projection_dim")
    # Texts are compared in the text model's width.
    made = {"projection_dim": sizes[0]["hidden_size"]} | changes
    return getattr(transformers, f"{prefix}Config")(text_config=sizes[0], vision_config=sizes[1], **made)


def goldens() -> Iterator[Case | VisionTaskCase]:
    for model, prefix in (("owlvit", "OwlViT"), ("owlv2", "Owlv2")):
        yield from family(model, prefix)
        size = len(vocabulary())
        text = {"vocab_size": size, "bos_token_id": size - 2, "eos_token_id": size - 1, "pad_token_id": size - 1, "max_position_embeddings": POSITIONS}
        yield from tasks(model, prefix, config(prefix, text), POSITIONS, 0.5)


def family(model: str, prefix: str) -> Iterator[Case]:
    def one(name: str, head: str, notes: str, lengths: tuple[int, ...] = (9, 6, 5, 7), store: Store | None = None, **changes: Any) -> Case:
        made = config(prefix, **changes)
        inputs = clip_text.texts(lengths, pad=0) | clip_vision.images(made.vision_config)
        if name == "padded":
            inputs["input_ids"][1] = 0
        return Case(f"{model}/{name}", f"{prefix}{head}", made, inputs, notes, store)

    detection = "ForObjectDetection"
    yield one("base", "Model", "Two images, three texts.", (9, 6, 4))
    yield one("detection", detection, "Two images, two texts of each.")
    yield one("padded", detection, "A text that begins with padding is none.")
    yield one("one-text", detection, "A text of each image; other functions.", (8, 8), vision={"hidden_act": "gelu", "layer_norm_eps": 0.01, "image_size": 16})
    yield one("file", detection, "model.safetensors as save_pretrained writes it.", store=stores.whole)
