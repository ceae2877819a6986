"""Perceiver: texts as bytes, images with each preprocessor, optical flow, and inputs as they are."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import numpy as np
from transformers import PerceiverConfig

from weft_reference import stores
from weft_reference.cases import Case
from weft_reference.inputs import floats, text_batch

Changes = dict[str, Any]
MODELS = ROOTS = ("perceiver",)
TINY: Changes = {
    "num_latents": 5,
    "d_latents": 24,
    "d_model": 16,
    "num_self_attends_per_block": 2,
    "num_self_attention_heads": 3,
    "num_cross_attention_heads": 2,
    "vocab_size": 40,
    "max_position_embeddings": 12,
    "image_size": 6,
    "train_size": [4, 5],
    "num_labels": 3,
}
IMAGES = ("Learned", "Fourier", "ConvProcessing")
# Images have other numbers of channels than texts, which more heads do not divide.
ONE_HEAD: Changes = {"num_cross_attention_heads": 1}


def given(head: str, config: PerceiverConfig, name: str, lengths: tuple[int, int] = (11, 7)) -> dict[str, np.ndarray]:
    if head == "Model":
        mask = np.ones((2, 9), np.int64)
        mask[1, 6:] = 0
        return {"inputs": floats(f"inputs.{name}", (2, 9, config.d_model), -2.0, 2.0), "attention_mask": mask}
    if head in ("ForMaskedLM", "ForSequenceClassification"):
        made = text_batch(config.vocab_size, lengths, "right", key=f"perceiver.{name}")
        return {field: made[field] for field in ("input_ids", "attention_mask")}
    if head == "ForOpticalFlow":
        return {"inputs": floats(f"frames.{name}", (2, 2, 27, *config.train_size), -1.0, 1.0)}
    sizes = {"Learned": (config.image_size, config.image_size), "Fourier": (7, 5), "ConvProcessing": (17, 22)}
    size = sizes[head.removeprefix("ForImageClassification")]
    return {"pixel_values": floats(f"pixels.{name}", (2, 3, *size), -2.0, 2.0)}


def case(name: str, head: str, notes: str, store: Any = None, path: str | None = None, **changes: Any) -> Case:
    one = ONE_HEAD if head.startswith("ForImage") or head == "ForOpticalFlow" else {}
    config = PerceiverConfig(**(TINY | one | changes))
    return Case(path or f"perceiver/{name}", f"Perceiver{head}", config, given(head, config, name), notes, store)


def goldens() -> Iterator[Case]:
    yield case("base", "Model", "Inputs as they are, the second padded.")
    yield case("masked-lm", "ForMaskedLM", "Two texts, the second padded.")
    yield case("sequence-classification", "ForSequenceClassification", "Two texts, the second padded.")
    for kind in IMAGES:
        yield case(f"image-{kind.lower()}", f"ForImageClassification{kind}", "Two images.")
    yield case("optical-flow", "ForOpticalFlow", "Two pairs of frames.")
    widths = {"qk_channels": 12, "v_channels": 24}
    widths |= {"cross_attention_widening_factor": 2, "self_attention_widening_factor": 3}
    yield case("widths", "ForMaskedLM", "Widths of queries and keys, and of MLPs; two blocks.", num_blocks=2, **widths)
    queries = {"cross_attention_shape_for_attention": "q", "use_query_residual": False, "hidden_act": "relu"}
    yield case("queries", "ForSequenceClassification", "Keys as wide as latents, without residuals.", **queries)
    shape = {"cross_attention_shape_for_attention": "q"}
    yield case("flow-queries", "ForOpticalFlow", "Keys as wide as the queries.", **shape)
    yield case("wide-keys", "ForImageClassificationFourier", "A width of queries and keys.", qk_channels=24)
    yield case("file", "ForMaskedLM", "model.safetensors as save_pretrained writes it.", stores.whole)


def random_case(rng: Random, path: str) -> Case:
    heads = ("Model", "ForMaskedLM", "ForSequenceClassification", "ForOpticalFlow")
    head = rng.choice((*heads, *(f"ForImageClassification{kind}" for kind in IMAGES)))
    own, cross = rng.choice((1, 2, 3)), rng.choice((1, 2, 3))
    changes: Changes = {
        "num_latents": rng.randint(2, 9),
        "d_latents": 6 * rng.randint(1, 5),
        "d_model": 6 * rng.randint(1, 4),
        "num_blocks": rng.randint(1, 2),
        "num_self_attends_per_block": rng.randint(1, 3),
        "num_self_attention_heads": own,
        "num_cross_attention_heads": 1 if head.startswith("ForImage") or head == "ForOpticalFlow" else cross,
        "self_attention_widening_factor": rng.randint(1, 3),
        "cross_attention_widening_factor": rng.randint(1, 3),
        "use_query_residual": rng.random() < 0.7,
        "hidden_act": rng.choice(("gelu", "relu", "silu")),
        "cross_attention_shape_for_attention": rng.choice(("q", "kv")),
        "image_size": rng.randint(3, 8),
        "train_size": [rng.randint(2, 6), rng.randint(2, 6)],
        "vocab_size": rng.randint(20, 60),
        "max_position_embeddings": rng.randint(11, 20),
        "num_labels": rng.randint(1, 5),
    }
    # What masked language modelling decodes with has eight heads.
    if head == "ForMaskedLM":
        changes["d_model"] = 24
    return case("random", head, "Drawn at random.", stores.whole, path, **changes)


DRAWN = {"perceiver": random_case}
