"""Pix2Struct: patches that say their row and column, as many as an image has, and a T5 decoder."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
from transformers import Pix2StructConfig

from weft_reference import stores
from weft_reference.cases import Case, Store
from weft_reference.inputs import floats, text_batch
from weft_reference.vision_tasks import VisionTaskCase, image_readers

MODELS = ROOTS = ("pix2struct",)


def config(text: dict[str, Any] | None = None, vision: dict[str, Any] | None = None, **changes: Any) -> Pix2StructConfig:
    tiny_text = {
        "vocab_size": 61,
        "hidden_size": 24,
        "d_kv": 6,
        "d_ff": 20,
        "num_layers": 3,
        "num_heads": 4,
        "relative_attention_num_buckets": 8,
        "relative_attention_max_distance": 12,
    }
    tiny_vision = {
        "hidden_size": 16,
        "patch_embed_hidden_size": 12,
        "d_ff": 18,
        "d_kv": 6,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "seq_len": 9,
    }
    # Where the encoder is as wide as the decoder alone, the reference can attend to it.
    width = (text or {}).get("hidden_size", tiny_text["hidden_size"])
    return Pix2StructConfig(text_config=tiny_text | (text or {}), vision_config=tiny_vision | {"hidden_size": width} | (vision or {}), **changes)


def case(
    name: str, notes: str, grids: list[tuple[int, int]], lengths: tuple[int, ...] = (7, 4), store: Store | None = None, **changes: Any
) -> Case:
    """Images of so many rows and columns of patches, padded to as many."""
    chosen = config(**changes)
    values = chosen.vision_config.patch_embed_hidden_size
    most = max(rows * columns for rows, columns in grids) + 1
    patches = np.zeros((len(grids), most, values + 2), np.float32)
    mask = np.zeros((len(grids), most), np.int64)
    drawn = floats(f"patches.{name}", (len(grids), most, values), -2.0, 2.0)
    for image, (rows, columns) in enumerate(grids):
        count = rows * columns
        places = [(1 + index // columns, 1 + index % columns) for index in range(count)]
        patches[image, :count, :2] = places
        patches[image, :count, 2:] = drawn[image, :count]
        mask[image, :count] = 1
    text = text_batch(chosen.text_config.vocab_size, lengths, "right", key="pix2struct")
    inputs = {"flattened_patches": patches, "attention_mask": mask}
    inputs |= {f"decoder_{field}": text[field] for field in ("input_ids", "attention_mask")}
    return Case(f"pix2struct/{name}", "Pix2StructForConditionalGeneration", chosen, inputs, notes, store)


def goldens() -> Iterator[Case | VisionTaskCase]:
    yield case("next-token", "Images of two and three rows, one padded.", [(2, 3), (3, 3)])
    yield case("long", "A text longer than its buckets tell apart.", [(1, 8), (4, 2)], (20, 13))
    relu = {"dense_act_fn": "relu", "layer_norm_epsilon": 1e-2}
    yield case("tied", "Scores of tokens share the table of embeddings; other activation functions.", [(2, 2), (1, 3)], text=relu, vision={"dense_act_fn": "silu", "layer_norm_eps": 1e-3}, tie_word_embeddings=True)
    yield case("file", "model.safetensors as save_pretrained writes it.", [(2, 3), (3, 3)], store=stores.whole)
    yield from image_readers.pix2struct(config)


def random_case(rng: Random, path: str) -> Case:
    """Other widths, layers, heads and buckets."""
    heads, towers = rng.choice((1, 2, 4)), rng.choice((1, 2, 4))
    size = rng.choice((6, 8))
    text = {
        "num_heads": heads,
        "hidden_size": heads * size,
        "d_kv": size,
        "num_layers": rng.randint(1, 4),
        "relative_attention_num_buckets": rng.choice((8, 16)),
    }
    vision = {"num_attention_heads": towers, "d_kv": rng.choice((4, 10)), "num_hidden_layers": rng.randint(1, 3)}
    grids = [(rng.randint(1, 4), rng.randint(1, 5)) for _ in range(2)]
    drawn = case("random", "Drawn at random.", grids, (rng.randint(5, 20), 4), stores.whole, text=text, vision=vision)
    return replace(drawn, path=path)


DRAWN = {"pix2struct": random_case}
