"""GIT: an image before each text, without tokens of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any

from transformers import GitConfig

from weft_reference import stores
from weft_reference.cases import Case, Store
from weft_reference.inputs import floats, text_batch
from weft_reference.vision_tasks import VisionTaskCase, image_readers

MODELS = ROOTS = ("git",)


def config(vision: dict[str, Any] | None = None, **changes: Any) -> GitConfig:
    tiny = {
        "vocab_size": 61,
        "hidden_size": 16,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "intermediate_size": 20,
        "max_position_embeddings": 24,
    }
    tiny_vision = {
        "hidden_size": 12,
        "intermediate_size": 18,
        "num_hidden_layers": 2,
        "num_attention_heads": 3,
        "image_size": 12,
        "patch_size": 4,
    }
    return GitConfig(vision_config=tiny_vision | (vision or {}), **(tiny | changes))


def case(name: str, notes: str, lengths: tuple[int, ...] = (7, 4), store: Store | None = None, **changes: Any) -> Case:
    """Texts padded on the right; of the reference's logits those of the texts."""
    chosen, size = config(**changes), (changes.get("vision") or {}).get("image_size", 12)
    inputs = text_batch(chosen.vocab_size, lengths, "right", key="git")
    del inputs["token_type_ids"]
    pixels = floats(f"pixels.{name}", (len(lengths), chosen.vision_config.num_channels, size, size), -2.0, 2.0)
    told = {"logits_to_keep": max(lengths)}
    return Case(f"git/{name}", "GitForCausalLM", chosen, inputs | {"pixel_values": pixels}, notes, store, forward=told)


def goldens() -> Iterator[Case | VisionTaskCase]:
    yield case("next-token", "Two texts behind an image each.")
    yield case("smaller", "One patch; other activation functions.", vision={"image_size": 4, "hidden_act": "gelu"}, hidden_act="relu", layer_norm_eps=1e-3)
    yield case("tied", "Scores of tokens share the table of embeddings.", (9, 2, 5), tie_word_embeddings=True)
    yield case("file", "model.safetensors as save_pretrained writes it.", store=stores.whole)
    yield from image_readers.git(config)


def random_case(rng: Random, path: str) -> Case:
    """Other widths, layers and heads."""
    heads, towers = rng.choice((1, 2, 4)), rng.choice((1, 2, 4))
    vision = {"num_attention_heads": towers, "hidden_size": towers * 6, "num_hidden_layers": rng.randint(1, 3), "image_size": rng.choice((8, 16))}
    changes = {"num_attention_heads": heads, "hidden_size": heads * 8, "num_hidden_layers": rng.randint(1, 4), "intermediate_size": rng.randint(9, 40)}
    drawn = case("random", "Drawn at random.", (rng.randint(5, 12), 4), stores.whole, vision=vision, **changes)
    return replace(drawn, path=path)


DRAWN = {"git": random_case}
