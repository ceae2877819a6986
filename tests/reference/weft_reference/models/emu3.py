"""Emu3: images as tokens of the vocabulary, by a VQ-VAE over time whose channels are multiples of its 32 groups."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
from transformers import Emu3Config

from weft_reference import stores
from weft_reference.cases import Case, Store
from weft_reference.inputs import floats, text_batch
from weft_reference.models.llava import IMAGE, texts
from weft_reference.models.vision_language.family import spread
from weft_reference.vision_tasks import VisionTaskCase, image_readers

MODELS = ROOTS = ("emu3",)
# Of one width: codes are near each other, so that places of an image have several.
CODES, FIRST, END = 12, 95, 92
# Rows and columns of the codes of images.
GRIDS = ((4, 6), (2, 4), (4, 2), (3, 3))


def vocabulary(codes: int) -> dict[str, int]:
    """Names of codes end with their digits; their tokens are in another order."""
    named = {f"<|visual token {code:06d}|>": FIRST + (7 * code) % codes for code in range(codes)}
    return {"<image>": IMAGE, "<|extra_200|>": END} | named


def config(vision: dict[str, Any] | None = None, text: dict[str, Any] | None = None, **changes: Any) -> Emu3Config:
    tiny_text = {
        "vocab_size": FIRST + CODES,
        "hidden_size": 16,
        "intermediate_size": 20,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 96,
        "pad_token_id": 0,
    }
    tiny_vision = {
        "codebook_size": CODES,
        "embed_dim": 1,
        "latent_channels": 4,
        "base_channels": 32,
        "channel_multiplier": [1, 2],
        "num_res_blocks": 1,
        "attn_resolutions": [1],
        "hidden_size": 64,
    }
    return Emu3Config(
        vq_config=tiny_vision | (vision or {}),
        text_config=tiny_text | (text or {}),
        **({"vocabulary_map": vocabulary(CODES)} | changes),
    )


def case(
    name: str, head: str, notes: str, places: list[list[int]], padding: str = "left", store: Store | None = None, **changes: Any
) -> Case:
    chosen, images = config(**changes), sum(map(len, places))
    vision = chosen.vq_config
    edge = 2 ** (len(vision.channel_multiplier) - 1)
    sizes = [(rows * edge, columns * edge) for rows, columns in GRIDS[:images]]
    features = [rows * (columns + 1) for rows, columns in GRIDS[:images]]
    inputs = texts(spread(places, features), features, padding)
    largest = [max(side) for side in zip(*sizes, strict=True)]
    pixels = floats(f"pixels.{name}", (images, vision.in_channels, *largest), -2.0, 2.0)
    for image, (height, width) in zip(pixels, sizes, strict=True):
        image[:, height:] = 0.0
        image[:, :, width:] = 0.0
    inputs |= {"pixel_values": pixels, "image_sizes": np.array(sizes, np.int64)}
    return Case(f"emu3/{name}", f"Emu3{head}", chosen, inputs, notes, store)


def goldens() -> Iterator[Case | VisionTaskCase]:
    writer = "ForConditionalGeneration"
    yield case("base", "Model", "Two texts with an image each, of two sizes.", [[2], [1]])
    yield case("next-token", writer, "Two texts with an image each, of two sizes.", [[2], [1]])
    alone = text_batch(IMAGE, (7, 4), "left", key="emu3")
    del alone["token_type_ids"]
    plain = config(vocabulary_map={"<image>": IMAGE, "<|extra_200|>": END})
    yield Case("emu3/text-alone", f"Emu3{writer}", plain, alone, "Two texts without images; no token is one of images.")
    yield case("two-images", writer, "Two images in the first text, one in the second, padded on the left.", [[1, 4], [2]])
    yield case("padded-right", writer, "The same, padded on the right.", [[1, 4], [2]], "right")
    attends = {"attn_resolutions": [0, 2], "num_res_blocks": 2, "channel_multiplier": [1, 2, 1], "hidden_size": 32, "num_attention_heads": 2}
    yield case("attention", "Model", "Attention at two of three resolutions, two heads.", [[2], [1]], vision=attends)
    still = {"temporal_downsample_factor": 1, "attn_resolutions": [], "channel_multiplier": [1], "hidden_size": 32}
    tied = {"tie_word_embeddings": True, "text": {"attention_bias": True, "mlp_bias": True}}
    yield case("one-frame", writer, "No convolution makes frames fewer, one resolution without attention; tied; biases.", [[2], [1]], vision=still, **tied)
    yield case("six-frames", "Model", "Six frames of an image become one.", [[2], [1]], vision={"temporal_downsample_factor": 6})
    small = {"channel_multiplier": [1], "hidden_size": 32, "attn_resolutions": [], "temporal_downsample_factor": 2}
    yield case("file", writer, "model.safetensors as save_pretrained writes it.", [[2], [1]], store=stores.whole, vision=small)
    yield from image_readers.emu3(config, vocabulary, CODES)


def random_case(rng: Random, path: str) -> Case:
    """Other widths, layers, heads and codebooks."""
    heads, groups, codes = rng.choice((2, 4)), rng.choice((1, 2)), rng.randint(8, CODES)
    multiplier = rng.choice(([1], [1, 1], [2, 1]))
    vision = {
        "codebook_size": codes,
        "embed_dim": rng.randint(1, 2),
        "latent_channels": rng.randint(3, 6),
        "num_res_blocks": rng.randint(1, 2),
        "channel_multiplier": multiplier,
        "attn_resolutions": rng.choice(([], [len(multiplier) - 1])),
        "hidden_size": 32,
        "num_attention_heads": rng.choice((1, 2, 4)),
        "temporal_downsample_factor": rng.choice((1, 2, 4)),
    }
    text = {
        "num_attention_heads": heads,
        "num_key_value_heads": heads // groups,
        "hidden_size": heads * 8,
        "num_hidden_layers": rng.randint(1, 3),
        "max_position_embeddings": 300,
    }
    places = [[1], [0], [2, 3]][: rng.randint(1, 3)]
    changes = {"text": text, "vocabulary_map": vocabulary(codes)}
    padding, head = rng.choice(("left", "right")), rng.choice(("Model", "ForConditionalGeneration"))
    return replace(case("random", head, "Drawn at random.", places, padding, stores.whole, vision=vision, **changes), path=path)


DRAWN = {"emu3": random_case}
