"""Florence-2: images through DaViT in the places of tokens of BART's encoder."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any

from transformers import Florence2Config

from weft_reference import stores
from weft_reference.cases import Case, Store
from weft_reference.inputs import floats, text_batch
from weft_reference.models.llava import IMAGE, texts
from weft_reference.models.vision_language.family import spread
from weft_reference.vision_tasks import VisionTaskCase, image_readers

MODELS = ROOTS = ("florence2",)


def config(text: dict[str, Any] | None = None, vision: dict[str, Any] | None = None, **changes: Any) -> Florence2Config:
    tiny_text = {
        "model_type": "bart",
        "vocab_size": 99,
        "d_model": 16,
        "encoder_layers": 2,
        "decoder_layers": 3,
        "encoder_attention_heads": 2,
        "decoder_attention_heads": 4,
        "encoder_ffn_dim": 18,
        "decoder_ffn_dim": 20,
        "max_position_embeddings": 64,
    }
    tiny_vision = {
        "depths": [1, 2],
        "patch_size": [3, 3],
        "patch_stride": [2, 2],
        "patch_padding": [1, 1],
        "patch_prenorm": [False, True],
        "embed_dim": [8, 12],
        "num_heads": [2, 3],
        "num_groups": [4, 2],
        "window_size": 3,
        "mlp_ratio": 1.5,
        "projection_dim": 16,
        "max_temporal_embeddings": 4,
        "max_position_embeddings": 7,
    }
    return Florence2Config(text_config=tiny_text | (text or {}), vision_config=tiny_vision | (vision or {}), image_token_id=IMAGE, **changes)


def side(config: Florence2Config, length: int) -> int:
    vision = config.vision_config
    for edge, stride, padding in zip(vision.patch_size, vision.patch_stride, vision.patch_padding, strict=True):
        length = (length + 2 * padding - edge) // stride + 1
    return length


def case(
    name: str,
    notes: str,
    places: list[list[int]],
    size: tuple[int, int] = (16, 12),
    padding: str = "right",
    store: Store | None = None,
    **changes: Any,
) -> Case:
    """Images of one size at these places of the texts."""
    chosen, images = config(**changes), sum(map(len, places))
    features = [1 + side(chosen, size[0]) * side(chosen, size[1])] * images
    inputs = texts(spread(places, features), features, padding)
    text = text_batch(chosen.text_config.vocab_size, (6,) + (4,) * (len(places) - 1), "right", key="florence2", pad=1)
    inputs |= {f"decoder_{field}": text[field] for field in ("input_ids", "attention_mask")}
    inputs |= {"pixel_values": floats(f"pixels.{name}", (images, chosen.vision_config.in_channels, *size), -2.0, 2.0)}
    return Case(f"florence2/{name}", "Florence2ForConditionalGeneration", chosen, inputs, notes, store)


def goldens() -> Iterator[Case | VisionTaskCase]:
    yield case("next-token", "An image in each text, whose windows go beyond its border.", [[0], [0]])
    yield case("whole-windows", "Windows that fit, of a larger image.", [[0], [0]], (24, 24), text={"scale_embedding": True})
    biases = {"qkv_bias": False, "patch_prenorm": [True, False], "activation_function": "relu", "window_size": 2}
    yield case("untied", "Other norms, no biases of queries; scores of tokens have a table of their own.", [[1], [0]], vision=biases, tie_word_embeddings=False)
    yield case("file", "model.safetensors as save_pretrained writes it.", [[0], [0]], padding="left", store=stores.whole)
    yield from image_readers.florence2(config)


def random_case(rng: Random, path: str) -> Case:
    """Other widths, stages, heads, groups and windows."""
    heads, stages = rng.choice((1, 2, 4)), rng.randint(1, 3)
    groups = [rng.choice((1, 2, 4)) for _ in range(stages)]
    vision = {
        "depths": [rng.randint(1, 2) for _ in range(stages)],
        "patch_size": [rng.choice((2, 3)) for _ in range(stages)],
        "patch_stride": [2] * stages,
        "patch_padding": [rng.choice((0, 1)) for _ in range(stages)],
        "patch_prenorm": [False] + [rng.random() < 0.5 for _ in range(stages - 1)],
        "num_groups": groups,
        "num_heads": [rng.choice((1, 2, 4)) for _ in range(stages)],
        "embed_dim": [4 * rng.randint(2, 4) for _ in range(stages)],
        "window_size": rng.choice((2, 3, 4)),
        "projection_dim": heads * 8,
        "max_position_embeddings": 20,
    }
    text = {"encoder_attention_heads": heads, "decoder_attention_heads": heads, "d_model": heads * 8, "max_position_embeddings": 300}
    size = (rng.randint(12, 24), rng.randint(12, 24))
    drawn = case("random", "Drawn at random.", [[0], [1]][: rng.randint(1, 2)], size, "right", stores.whole, text=text, vision=vision)
    return replace(drawn, path=path)


DRAWN = {"florence2": random_case}
