"""EmbeddingGemma 2: windows to both sides, layers of both types; images and recordings, either or both."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

from weft_reference import stores
from weft_reference.cases import Case
from weft_reference.models.gemma4 import BOTH, KINDS, PUBLISHED, STORED, case, text_case

Changes = dict[str, Any]
WHOLE, TEXT = "embedding_gemma2", "embedding_gemma2_text"
MODELS = ROOTS = (WHOLE, TEXT)
ROPES: Changes = {
    "sliding_attention": {"rope_type": "default", "rope_theta": 500.0},
    "full_attention": {"rope_type": "default", "rope_theta": 3000.0},
}
TEXT_CASES: dict[str, Changes] = {
    "narrow": {"sliding_window": 2, "attention_bias": True},
    "published": {"written": PUBLISHED | {"num_global_key_value_heads": 1}},
    "pattern": {
        "layer_types": None,
        "num_hidden_layers": 7,
        "sliding_window_pattern": 3,
        "written": {"layer_types": None, "sliding_window_pattern": 3, "rope_parameters": None},
    },
    "ropes": {"rope_parameters": ROPES},
}


def goldens() -> Iterator[Case]:
    yield text_case(TEXT, "base", "TextModel", "Two texts, the second padded on the right.")
    yield text_case(TEXT, "left-padding", "TextModel", "The second text is padded on the left.", "left")
    for name, change in TEXT_CASES.items():
        notes = ", ".join(f"{field} {value}" for field, value in change.items())
        yield text_case(TEXT, name, "TextModel", f"{notes}.", **change)
    yield text_case(TEXT, "file", "TextModel", STORED, store=stores.whole)
    heard: Changes = {"audio": {}}
    seen = [["image", "text"], ["text", "image", "image", "text"]]
    spoken = [["audio", "text", "audio", "text"], ["text", "audio", "text"]]
    yield case(WHOLE, "base", "Model", "Images and recordings, one text padded on the left.", BOTH, **heard)
    yield case(WHOLE, "padded-right", "Model", "The same, padded on the right.", BOTH, "right", **heard)
    yield case(WHOLE, "images-alone", "Model", "Texts with images and no recordings.", seen, **heard)
    yield case(WHOLE, "deaf", "Model", "A model without recordings.", seen, "right")
    yield case(WHOLE, "audio-alone", "Model", "Texts with recordings and no images.", spoken, **heard)
    yield case(WHOLE, "text-alone", "Model", "Texts alone.", [["text", "text"], ["text"]], **heard)
    yield case(WHOLE, "file", "Model", STORED, BOTH, store=stores.whole, **heard)


def drawn(rng: Random) -> Changes:
    layers, heads = rng.randint(2, 5), rng.choice((2, 4))
    return {
        "hidden_size": rng.randint(6, 30),
        "intermediate_size": rng.randint(6, 40),
        "num_hidden_layers": layers,
        "layer_types": [rng.choice(KINDS[:2]) for _ in range(layers - 1)] + ["full_attention"],
        "num_attention_heads": heads,
        "num_key_value_heads": rng.choice((1, 2)),
        "head_dim": 2 * rng.randint(2, 6),
        "global_head_dim": 2 * rng.randint(4, 8),
        "sliding_window": rng.randint(1, 9),
        "embedding_dim": rng.randint(4, 20),
    }


def random_text_case(rng: Random, path: str) -> Case:
    padding = rng.choice(("left", "right"))
    return text_case(
        TEXT, "random", "TextModel", "Drawn at random.", padding, path=path, store=stores.whole, **drawn(rng)
    )


def random_case(rng: Random, path: str) -> Case:
    changes: Changes = {"text": drawn(rng), "audio": {"num_hidden_layers": rng.randint(1, 3)}}
    padding = rng.choice(("left", "right"))
    return case(WHOLE, "random", "Model", "Drawn at random.", BOTH, padding, stores.whole, path, **changes)


DRAWN = {WHOLE: random_case, TEXT: random_text_case}
