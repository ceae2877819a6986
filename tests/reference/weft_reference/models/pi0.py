"""π0: instructions with one camera or several, some of them missing, padded on either side; states and noisy actions."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import numpy as np
import transformers

from weft_reference import stores
from weft_reference.cases import Case
from weft_reference.inputs import floats

Changes = dict[str, Any]
MODELS = ROOTS = ("pi0",)
TEXT: Changes = {
    "model_type": "gemma",
    "vocab_size": 60,
    "hidden_size": 16,
    "intermediate_size": 20,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 1,
    "head_dim": 6,
    "max_position_embeddings": 64,
}
VISION: Changes = {
    "model_type": "siglip_vision_model",
    "hidden_size": 12,
    "intermediate_size": 14,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "image_size": 8,
    "patch_size": 4,
    "vision_use_head": False,
}
IMAGE = 60  # Beyond the vocabulary, as in published files.
ALL = ((True, True), (True, True))
SOME = ((True, False), (False, True))


def config(
    text: Changes | None = None, vision: Changes | None = None, expert: Changes | None = None, **changes: Any
) -> transformers.PI0Config:
    read = TEXT | (text or {})
    return transformers.PI0Config(
        vlm_config={
            "model_type": "paligemma",
            "text_config": read,
            "vision_config": VISION | (vision or {}),
            "projection_dim": read["hidden_size"],
            "image_token_id": IMAGE,
        },
        dit_config=read | {"hidden_size": 8, "intermediate_size": 10} | (expert or {}),
        **({"chunk_size": 5, "max_state_dim": 3, "max_action_dim": 4} | changes),
    )


def case(
    name: str,
    notes: str,
    cameras: tuple[tuple[bool, ...], ...] = SOME,
    padding: str = "right",
    head: str = "ForConditionalGeneration",
    store: Any = None,
    path: str | None = None,
    **changes: Any,
) -> Case:
    chosen = config(**changes)
    vision, rows, count = chosen.vlm_config.vision_config, len(cameras), len(cameras[0])
    each = (vision.image_size // vision.patch_size) ** 2
    texts = [[IMAGE] * (each * sum(seen)) + list(range(2, 6 + 2 * row)) for row, seen in enumerate(cameras)]
    longest = max(map(len, texts))
    ids, mask = np.zeros((2, rows, longest), np.int64)
    for row, text in enumerate(texts):
        at = slice(longest - len(text), longest) if padding == "left" else slice(0, len(text))
        ids[row, at], mask[row, at] = text, 1
    size = vision.image_size
    inputs = {
        "input_ids": ids,
        "attention_mask": mask,
        "pixel_values": floats(f"pixels.{name}", (rows, count, 3, size, size), -1.0, 1.0),
        "pixel_attention_mask": np.array(cameras),
    }
    if head == "Model":
        inputs["action_embeds"] = floats(f"actions.{name}", (rows, 4, chosen.dit_config.hidden_size), -2.0, 2.0)
    else:
        inputs["state"] = floats(f"state.{name}", (rows, chosen.max_state_dim), -2.0, 2.0)
        inputs["noise"] = floats(f"noise.{name}", (rows, chosen.chunk_size, chosen.max_action_dim), -2.0, 2.0)
        inputs["timestep"] = np.linspace(1.0, 0.3, rows).astype(np.float32)
    return Case(path or f"pi0/{name}", f"PI0{head}", chosen, inputs, notes, store)


def goldens() -> Iterator[Case]:
    yield case("base", "Two instructions, each with a camera that is missing.", head="Model")
    yield case("actions", "Two instructions, each with a camera that is missing, one padded on the right.")
    yield case("padded-left", "The same, padded on the left.", padding="left")
    yield case("all-cameras", "Instructions with two cameras each.", ALL)
    yield case("one-camera", "One instruction with one camera.", ((True,),))
    yield case("periods", "Other periods of the sinusoids of time.", min_period=0.5, max_period=9.0, chunk_size=1)
    three = {"num_hidden_layers": 3, "num_key_value_heads": 2}
    yield case("three-layers", "Three layers, grouped heads.", ALL, text=three, expert=three)
    headed = {"vision_use_head": True}
    yield case("unused-head", "The vision model has a head that is not used.", vision=headed)
    yield case("file", "model.safetensors as save_pretrained writes it.", store=stores.whole)


def random_case(rng: Random, path: str) -> Case:
    heads, groups, layers = rng.choice((2, 4)), rng.choice((1, 2)), rng.randint(1, 3)
    shared = {
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": heads // groups,
        "head_dim": 2 * rng.randint(2, 6),
    }
    text = shared | {"hidden_size": rng.randint(6, 30)}
    expert = shared | {"hidden_size": 2 * rng.randint(3, 15), "intermediate_size": rng.randint(6, 30)}
    count = rng.randint(1, 3)
    cameras = tuple((True, *(rng.random() < 0.6 for _ in range(count - 1))) for _ in range(2))
    head, padding = rng.choice(("Model", "ForConditionalGeneration")), rng.choice(("left", "right"))
    changes = {"chunk_size": rng.randint(1, 9), "max_action_dim": rng.randint(1, 9), "max_state_dim": rng.randint(1, 9)}
    return case(
        "random", "Drawn at random.", cameras, padding, head, stores.whole, path, text=text, expert=expert, **changes
    )


DRAWN = {"pi0": random_case}
