"""LLaVA-NeXT: images of several sizes in tiles."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from transformers import LlavaNextConfig
from transformers.models.llava_next.modeling_llava_next import image_size_to_num_patches

from weft_reference import stores
from weft_reference.cases import Case, Store
from weft_reference.inputs import floats, text_batch
from weft_reference.models.llava import IMAGE, LANGUAGES, text_sizes, texts, vision_sizes
from weft_reference.vision_tasks import VisionTaskCase
from weft_reference.vision_tasks.llava import tasks, vocab_size

GRID = [[8, 16], [16, 8], [16, 16], [24, 8]]


def config(text: dict[str, Any] | None = None, vision: dict[str, Any] | None = None, **changes: Any) -> LlavaNextConfig:
    return LlavaNextConfig(
        text_config=text_sizes(**(text or {})),
        vision_config=vision_sizes(**(vision or {})),
        image_grid_pinpoints=GRID,
        **({"image_token_index": IMAGE, "image_seq_length": 4} | changes),
    )


def features(config: LlavaNextConfig, size: tuple[int, int]) -> int:
    """How many features an image of this height and width has."""
    from weft_reference.cases import ruled_model
    import torch

    model, _ = ruled_model("LlavaNextModel", config)
    vision = config.vision_config
    tiles = image_size_to_num_patches(list(size), GRID, vision.image_size)
    patches = (vision.image_size // vision.patch_size) ** 2
    rows = [torch.zeros(tiles, patches, config.text_config.hidden_size)]
    _, counts = model.pack_image_features(rows, torch.tensor([size]), "default", model.image_newline)
    return int(counts[0])


def case(
    name: str,
    head: str,
    notes: str,
    sizes: list[tuple[int, int]],
    places: list[list[int]],
    padding: str = "right",
    store: Store | None = None,
    **changes: Any,
) -> Case:
    chosen = config(**changes)
    vision = chosen.vision_config
    tiles = max(image_size_to_num_patches(list(size), GRID, vision.image_size) for size in sizes)
    shape = (len(sizes), tiles, vision.num_channels, vision.image_size, vision.image_size)
    inputs = texts(places, [features(chosen, size) for size in sizes], padding)
    inputs |= {"pixel_values": floats("tiles", shape, -2.0, 2.0), "image_sizes": np.array(sizes, np.int64)}
    return Case(f"llava_next/{name}", f"LlavaNext{head}", chosen, inputs, notes, store)


def goldens() -> Iterator[Case | VisionTaskCase]:
    wide, tall, square = (9, 30), (33, 11), (20, 20)
    yield case("base", "Model", "A wide image in one text, a tall one in the other.", [wide, tall], [[2], [1]])
    yield case(
        "next-token", "ForConditionalGeneration", "A square image in one text, a wide one in the other.", [square, wide], [[2], [1]]
    )
    alone = text_batch(IMAGE, (4, 7), "right", key="llava")
    del alone["token_type_ids"]
    for name, head in (("text-base", "Model"), ("text-alone", "ForConditionalGeneration")):
        yield Case(f"llava_next/{name}", f"LlavaNext{head}", config(), alone, "Two texts without images.")
    mistral = {"model_type": "mistral", "sliding_window": None}
    yield case("mistral", "ForConditionalGeneration", "Mistral's text.", [square, wide], [[2], [1]], text=mistral)
    yield case(
        "mistral-windows",
        "ForConditionalGeneration",
        "Mistral's text with a window shorter than it.",
        [square, wide],
        [[2], [1]],
        text=mistral | {"sliding_window": 6},
    )
    yield case(
        "gemma",
        "ForConditionalGeneration",
        "Gemma's text, whose own embeddings are tied: the head is not. Tiles through SigLIP, which has no class token.",
        [square, wide],
        [[2], [1]],
        text={"model_type": "gemma"} | LANGUAGES["gemma"],
        vision={"model_type": "siglip_vision_model"},
        vision_feature_select_strategy="full",
    )
    yield case(
        "two-images",
        "ForConditionalGeneration",
        "Two images of different sizes in the first text, one in the second, which is padded on the left.",
        [wide, square, tall],
        [[1, 16], [2]],
        "left",
    )
    yield case(
        "small-patches",
        "ForConditionalGeneration",
        "Patches small enough that borders are cut on all sides; heads without groups.",
        [(5, 30), (40, 9)],
        [[2], [1]],
        vision={"patch_size": 2},
        text={"num_key_value_heads": 4, "max_position_embeddings": 200},
        vision_feature_layer=-1,
    )
    yield case(
        "file",
        "ForConditionalGeneration",
        "model.safetensors as save_pretrained writes it, under the names of published checkpoints.",
        [wide, tall],
        [[2], [1]],
        store=stores.whole,
        text={"num_hidden_layers": 1},
        vision={"num_hidden_layers": 2},
    )
    small = {"vocab_size": vocab_size(), "max_position_embeddings": 200}
    yield from tasks("llava_next", config(text=small, image_token_index=vocab_size() - 1), tiles=True)
