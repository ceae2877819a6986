"""Fuyu: Persimmon whose image tokens are patches through a linear layer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any

from transformers import FuyuConfig

from weft_reference import stores
from weft_reference.cases import Case
from weft_reference.inputs import floats, text_batch
from weft_reference.models.llava import IMAGE, texts
from weft_reference.models.vision_language.family import spread
from weft_reference.vision_tasks import VisionTaskCase, image_readers

TEXT: dict[str, Any] = {
    "model_type": "persimmon",
    "vocab_size": 99,
    "hidden_size": 32,
    "intermediate_size": 20,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "max_position_embeddings": 128,
    "pad_token_id": 0,
    "partial_rotary_factor": 0.5,
}


def config(text: dict[str, Any] | None = None, **changes: Any) -> FuyuConfig:
    return FuyuConfig(text_config=TEXT | (text or {}), patch_size=2, image_token_id=IMAGE, **changes)


def case(name: str, notes: str, places: list[list[int]], padding: str = "left", store: Any = None, **changes: Any) -> Case:
    chosen, patches = config(**changes), 5
    features = [patches] * sum(map(len, places))
    inputs = texts(spread(places, features), features, padding)
    values = chosen.patch_size**2 * chosen.num_channels
    inputs |= {"pixel_values": floats(f"pixels.{name}", (len(features), patches, values), -2.0, 2.0)}
    return Case(f"fuyu/{name}", "FuyuForCausalLM", chosen, inputs, notes, store)


def goldens() -> Iterator[Case | VisionTaskCase]:
    yield case("next-token", "Two texts with an image each.", [[2], [1]])
    alone = text_batch(IMAGE, (7, 4), "left", key="fuyu")
    del alone["token_type_ids"]
    yield Case("fuyu/text-alone", "FuyuForCausalLM", config(), alone, "Two texts without images, one padded on the left.")
    yield case("two-images", "Two images in the first text, one in the second, padded on the left.", [[1, 4], [2]])
    yield case("padded-right", "The same, padded on the right.", [[1, 4], [2]], "right")
    plain = {"qk_layernorm": False, "partial_rotary_factor": 0.25}
    yield case("plain", "No norms of queries and keys, a quarter of a head turns; tied.", [[2], [1]], text=plain, tie_word_embeddings=True)
    yield case("file", "model.safetensors as save_pretrained writes it.", [[2], [1]], store=stores.whole)
    yield from image_readers.fuyu(config)


def random_case(rng: Random, path: str) -> Case:
    """Other widths, layers and heads."""
    heads = rng.choice((1, 2, 4))
    text = {"num_attention_heads": heads, "hidden_size": heads * 16, "num_hidden_layers": rng.randint(1, 3)}
    changes = {"text": text, "tie_word_embeddings": rng.random() < 0.5, "num_channels": rng.choice((1, 3))}
    drawn = case("random", "Drawn at random.", [[1], [0], [2, 3]][: rng.randint(1, 3)], rng.choice(("left", "right")), stores.whole, **changes)
    return replace(drawn, path=path)


DRAWN = {"fuyu": random_case}
