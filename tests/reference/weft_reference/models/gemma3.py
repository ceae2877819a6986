"""Gemma 3 with images: means of squares of patches, whose tokens see each other, within windows and without."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from transformers import Gemma3Config, PreTrainedConfig

from weft_reference import stores
from weft_reference.cases import Case, Store
from weft_reference.inputs import floats, text_batch
from weft_reference.models.llava import texts
from weft_reference.vision_tasks import VisionTaskCase
from weft_reference.vision_tasks.llava import soft_tokens, vocab_size

IMAGE = 90
MODELS = ROOTS = ("gemma3",)


def config(
    text: dict[str, Any] | None = None,
    vision: dict[str, Any] | None = None,
    of: type[PreTrainedConfig] = Gemma3Config,
    **changes: Any,
) -> PreTrainedConfig:
    sizes = {
        "vocab_size": 99,
        "hidden_size": 16,
        "intermediate_size": 24,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 6,
        "query_pre_attn_scalar": 250,
        "sliding_window": 5,
        "layer_types": ["sliding_attention", "full_attention"],
        "max_position_embeddings": 64,
        "pad_token_id": 0,
    }
    seen = {
        "hidden_size": 12,
        "intermediate_size": 18,
        "num_hidden_layers": 2,
        "num_attention_heads": 3,
        "image_size": 16,
        "patch_size": 4,
        "vision_use_head": False,
    }
    return of(
        text_config=sizes | (text or {}),
        vision_config=seen | (vision or {}) | {"model_type": "siglip_vision_model"},
        **({"image_token_index": IMAGE, "mm_tokens_per_image": 4} | changes),
    )


def case(
    name: str,
    head: str,
    notes: str,
    places: list[list[int]],
    padding: str = "left",
    store: Store | None = None,
    path: str = "gemma3",
    prefix: str = "Gemma3",
    **changes: Any,
) -> Case:
    chosen = config(**changes)
    images, each = sum(map(len, places)), chosen.mm_tokens_per_image
    inputs = texts(places, [each] * images, padding)
    size = chosen.vision_config.image_size
    pixels = {"pixel_values": floats("pixels", (images, 3, size, size), -2.0, 2.0)}
    kinds = {"token_type_ids": (inputs["input_ids"] == IMAGE).astype(np.int64)}
    return Case(f"{path}/{name}", f"{prefix}{head}", chosen, inputs | pixels, notes, store, told=kinds)


def goldens() -> Iterator[Case | VisionTaskCase]:
    writer = "ForConditionalGeneration"
    yield case("base", "Model", "Two texts with an image each, one of them at its beginning.", [[2], [0]])
    alone = text_batch(IMAGE, (7, 4), "left", key="gemma3")
    del alone["token_type_ids"]
    yield Case("gemma3/text-alone", f"Gemma3{writer}", config(), alone, "Two texts without images.")
    notes = "Two images in the first text, one in the second, which is padded on the {}."
    yield case("two-images", writer, notes.format("left"), [[1, 8], [2]])
    yield case("padded-right", writer, notes.format("right"), [[1, 8], [2]], "right")
    whole = {"image_size": 8}
    yield case(
        "every-patch",
        writer,
        "As many tokens as patches, in a window of three.",
        [[1], [3]],
        vision=whole,
        text={"sliding_window": 3},
    )
    untied = {"tie_word_embeddings": False}
    yield case("untied", writer, "Scores of tokens have a table of their own.", [[2], [1]], **untied, text=untied)
    yield case(
        "file",
        writer,
        "model.safetensors as save_pretrained writes it.",
        [[2], [1]],
        store=stores.whole,
        text={"num_hidden_layers": 1, "layer_types": ["sliding_attention"]},
    )
    headed = {"vision_use_head": True}
    yield case("unused-head", writer, "The vision model has a head that is not used.", [[2], [1]], vision=headed)
    small = {"vocab_size": vocab_size() + 2, "max_position_embeddings": 200}
    yield from soft_tokens(config(text=small, image_token_index=vocab_size() + 1))
