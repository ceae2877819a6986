"""GroupViT: groups of patches, and where texts are on an image."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from transformers import CLIPImageProcessorPil, GroupViTConfig

from weft_reference import stores
from weft_reference.byte_pairs import clip_tokenizer, vocabulary
from weft_reference.cases import Case, Store
from weft_reference.models import clip_text, clip_vision
from weft_reference.tasks import Call
from weft_reference.vision_tasks import VisionTaskCase

POSITIONS = 48
VISION = {
    "hidden_size": 12,
    "intermediate_size": 20,
    "num_attention_heads": 3,
    "depths": [2, 1, 1],
    "num_group_tokens": [6, 3, 0],
    "num_output_groups": [6, 3, 3],
    "image_size": 32,
    "patch_size": 8,
}


def config(text: dict[str, Any] | None = None, vision: dict[str, Any] | None = None, **changes: Any) -> GroupViTConfig:
    sizes = clip_text.sizes(**(text or {}))
    sizes.pop("projection_dim")
    made = {"projection_dim": 10, "projection_intermediate_dim": 14}
    return GroupViTConfig(text_config=sizes, vision_config=VISION | (vision or {}), **(made | changes))


def goldens() -> Iterator[Case | VisionTaskCase]:
    def one(name: str, notes: str, store: Store | None = None, **changes: Any) -> Case:
        made = config(**changes)
        inputs = clip_text.texts((9, 6, 4)) | clip_vision.images(made.vision_config)
        return Case(f"groupvit/{name}", "GroupViTModel", made, inputs, notes, store)

    yield one("base", "Two images, three texts.")
    yield one("segmentation", "The similarity of each pixel to texts.", output_segmentation=True)
    two = {"depths": [1, 2], "num_group_tokens": [4, 2], "num_output_groups": [4, 2], "hidden_act": "relu", "assign_eps": 0.5, "assign_mlp_ratio": [1.0, 2.0]}
    yield one("two-stages", "Groups of groups at last; other functions and widths.", vision=two, output_segmentation=True)
    yield one("file", "model.safetensors as save_pretrained writes it.", store=stores.whole)
    size = len(vocabulary())
    text = {"vocab_size": size, "bos_token_id": size - 2, "eos_token_id": size - 1, "pad_token_id": size - 1, "max_position_embeddings": POSITIONS}
    labels = ["a red disc", "blue bars", "A cat's tail, and more of it!"]
    edge = {"height": 32, "width": 32}
    yield VisionTaskCase(
        "groupvit/tasks/zero-shot-image-classification",
        "zero-shot-image-classification",
        "GroupViTModel",
        config(text),
        CLIPImageProcessorPil(size={"shortest_edge": 32}, crop_size=edge),
        (Call("rgb.png", {"candidate_labels": labels}), Call(["tall.png", "oriented.png"], {"candidate_labels": labels[:2]})),
        "One picture and several, labels of several lengths.",
        clip_tokenizer(POSITIONS),
    )
