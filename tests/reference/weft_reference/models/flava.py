"""FLAVA: encoders of images, of texts and of both."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import numpy as np
import transformers

from weft_reference import stores
from weft_reference.cases import Case, Store
from weft_reference.inputs import Padding, floats, text_batch

TEXT: dict[str, Any] = {
    "vocab_size": 99,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 24,
    "max_position_embeddings": 40,
}
IMAGE: dict[str, Any] = {
    "hidden_size": 12,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "intermediate_size": 20,
    "image_size": 12,
    "patch_size": 4,
    "vocab_size": 30,
}
BOTH: dict[str, Any] = {"hidden_size": 20, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 28}


def config(text: dict[str, Any] | None = None, image: dict[str, Any] | None = None, both: dict[str, Any] | None = None) -> transformers.FlavaConfig:
    return transformers.FlavaConfig(
        text_config=TEXT | (text or {}), image_config=IMAGE | (image or {}), multimodal_config=BOTH | (both or {}), hidden_size=20, projection_dim=10
    )


def inputs(chosen: Any, key: str, lengths: tuple[int, ...] = (9, 6), padding: Padding = "right", image: bool = True) -> dict[str, np.ndarray]:
    made = text_batch(chosen.text_config.vocab_size, lengths, padding, 2, 0, key)
    if image:
        size = chosen.image_config.image_size
        made["pixel_values"] = floats(key, (len(lengths), 3, size, size), -2.0, 2.0)
    return made


def case(name: str, notes: str, chosen: Any, given: dict[str, np.ndarray] | None = None, store: Store | None = None) -> Case:
    return Case(f"flava/{name}", "FlavaModel", chosen, inputs(chosen, name) if given is None else given, notes, store)


def goldens() -> Iterator[Case]:
    yield case("base", "Two texts, the second padded, with an image each.", config())
    yield case("text-only", "Texts alone, padded on the left.", config(), inputs(config(), "text", padding="left", image=False))
    bare = {name: value for name, value in inputs(config(), "bare").items() if name in ("input_ids", "pixel_values")}
    yield case("no-mask", "No mask.", config(), bare)
    other = {"qkv_bias": False, "hidden_act": "relu", "layer_norm_eps": 0.01}
    yield case("no-class-token", "No class token before both, no mask token, no biases, other functions.", config(other, other | {"mask_token": False}, other | {"use_cls_token": False}))
    small = config(image={"num_hidden_layers": 1})
    written = {"image_config": {"model_type": "flava_image_model"}, "image_config_dict": small.image_config.to_dict()}
    notes = "The image configuration as `image_config_dict`, which goes before `image_config`."
    yield Case("flava/config-dict", "FlavaModel", small, inputs(small, "dict"), notes, written=written)
    yield case("file", "model.safetensors as save_pretrained writes it.", config(), store=stores.whole)


def random_case(rng: Random, path: str) -> Case:
    def sides() -> dict[str, Any]:
        heads = rng.choice((1, 2, 3))
        return {
            "hidden_size": heads * rng.randint(3, 12),
            "num_attention_heads": heads,
            "num_hidden_layers": rng.randint(1, 3),
            "intermediate_size": rng.randint(8, 60),
            "qkv_bias": rng.random() < 0.5,
        }

    patch = rng.randint(2, 6)
    image = {"patch_size": patch, "image_size": patch * rng.randint(1, 4) + rng.randrange(patch)}
    chosen = config(sides() | {"vocab_size": rng.randint(30, 200)}, sides() | image, sides() | {"use_cls_token": rng.random() < 0.7})
    lengths = tuple(sorted((rng.randint(1, 30) for _ in range(rng.randint(1, 4))), reverse=True))
    given = inputs(chosen, path, lengths, rng.choice(("right", "left")), rng.random() < 0.8)
    return Case(path, "FlavaModel", chosen, given, "Drawn at random.", stores.whole)
