"""KOSMOS-2.5: latent queries to patches that say their row and column, in marked places of a text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
from transformers import Kosmos2_5Config

from weft_reference import stores
from weft_reference.cases import Case, Store
from weft_reference.inputs import floats
from weft_reference.models.llava import IMAGE, texts
from weft_reference.models.vision_language.family import spread

MODELS = ROOTS = ("kosmos2_5",)
GRIDS = ((2, 3), (3, 3), (1, 4))


def config(text: dict[str, Any] | None = None, vision: dict[str, Any] | None = None, **changes: Any) -> Kosmos2_5Config:
    tiny_text = {"vocab_size": 99, "embed_dim": 16, "layers": 2, "ffn_dim": 20, "attention_heads": 4}
    tiny_vision = {
        "hidden_size": 12,
        "patch_embed_hidden_size": 12,
        "intermediate_size": 18,
        "head_dim": 5,
        "num_hidden_layers": 2,
        "num_attention_heads": 3,
        "max_num_patches": 9,
    }
    return Kosmos2_5Config(
        text_config=tiny_text | (text or {}),
        vision_config=tiny_vision | (vision or {}),
        **({"latent_query_num": 3} | changes),
    )


def case(name: str, notes: str, places: list[list[int]], store: Store | None = None, **changes: Any) -> Case:
    """Images at these places of the texts, which are padded on the right; patches of smaller images are padded."""
    chosen, images = config(**changes), sum(map(len, places))
    features = [chosen.latent_query_num] * images
    inputs = texts(spread(places, features), features, "right")
    ids = inputs["input_ids"]
    marks = (ids == IMAGE).astype(np.int64)
    ids[ids == 0] = chosen.text_config.pad_token_id
    # What stands in the places of images is counted, and else of no account; the tokens around them are marked as well.
    ids[marks == 1] = 5 + np.arange(marks.sum()) % 40
    around = (np.roll(marks, 1, 1) | np.roll(marks, -1, 1)) & ~marks & 1
    around[:, [0, -1]] = 0
    values = chosen.vision_config.patch_embed_hidden_size
    grids = [GRIDS[index % 3] for index in range(images)]
    patches = np.zeros((images, max(rows * columns for rows, columns in grids) + 1, values + 2), np.float32)
    drawn = floats(f"patches.{name}", (*patches.shape[:2], values), -2.0, 2.0)
    for image, (rows, columns) in enumerate(grids):
        count = rows * columns
        patches[image, :count, :2] = [(1 + index // columns, 1 + index % columns) for index in range(count)]
        patches[image, :count, 2:] = drawn[image, :count]
    inputs |= {"flattened_patches": patches, "image_embeds_position_mask": marks - around}
    without = ("image_embeds", "projection_attentions", "vision_model_output")
    return Case(f"kosmos2_5/{name}", "Kosmos2_5ForConditionalGeneration", chosen, inputs, notes, store, without=without)


def goldens() -> Iterator[Case]:
    yield case("next-token", "Two texts with an image each, of which one has fewer patches.", [[2], [1]])
    yield case("two-images", "Two images in the first text, one in the second.", [[1, 4], [2]])
    plain = {"activation_function": "relu", "scale_embedding": False, "layer_norm_eps": 1e-2}
    vision = {"dense_act_fn": "silu", "layer_norm_eps": 1e-3}
    changes = {"text": plain, "vision": vision, "latent_query_num": 7}
    yield case("plain", "Embeddings as they are; more queries.", [[2], [1]], **changes)
    untied = {"tie_word_embeddings": False}
    yield case("untied", "Scores of tokens have a table of their own.", [[2], [1]], text=untied, **untied)
    yield case("file", "model.safetensors as save_pretrained writes it.", [[2], [1]], store=stores.whole)


def random_case(rng: Random, path: str) -> Case:
    """Other widths, layers, heads and queries."""
    heads, towers = rng.choice((1, 2, 4)), rng.choice((1, 2, 4))
    text = {"attention_heads": heads, "embed_dim": heads * 8, "layers": rng.randint(1, 3)}
    text["ffn_dim"] = rng.randint(9, 40)
    vision = {"num_attention_heads": towers, "head_dim": rng.choice((4, 6)), "num_hidden_layers": rng.randint(1, 3)}
    places = [[1], [0], [2, 3]][: rng.randint(1, 3)]
    changes = {"text": text, "vision": vision, "latent_query_num": rng.randint(1, 6)}
    drawn = case("random", "Drawn at random.", places, stores.whole, **changes)
    return replace(drawn, path=path)


DRAWN = {"kosmos2_5": random_case}
