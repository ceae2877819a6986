"""Decoders whose layers attend to images: Llama 3.2 Vision with tiles, IDEFICS with or without a perceiver."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import numpy as np
from transformers import IdeficsConfig, MllamaConfig, PreTrainedConfig

from weft_reference import stores
from weft_reference.cases import Case, Inputs
from weft_reference.inputs import Padding, floats, integers, text_batch
from weft_reference.vision_tasks import VisionTaskCase, newest

MODELS = ROOTS = ("mllama", "idefics")
WRITERS = {"mllama": "MllamaForConditionalGeneration", "idefics": "IdeficsForVisionText2Text"}
Changes = dict[str, Any]

TEXT: Changes = {
    "vocab_size": 99,
    "hidden_size": 16,
    "intermediate_size": 20,
    "num_attention_heads": 4,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
}
TOWER: Changes = {"intermediate_size": 18, "num_hidden_layers": 3, "image_size": 12, "patch_size": 4}
LLAMA: Changes = {"num_hidden_layers": 4, "num_key_value_heads": 2, "cross_attention_layers": [1, 3]}
TILES: Changes = {
    "hidden_size": 12,
    "attention_heads": 3,
    "num_global_layers": 2,
    "max_num_tiles": 2,
    "supported_aspect_ratios": [[1, 1], [1, 2], [2, 1]],
    "intermediate_layers_indices": [0, 2],
    "vision_output_dim": 36,
}
PERCEIVER: Changes = {"resampler_n_latents": 3, "resampler_depth": 2, "resampler_n_heads": 2, "resampler_head_dim": 5}


def mllama(text: Changes | None = None, vision: Changes | None = None, **changes: Any) -> MllamaConfig:
    return MllamaConfig(text_config=TEXT | LLAMA | (text or {}), vision_config=TOWER | TILES | (vision or {}), **changes)


def idefics(vision: Changes | None = None, perceiver: Changes | None = None, **changes: Any) -> IdeficsConfig:
    tower = TOWER | {"embed_dim": 12, "num_attention_heads": 3} | (vision or {})
    layers = {"num_hidden_layers": 4, "cross_layer_interval": 2}
    return IdeficsConfig(vision_config=tower, perceiver_config=PERCEIVER | (perceiver or {}), **(TEXT | layers | changes))


def tiles(config: PreTrainedConfig, counts: list[int], lengths: tuple[int, ...], padding: Padding, key: str) -> Inputs:
    """Images of as many tiles as their aspect ratio says; texts see those before them, the first token none."""
    vision = config.vision_config
    shape = (len(counts), max(counts), vision.max_num_tiles)
    pixels = floats(f"pixels.{key}", (*shape, vision.num_channels, vision.image_size, vision.image_size), -2.0, 2.0)
    ratios, real = np.zeros(shape[:2], np.int64), np.zeros(shape, np.int64)
    # An image that is none has one tile, of zeros, which no token sees.
    real[:, :, 0] = 1
    seen = np.zeros((len(counts), max(lengths), *shape[1:]), np.int64)
    for row, count in enumerate(counts):
        for image in range(count):
            ratios[row, image] = 1 + (row + image + 1) % len(vision.supported_aspect_ratios)
            down, across = vision.supported_aspect_ratios[ratios[row, image] - 1]
            real[row, image, : down * across] = 1
            start = (max(lengths) - lengths[row] if padding == "left" else 0) + 1 + 2 * image
            seen[row, start:, image] = real[row, image]
        pixels[row, count:] = 0.0
    pixels *= real[..., None, None, None]
    inputs = {"pixel_values": pixels, "aspect_ratio_ids": ratios, "aspect_ratio_mask": real}
    return inputs | {"cross_attention_mask": seen}


def images(config: PreTrainedConfig, counts: list[int], lengths: tuple[int, ...], padding: Padding, key: str) -> Inputs:
    """Images of the vision model's size; texts see those before them, the first token none."""
    vision = config.vision_config
    shape = (len(counts), max(counts), 3, vision.image_size, vision.image_size)
    pixels = floats(f"pixels.{key}", shape, -2.0, 2.0)
    seen = np.zeros((len(counts), max(lengths), max(counts)), np.int64)
    for row, count in enumerate(counts):
        pixels[row, count:] = 0.0
        for image in range(count):
            start = (max(lengths) - lengths[row] if padding == "left" else 0) + 1 + 2 * image
            seen[row, start:, image] = 1
    return {"pixel_values": pixels, "image_attention_mask": seen}


def case(
    name: str,
    config: PreTrainedConfig,
    notes: str,
    counts: list[int],
    lengths: tuple[int, ...] = (9, 6),
    padding: Padding = "left",
    store: Any = None,
    path: str | None = None,
    **more: Any,
) -> Case:
    model = config.model_type
    ids = text_batch(TEXT["vocab_size"], lengths, padding, key=model)
    del ids["token_type_ids"]
    made = (tiles if model == "mllama" else images)(config, counts, lengths, padding, name)
    return Case(path or f"{model}/{name}", WRITERS[model], config, {**ids, **made}, notes, store, **more)


def goldens() -> Iterator[Case | VisionTaskCase]:
    one, several = "Two texts with an image each.", "Two images in the first text, one in the second, which is padded on the {}."
    for config in (mllama, idefics):
        yield case("next-token", config(), one, [1, 1])
        yield case("two-images", config(), several.format("left"), [2, 1])
        yield case("padded-right", config(), several.format("right"), [2, 1], padding="right")
        yield case("file", config(), "model.safetensors as save_pretrained writes it.", [1, 1], store=stores.whole)
    alone = text_batch(TEXT["vocab_size"], (7, 4), "left", key="mllama")
    del alone["token_type_ids"]
    yield Case("mllama/text-alone", WRITERS["mllama"], mllama(), alone, "Two texts without images: layers are passed over.")
    usual = {"max_num_tiles": 4, "supported_aspect_ratios": None, "image_size": 8}
    notes = "The usual aspect ratios, one layer's hidden states beside the last; another activation function."
    few = {"intermediate_layers_indices": [1], "vision_output_dim": 24, "hidden_act": "relu", "norm_eps": 1e-3}
    yield case("usual-ratios", mllama(vision=usual | few), notes, [1, 2])
    image = mllama()
    ids = {"input_ids": np.concatenate([integers("row", (2, 1), 5, 99), np.full((2, 1), 104), integers("rest", (2, 5), 5, 99)], 1)}
    made = dict(tiles(image, [1, 1], (7, 7), "none", "image-token"))
    del made["cross_attention_mask"]
    yield Case("mllama/image-token", WRITERS["mllama"], image, ids | made, "The image token, behind the vocabulary; all tokens see all tiles.")
    layered = idefics(use_resampler=True)
    yield case("perceiver", layered, "Latents of a perceiver.", [2, 1])
    norms = idefics(
        {"hidden_act": "gelu_new", "layer_norm_eps": 1e-3},
        {"qk_layer_norms_perceiver": True},
        use_resampler=True,
        qk_layer_norms=True,
        alpha_type="vector",
        cross_layer_interval=1,
        num_hidden_layers=2,
    )
    yield case("norms", norms, "Normalised queries and keys, gates for each feature, a gated layer before each.", [1, 2])
    more = idefics(vocab_size=90, additional_vocab_size=9)
    yield case("more-tokens", more, "Token ids behind the vocabulary.", [1, 1])
    yield case("tied", idefics(tie_word_embeddings=True), "Scores of tokens share the table of embeddings.", [1, 1])
    stored = idefics(use_resampler=True, vocab_size=90, additional_vocab_size=9)
    yield from newest.mllama(mllama)
    yield from newest.idefics(idefics)
    yield case("more-file", stored, "model.safetensors as save_pretrained writes it.", [1, 1], store=stores.whole)


def random_mllama(rng: Random, path: str) -> Case:
    """Other widths, layers, tiles and images."""
    heads, towers, layers, tower = rng.choice((2, 4)), rng.choice((1, 2, 4)), rng.randint(1, 4), rng.randint(1, 4)
    groups = rng.choice((1, 2))
    text = {"num_attention_heads": heads, "num_key_value_heads": heads // groups, "hidden_size": heads * 8}
    text |= {"num_hidden_layers": layers, "cross_attention_layers": sorted(rng.sample(range(layers), rng.randint(1, layers)))}
    kept = sorted(rng.sample(range(tower), rng.randint(1, tower)))
    width = towers * 6
    vision = {"hidden_size": width, "attention_heads": towers, "num_hidden_layers": tower, "num_global_layers": rng.randint(0, 2)}
    vision |= {"intermediate_layers_indices": kept, "vision_output_dim": width * (1 + len(kept)), "image_size": rng.choice((8, 16))}
    return drawn(rng, path, mllama(text, vision))


def random_idefics(rng: Random, path: str) -> Case:
    """Other widths, layers and images, with or without a perceiver."""
    heads, towers, every = rng.choice((2, 4)), rng.choice((1, 2, 4)), rng.randint(1, 3)
    changes = {"num_attention_heads": heads, "hidden_size": heads * 8, "num_hidden_layers": every * rng.randint(1, 2)}
    changes |= {"cross_layer_interval": every, "use_resampler": rng.random() < 0.5, "qk_layer_norms": rng.random() < 0.5}
    changes |= {"alpha_type": rng.choice(("float", "vector")), "vocab_size": 80, "additional_vocab_size": 19}
    vision = {"embed_dim": towers * 6, "num_attention_heads": towers, "image_size": rng.choice((8, 16))}
    return drawn(rng, path, idefics(vision, {"qk_layer_norms_perceiver": rng.random() < 0.5}, **changes))


def drawn(rng: Random, path: str, config: PreTrainedConfig) -> Case:
    padding: Padding = rng.choice(("left", "right"))
    store = rng.choice((stores.whole, stores.sharded("20KB")))
    return case(path, config, "Drawn at random.", [rng.randint(1, 2), 1], (rng.randint(5, 9), 5), padding, store, path)


DRAWN = {"mllama": random_mllama, "idefics": random_idefics}
