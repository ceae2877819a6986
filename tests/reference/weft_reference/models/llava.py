"""LLaVA: images in the places of tokens, one or two a text, by every choice of layer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from transformers import LlavaConfig

from weft_reference import stores
from weft_reference.cases import Case, Store
from weft_reference.inputs import floats, text_batch
from weft_reference.models import clip_vision
from weft_reference.vision_tasks import VisionTaskCase
from weft_reference.vision_tasks.llava import tasks, vocab_size

IMAGE = 90


def text_sizes(**changes: Any) -> dict[str, Any]:
    tiny = {
        "model_type": "llama",
        "vocab_size": 99,
        "hidden_size": 16,
        "intermediate_size": 20,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 64,
    }
    return tiny | changes


def vision_sizes(**changes: Any) -> dict[str, Any]:
    sizes = {"hidden_size": 12, "num_attention_heads": 3, "num_hidden_layers": 3, "image_size": 8}
    return clip_vision.sizes(**(sizes | changes)) | {"model_type": "clip_vision_model"}


def config(text: dict[str, Any] | None = None, vision: dict[str, Any] | None = None, **changes: Any) -> LlavaConfig:
    return LlavaConfig(
        text_config=text_sizes(**(text or {})),
        vision_config=vision_sizes(**(vision or {})),
        **({"image_token_index": IMAGE, "image_seq_length": 4} | changes),
    )


def texts(places: list[list[int]], features: list[int], padding: str = "left") -> dict[str, np.ndarray]:
    """Texts with the features of images, so many each, from the given positions on; shorter ones are padded."""
    counts = iter(features)
    blocks = [[(place, next(counts)) for place in row] for row in places]
    lengths = [7 + sum(count for _, count in row) for row in blocks]
    batch = text_batch(IMAGE, tuple(lengths), padding, key="llava")
    ids, mask = batch["input_ids"], batch["attention_mask"]
    for row, images in enumerate(blocks):
        seen = np.flatnonzero(mask[row])
        for place, count in images:
            ids[row, seen[place : place + count]] = IMAGE
    return {"input_ids": ids, "attention_mask": mask}


def case(
    name: str,
    head: str,
    notes: str,
    inputs: dict[str, np.ndarray],
    images: int = 2,
    store: Store | None = None,
    **changes: Any,
) -> Case:
    chosen = config(**changes)
    size = chosen.vision_config.image_size
    pixels = floats("pixels", (images, chosen.vision_config.num_channels, size, size), -2.0, 2.0)
    return Case(f"llava/{name}", f"Llava{head}", chosen, inputs | {"pixel_values": pixels}, notes, store)


def goldens() -> Iterator[Case | VisionTaskCase]:
    one = texts([[2], [1]], [4, 4])
    yield case("base", "Model", "Two texts with an image each.", one)
    yield case("next-token", "ForConditionalGeneration", "Two texts with an image each.", one)
    alone = text_batch(IMAGE, (7, 4), "left", key="llava")
    del alone["token_type_ids"]
    for name, head in (("text-base", "Model"), ("text-alone", "ForConditionalGeneration")):
        yield Case(f"llava/{name}", f"Llava{head}", config(), alone, "Two texts without images.")
    yield case(
        "two-images",
        "ForConditionalGeneration",
        "Two images in the first text, one in the second, which is padded on the left.",
        texts([[1, 8], [2]], [4, 4, 4]),
        3,
    )
    yield case(
        "padded-right",
        "ForConditionalGeneration",
        "Two images in the first text, one in the second, which is padded on the right.",
        texts([[1, 5], [2]], [4, 4, 4], "right"),
        3,
    )
    yield case(
        "last-layer",
        "ForConditionalGeneration",
        "The vision model's last layer with the class token; no biases in the projector, tied embeddings.",
        texts([[2], [1]], [5, 5]),
        vision_feature_layer=-1,
        vision_feature_select_strategy="full",
        multimodal_projector_bias=False,
        projector_hidden_act="relu",
        text={"tie_word_embeddings": True},
    )
    yield case("first-layer", "ForConditionalGeneration", "What goes into the second layer.", one, vision_feature_layer=1)
    yield case(
        "file",
        "ForConditionalGeneration",
        "model.safetensors as save_pretrained writes it, under the names of published checkpoints.",
        one,
        store=stores.whole,
        text={"num_hidden_layers": 1},
        vision={"num_hidden_layers": 2},
    )
    small = {"vocab_size": vocab_size(), "max_position_embeddings": 200}
    yield from tasks("llava", config(text=small, image_token_index=vocab_size() - 1), tiles=False)
