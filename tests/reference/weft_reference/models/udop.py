"""UDOP: pages of words with boxes and an image, and words with boxes alone."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import numpy as np
import torch
from transformers import UdopConfig

from weft_reference import stores
from weft_reference.cases import Case, Store
from weft_reference.inputs import Padding, floats, integers, text_batch
from weft_reference.models.t5 import decoder_text

TINY: dict[str, Any] = {
    "vocab_size": 40,
    "d_model": 16,
    "d_kv": 6,
    "d_ff": 24,
    "num_layers": 2,
    "num_heads": 3,
    "relative_attention_max_distance": 40,
    "max_2d_position_embeddings": 51,
    "image_size": 12,
    "patch_size": 3,
    "decoder_start_token_id": 0,
}
HEADS = ("Model", "ForConditionalGeneration", "EncoderModel")


def config(**changes: Any) -> UdopConfig:
    return UdopConfig(**TINY | changes)


def boxes(key: str, mask: np.ndarray, of: int = 1000) -> np.ndarray:
    """Left, upper, right and lower edge of each token, as multiples of 1 / `of` of a page; none of padding."""
    shape = (*mask.shape, 2)
    first = integers(f"{key}.corner", shape, 0, of - of // 8)
    made = np.concatenate([first, first + integers(f"{key}.size", shape, 1, of // 8)], axis=-1)
    return (made / of).astype(np.float32) * mask[..., None].astype(np.float32)


def page(
    chosen: UdopConfig, key: str, lengths: tuple[int, ...] = (9, 6), padding: Padding = "right", image: bool = True
) -> dict[str, np.ndarray]:
    batch = text_batch(chosen.vocab_size, lengths, padding, key=key)
    made = {name: batch[name] for name in ("input_ids", "attention_mask")}
    made["bbox"] = boxes(key, made["attention_mask"])
    if image:
        size = (len(lengths), chosen.num_channels, chosen.image_size, chosen.image_size)
        made["pixel_values"] = floats(f"{key}.page", size, -2.0, 2.0)
    return made


def answer(key: str, lengths: tuple[int, ...] = (5, 5), padding: Padding = "none", vocab_size: int = 40) -> dict[str, np.ndarray]:
    return decoder_text(lengths, padding, f"{key}.answer", vocab_size)


def case(
    name: str, head: str, notes: str, given: dict[str, np.ndarray] | None = None, store: Store | None = None, **changes: Any
) -> Case:
    chosen = config(**changes)
    inputs = page(chosen, name) if given is None else given
    if head != "EncoderModel" and "decoder_input_ids" not in inputs:
        inputs = inputs | answer(name)
    return Case(f"udop/{name}", f"Udop{head}", chosen, inputs, notes, store)


def marked() -> dict[str, np.ndarray]:
    """Tokens without a box, by edges of 0 or 1, outside of the page, and on the borders of patches."""
    made = page(config(), "marked", (9, 9))
    made["bbox"][0, :6] = [[0, 0, 0, 0], [1, 1, 1, 1], [0, 0, 2, 2], [-0.5, 0.1, 0.5, 0.2], [0.5, 0.5, 0.5, 0.5], [0.2, 0.25, 0.3, 0.25]]
    # What distinguishes single from double precision: edges at rows of the tables.
    made["bbox"][1] = ((np.arange(36) * 7 % 50).reshape(9, 4) / 50).astype(np.float32)
    return made


def goldens() -> Iterator[Case]:
    tiny = config()
    yield case(
        "base",
        "Model",
        "Two pages, the second padded; the decoder has buckets and layers of its own.",
        relative_attention_num_buckets=8,
        num_decoder_layers=3,
    )
    yield case("conditional-generation", "ForConditionalGeneration", "The first bias is the first layer's.")
    yield case("left-padding", "ForConditionalGeneration", "Padding on the left of the words.", page(tiny, "left", padding="left"))
    text = page(tiny, "text", padding="left", image=False)
    yield case("text-only", "Model", "Words with boxes, without an image, in single precision.", text)
    yield case("text-only-generation", "ForConditionalGeneration", "Words with boxes, without an image.", page(tiny, "words", image=False))
    bare = {name: value for name, value in page(tiny, "bare").items() if name != "attention_mask"}
    yield case("no-mask", "Model", "Without a mask empty positions are attended to.", bare)
    bare = {name: value for name, value in text.items() if name != "attention_mask"}
    yield case("text-no-mask", "ForConditionalGeneration", "Neither image nor mask.", bare)
    yield case("gated", "ForConditionalGeneration", "A feed-forward gated by the exact GELU.", feed_forward_proj="gated-gelu")
    yield case("marked", "ForConditionalGeneration", "Boxes that are none, outside, and on borders.", marked())
    words = {name: value for name, value in marked().items() if name != "pixel_values"}
    yield case("marked-words", "Model", "The same without an image.", words)
    whole = page(tiny, "whole")
    whole["bbox"] = np.rint(whole["bbox"] * 1.5).astype(np.int64)
    yield case("whole-numbers", "Model", "Boxes of whole numbers.", whole)
    own = page(tiny, "own")
    own["visual_bbox"] = floats("own.patches", (2, 16, 4), 0.0, 1.0)
    yield case("visual-bbox", "Model", "Boxes of patches that are given.", own)
    full = page(config(image_size=7), "full", (30, 27))
    yield case("full", "ForConditionalGeneration", "Words on every patch but few.", full, image_size=7)
    yield case("one-patch", "Model", "A page of one patch, on which words lie.", page(config(image_size=3), "one"), image_size=3)
    yield case(
        "biases",
        "Model",
        "Biases in another order, with options of their own.",
        relative_bias_args=[
            {"type": "vertical", "max_distance": 20, "scaling_factor": 30},
            {"type": "1d", "bidirectional": False, "relative_attention_num_buckets": 12, "max_distance": 9},
        ],
    )
    yield case("encoder", "EncoderModel", "The encoder alone, and its mask.", num_layers=3)
    yield case("encoder-text", "EncoderModel", "The encoder of words alone.", page(tiny, "words", image=False))
    padded = page(tiny, "padded") | answer("padded", (5, 3), "right")
    yield case("decoder-padding", "ForConditionalGeneration", "Padding on the right of the answer.", padded)
    padded = page(tiny, "padded") | answer("padded", (5, 3), "left")
    yield case("decoder-left-padding", "ForConditionalGeneration", "Padding on the left of the answer.", padded)
    yield case("file", "ForConditionalGeneration", "model.safetensors as written.", store=stores.whole)
    yield case("file-base", "Model", "The base model's, which ties no bias.", store=stores.whole)
    yield case("bf16", "ForConditionalGeneration", "Weights in bfloat16.", store=stores.as_dtype(torch.bfloat16))


def random_case(rng: Random, path: str) -> Case:
    head, patch = rng.choice(HEADS), rng.randint(2, 6)
    chosen = config(
        vocab_size=rng.randint(30, 200),
        d_model=rng.randint(4, 40),
        d_kv=rng.randint(3, 12),
        d_ff=rng.randint(8, 60),
        num_layers=rng.randint(1, 4),
        num_decoder_layers=rng.randint(1, 4),
        num_heads=rng.randint(1, 6),
        relative_attention_max_distance=rng.choice((40, 128)),
        feed_forward_proj=rng.choice(("relu", "gated-gelu")),
        max_2d_position_embeddings=rng.choice((2, 51, 501, 1024)),
        patch_size=patch,
        image_size=patch * rng.randint(1, 5) + rng.randrange(patch),
    )
    lengths = tuple(sorted((rng.randint(1, 30) for _ in range(rng.randint(1, 4))), reverse=True))
    inputs = page(chosen, path, lengths, rng.choice(("right", "left")), rng.random() < 0.7)
    if head != "EncoderModel":
        inputs |= answer(path, tuple(sorted((rng.randint(1, 12) for _ in lengths), reverse=True)), "right", chosen.vocab_size)
        if rng.random() < 0.2:
            del inputs["attention_mask"]
    return Case(path, f"Udop{head}", chosen, inputs, "Drawn at random.", stores.whole)
