"""BridgeTower: RoBERTa and a vision transformer, bridged to a cross-modal encoder. Heads of the image encoder are 64 wide."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import numpy as np
import transformers

from weft_reference import stores
from weft_reference.bytepair import roberta_tokenizer, vocabulary
from weft_reference.cases import Case, Store
from weft_reference.inputs import Padding, floats, text_batch
from weft_reference.vision_tasks import VisionTaskCase, image_scores

TEXT: dict[str, Any] = {
    "vocab_size": 99,
    "hidden_size": 24,
    "num_hidden_layers": 3,
    "num_attention_heads": 3,
    "intermediate_size": 36,
    "max_position_embeddings": 40,
}
VISION: dict[str, Any] = {"hidden_size": 64, "num_hidden_layers": 3, "image_size": 12, "patch_size": 4}
# Embeddings of images need text and image encoders of one width.
WIDE = {"hidden_size": 64, "num_attention_heads": 4}
HEADS = ("Model", "ForMaskedLM", "ForImageAndTextRetrieval", "ForContrastiveLearning")


def config(text: dict[str, Any] | None = None, vision: dict[str, Any] | None = None, **changes: Any) -> transformers.BridgeTowerConfig:
    text = TEXT | (text or {})
    made = {"hidden_size": text["hidden_size"], "num_hidden_layers": 2, "contrastive_hidden_size": 10, "logit_scale_init_value": 2.6592} | changes
    return transformers.BridgeTowerConfig(text_config=text, vision_config=VISION | (vision or {}), **made)


def inputs(chosen: Any, key: str, lengths: tuple[int, ...] = (9, 6), padding: Padding = "right") -> dict[str, np.ndarray]:
    made = text_batch(chosen.text_config.vocab_size, lengths, padding, 1, 1, key)
    del made["token_type_ids"]
    size = chosen.vision_config.image_size
    return made | {"pixel_values": floats(key, (len(lengths), 3, size, size), -2.0, 2.0)}


def case(name: str, head: str, notes: str, store: Store | None = None, padding: Padding = "right", mask: bool = True, **changes: Any) -> Case:
    chosen = config(**changes)
    made = inputs(chosen, name, padding=padding)
    if not mask:
        del made["attention_mask"]
    return Case(f"bridgetower/{name}", f"BridgeTower{head}", chosen, made, notes, store)


def goldens() -> Iterator[Case | VisionTaskCase]:
    yield case("base", "Model", "Two texts, the second padded, with an image each; two heads of images.", vision={"hidden_size": 128})
    yield case("no-mask", "Model", "No mask; bridges scale; more layers of images than of texts.", mask=False, link_tower_type="scaled_add", vision={"num_hidden_layers": 4})
    yield case("interpolated-bridges", "Model", "Bridges interpolate; projections of each layer; a norm for each layer of images.", link_tower_type="interpolate", share_cross_modal_transformer_layers=False, vision={"share_layernorm": False}, padding="left")
    yield case("one-layer", "Model", "A cross-modal encoder of one layer.", num_hidden_layers=1)
    yield case("masked-lm", "ForMaskedLM", "A decoder of its own.", hidden_act="relu")
    yield case("tied", "ForMaskedLM", "A decoder tied to the token embeddings.", tie_word_embeddings=True)
    yield case("retrieval", "ForImageAndTextRetrieval", "Whether text and image go together.", layer_norm_eps=0.01)
    yield case("contrastive", "ForContrastiveLearning", "Three embeddings.", text=WIDE)
    yield case("file", "ForContrastiveLearning", "model.safetensors as save_pretrained writes it.", stores.whole, text=WIDE | {"num_hidden_layers": 2})
    processor = transformers.BridgeTowerImageProcessorPil(size={"shortest_edge": 14}, size_divisor=2, crop_size={"shortest_edge": 12})
    matched = config(text={"vocab_size": len(vocabulary())})
    yield image_scores.image_text_matching("bridgetower", "BridgeTowerForImageAndTextRetrieval", matched, processor, roberta_tokenizer(38))


def random_case(rng: Random, path: str) -> Case:
    heads, layers, head = rng.choice((1, 2, 3)), rng.randint(1, 4), rng.choice(HEADS)
    patch, width = rng.randint(2, 6), 64 * rng.randint(1, 2)
    if head == "ForContrastiveLearning":
        heads = 4
    chosen = config(
        text={
            "vocab_size": rng.randint(30, 200),
            "hidden_size": width if head == "ForContrastiveLearning" else heads * rng.randint(3, 12),
            "num_hidden_layers": layers,
            "num_attention_heads": heads,
            "intermediate_size": rng.randint(8, 60),
            "hidden_act": rng.choice(("gelu", "relu")),
        },
        vision={
            "hidden_size": width,
            "num_hidden_layers": layers,
            "patch_size": patch,
            "image_size": patch * rng.randint(1, 4) + rng.randrange(patch),
        },
        num_hidden_layers=rng.randint(1, layers),
        contrastive_hidden_size=rng.randint(1, 20),
        link_tower_type=rng.choice(("add", "scaled_add", "interpolate")),
        tie_word_embeddings=rng.random() < 0.5,
        share_cross_modal_transformer_layers=head == "ForContrastiveLearning" or rng.random() < 0.6,
    )
    lengths = tuple(sorted((rng.randint(1, 30) for _ in range(rng.randint(1, 4))), reverse=True))
    return Case(path, f"BridgeTower{head}", chosen, inputs(chosen, path, lengths, rng.choice(("right", "left"))), "Drawn at random.", stores.whole)
