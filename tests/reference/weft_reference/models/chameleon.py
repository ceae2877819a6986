"""Chameleon: images as tokens of the vocabulary, by a VQGAN whose channels are multiples of its 32 groups."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any

from transformers import ChameleonConfig

from weft_reference import stores
from weft_reference.cases import Case, Store
from weft_reference.inputs import floats, text_batch
from weft_reference.models.llava import IMAGE, texts
from weft_reference.models.vision_language.family import spread
from weft_reference.vision_tasks import VisionTaskCase, image_readers

MODELS = ROOTS = ("chameleon",)
CODES = 14


def vocabulary(codes: int) -> dict[str, int]:
    """Names of codes spell their digits in letters; their tokens are in another order."""
    letters = {code: "".join(chr(ord("A") + int(digit)) for digit in str(code)) for code in range(codes)}
    return {"<pad>": 0, "<image>": IMAGE} | {f"IMGIMG{name}Z": 60 + (5 * code) % codes for code, name in letters.items()}


def config(vision: dict[str, Any] | None = None, **changes: Any) -> ChameleonConfig:
    tiny = {
        "vocab_size": 99,
        "hidden_size": 16,
        "intermediate_size": 20,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 96,
        "vocabulary_map": vocabulary(CODES),
    }
    tiny_vision = {
        "embed_dim": 6,
        "num_embeddings": CODES,
        "latent_channels": 8,
        "resolution": 8,
        "base_channels": 32,
        "channel_multiplier": [1, 2],
        "num_res_blocks": 1,
    }
    return ChameleonConfig(vq_config=tiny_vision | (vision or {}), **(tiny | changes))


def case(
    name: str, head: str, notes: str, places: list[list[int]], padding: str = "left", store: Store | None = None, **changes: Any
) -> Case:
    chosen, images = config(**changes), sum(map(len, places))
    vision = chosen.vq_config
    side = vision.resolution >> (len(vision.channel_multiplier) - 1)
    features = [side * side] * images
    inputs = texts(spread(places, features), features, padding)
    shape = (images, vision.in_channels, vision.resolution, vision.resolution)
    inputs |= {"pixel_values": floats(f"pixels.{name}", shape, -2.0, 2.0)}
    return Case(f"chameleon/{name}", f"Chameleon{head}", chosen, inputs, notes, store, without=("image_hidden_states",))


def goldens() -> Iterator[Case | VisionTaskCase]:
    writer = "ForConditionalGeneration"
    yield case("base", "Model", "Two texts with an image each.", [[2], [1]])
    yield case("next-token", writer, "Tokens of images have the lowest logits.", [[2], [1]])
    alone = text_batch(60, (7, 4), "left", key="chameleon")
    del alone["token_type_ids"]
    plain = config(vocabulary_map={"<image>": IMAGE})
    yield Case("chameleon/text-alone", f"Chameleon{writer}", plain, alone, "Two texts without images; no token is one of images.")
    yield case("two-images", "Model", "Two images in the first text, one in the second, padded on the left.", [[1, 4], [2]])
    yield case("padded-right", "Model", "The same, padded on the right.", [[1, 4], [2]], "right")
    swin = {"swin_norm": True, "attention_bias": True, "mlp_bias": True}
    yield case("swin-norm", "Model", "Norms behind attention and MLP; biases.", [[2], [1]], **swin)
    attends = {"attn_resolutions": [8, 4], "num_res_blocks": 2, "channel_multiplier": [1, 1, 2]}
    yield case("attention", "Model", "Attention at two of three resolutions.", [[2], [1]], vision=attends)
    none = {"attn_type": "none", "channel_multiplier": [1], "resolution": 4}
    yield case("no-attention", "Model", "No attention in the VQGAN, one resolution; tied.", [[2], [1]], vision=none, tie_word_embeddings=True)
    yield case("file", "Model", "model.safetensors as save_pretrained writes it.", [[2], [1]], store=stores.whole)
    yield from image_readers.chameleon(config, vocabulary, CODES)


def random_case(rng: Random, path: str) -> Case:
    """Other widths, layers, heads and codebooks."""
    heads, groups, codes = rng.choice((2, 4)), rng.choice((1, 2)), rng.randint(5, 20)
    vision = {
        "num_embeddings": codes,
        "embed_dim": rng.choice((4, 10)),
        "num_res_blocks": rng.randint(1, 2),
        "channel_multiplier": rng.choice(([1], [1, 1], [2, 1])),
        "attn_resolutions": rng.choice((None, [8])),
    }
    changes = {
        "num_attention_heads": heads,
        "num_key_value_heads": heads // groups,
        "hidden_size": heads * 8,
        "num_hidden_layers": rng.randint(1, 3),
        "swin_norm": rng.random() < 0.5,
        "vocabulary_map": vocabulary(codes),
    }
    places = [[1], [0], [2, 3]][: rng.randint(1, 3)]
    changes["max_position_embeddings"] = 300
    drawn = case("random", "Model", "Drawn at random.", places, rng.choice(("left", "right")), stores.whole, vision=vision, **changes)
    return replace(drawn, path=path)


DRAWN = {"chameleon": random_case}
