"""Encoders drawn at random: what the table of encoders varies, together and in other sizes."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import numpy as np
import transformers

from weft_reference.cases import Case
from weft_reference.drawn.common import Changes, functions, grid, store, texts, without_mask
from weft_reference.inputs import choices
from weft_reference.models.encoders.family import HEADS, Encoder
from weft_reference.models.encoders.table import ENCODERS

# What the published checkpoints have in one way only, and the specs say so.
ONE_EPSILON = ("squeezebert",)
# Where tokens are on the page must be said.
PLACED = ("Bros",)
# The reference has its activation function in one way only.
ONE_ACTIVATION = ("ibert",)
Fit = Callable[[Random, Changes], Changes]

LABELLED = ("sequence-classification", "token-classification")
# Those that take what is given for whole: groups, buckets and bottlenecks follow from widths.
FITTED: dict[str, Fit] = {
    "rembert": lambda rng, _: {"input_embedding_size": rng.randint(4, 40), "output_embedding_size": rng.randint(4, 40)},
    "electra": lambda rng, _: {"embedding_size": rng.randint(4, 40)},
    "albert": lambda rng, given: {
        "embedding_size": rng.randint(4, 40),
        "num_hidden_layers": given["num_hidden_groups"] * rng.randint(1, 2),
    },
    "squeezebert": lambda rng, _: {
        "hidden_size": 32,
        "num_attention_heads": rng.choice((2, 4, 8)),
        "embedding_size": 32,
        "intermediate_size": 8 * rng.randint(2, 9),
    },
    "mobilebert": lambda rng, _: {
        "hidden_size": 32,
        "num_attention_heads": rng.choice((2, 4, 8)),
        "embedding_size": rng.randint(4, 40),
        "num_feedforward_networks": rng.randint(1, 4),
    },
    "convbert": lambda rng, _: {
        "hidden_size": 32,
        "num_attention_heads": rng.choice((2, 4, 8)),
        "intermediate_size": 2 * rng.randint(4, 50),
        "conv_kernel_size": rng.choice((3, 5, 7)),
    },
    "lilt": lambda rng, _: {"hidden_size": 48, "num_attention_heads": rng.choice((2, 4))},
    "bros": lambda rng, _: {"hidden_size": 64, "num_attention_heads": rng.choice((2, 4, 8))},
    "big_bird": lambda rng, _: {"block_size": rng.randint(6, 20)},
    "nystromformer": lambda rng, _: {"conv_kernel_size": rng.choice((3, 5, 7))},
    "canine": lambda rng, _: {
        "hidden_size": 32,
        "num_attention_heads": rng.choice((2, 4, 8)),
        "num_hash_functions": rng.choice((1, 2, 4, 8, 16)),
        "downsampling_rate": rng.randint(2, 4),
        "upsampling_kernel_size": rng.randint(1, 6),
        "local_transformer_stride": rng.choice((3, 8, 64)),
    },
    "openai_privacy_filter": lambda rng, _: {
        "num_attention_heads": 4,
        "num_key_value_heads": rng.choice((1, 2, 4)),
        "head_dim": 2 * rng.randint(2, 8),
        "sliding_window": rng.randint(1, 9),
        "num_local_experts": rng.randint(4, 7),
        "num_experts_per_tok": rng.randint(1, 4),
    },
    "yoso": lambda rng, _: {"conv_window": rng.choice((None, 3, 5)), "hash_code_len": rng.randint(1, 9)},
    "longformer": lambda rng, given: {
        "attention_window": rng.choice((6, [rng.choice((4, 8, 16)) for _ in range(given["num_hidden_layers"])])),
    },
    # The reference takes texts that no pooling makes shorter than three positions.
    "funnel": lambda rng, _: {
        "block_sizes": [rng.randint(1, 2), rng.randint(1, 2)],
        "block_repeats": rng.choice((None, [2, 1], [1, 2])),
        "d_model": 2 * rng.randint(2, 20),
        "n_head": rng.choice((1, 2, 4)),
        "d_head": rng.randint(2, 12),
        "d_inner": rng.randint(8, 60),
        "num_decoder_layers": rng.randint(0, 2),
    },
    # The reference takes no mask of padding with `uni`.
    "xlnet": lambda rng, _: {
        "attn_type": "bi",
        "d_model": 8 * rng.randint(1, 6),
        "n_head": rng.choice((1, 2, 4)),
        "n_layer": rng.randint(1, 3),
        "d_inner": rng.randint(8, 60),
    },
    "modernbert": lambda rng, given: {
        "num_hidden_layers": 2 if "layer_types" in given else rng.randint(1, 5),
        "local_attention": rng.choice((4, 6, 8, 12)),
    },
}


def random_case(model: str, rng: Random, path: str) -> Case:
    encoder = ENCODERS[model]
    names = {**HEADS, **encoder.more}
    shown = {extra.head for extra in encoder.extras}
    head = rng.choice([name for name in names if name not in encoder.without or name in shown])
    given = {**encoder.tiny, **encoder.config}
    for extra in encoder.extras:
        if rng.random() < 0.25:
            given |= extra.config
    config_class = getattr(transformers, f"{encoder.classes}Config")
    known = config_class(**given).to_dict()
    given |= sizes(rng, given)
    if model in FITTED:
        given |= FITTED[model](rng, given)
    drawn = functions(rng, known)
    if model in ONE_EPSILON:
        drawn.pop("layer_norm_eps", None)
    if model in ONE_ACTIVATION:
        drawn.pop("hidden_act", None)
    given |= drawn
    given["num_labels"] = rng.randint(1, 6) if head in LABELLED else 2
    given["is_decoder"] = head == "causal-lm"
    taken = inputs(encoder, rng, path, head, given)
    return Case(path, encoder.classes + names[head], config_class(**given), taken, "Drawn at random.", store(rng))


def sizes(rng: Random, given: Changes) -> Changes:
    """Heads, widths and layers that fit each other, under the names that the table uses."""
    heads, wide = rng.choice((1, 2, 3, 4, 6, 8)), rng.choice((4, 8, 12, 16))
    drawn: Changes = {"vocab_size": rng.randint(70, 300)}
    for name, value in {
        "hidden_size": heads * wide,
        "dim": heads * wide,
        "emb_dim": heads * wide,
        "num_attention_heads": heads,
        "n_heads": heads,
        "num_hidden_layers": rng.randint(1, 4),
        "n_layers": rng.randint(1, 4),
        "intermediate_size": rng.randint(8, 120),
        "hidden_dim": rng.randint(8, 120),
        "head_dim": 2 * rng.randint(2, 8),
    }.items():
        if name in given:
            drawn[name] = value
    return drawn


def inputs(encoder: Encoder, rng: Random, path: str, head: str, given: Changes) -> Changes:
    """Texts that leave room for positions that begin after the padding's."""
    longest = min(40, given.get("max_position_embeddings", 48) - encoder.pad - 1)
    padding = rng.choice(("right", "left")) if head != "causal-lm" else "right"

    def batch(key: str) -> dict[str, np.ndarray]:
        made = texts(rng, key, given["vocab_size"], longest, padding, encoder.pad, encoder.types)
        if not encoder.mask:
            del made["attention_mask"]
        return made

    if head == "multiple-choice":
        return choices([batch(path)] * rng.randint(1, 4))
    made = without_mask(rng, batch(path))
    for extra in encoder.extras:
        if "bbox" in extra.inputs and (encoder.classes in PLACED or rng.random() < 0.5):
            made["bbox"] = boxes(rng, made["input_ids"].shape, extra.inputs["bbox"].dtype)
    if "type_vocab_sizes" in given and rng.random() < 0.8:
        kinds = [grid(rng, made["input_ids"].shape, rows) for rows in given["type_vocab_sizes"]]
        made["token_type_ids"] = np.stack(kinds, axis=-1)
    # Where none is given, a question and its context must have three separators.
    known = any("global_attention_mask" in extra.inputs for extra in encoder.extras)
    if known and (head == "question-answering" or rng.random() < 0.5):
        made["global_attention_mask"] = grid(rng, made["input_ids"].shape, 2)
    return made


def boxes(rng: Random, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Left, top, right and bottom of every token."""
    first, more = grid(rng, (*shape, 2), 30), grid(rng, (*shape, 2), 30)
    made = np.concatenate([first, first + more], axis=-1)
    return made.astype(dtype) / 60 if dtype.kind == "f" else made
