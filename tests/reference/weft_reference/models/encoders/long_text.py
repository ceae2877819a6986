"""Encoders of long texts, whose tokens do not all attend to each other: windows, blocks, landmarks and hashes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from weft_reference.models.encoders.family import Encoder, Extra
from weft_reference.models.encoders.rotary import FILE, NO_CAUSAL, POSITIONS, UNTIED

GLOBAL = np.zeros((2, 11), np.int64)
GLOBAL[0, [0, 6]] = GLOBAL[1, [2, 9]] = 1
SEPARATED = np.array([[0, 5, 9, 2, 2, 33, 7, 60, 12, 13, 2], [0, 50, 33, 52, 2, 2, 53, 2, 1, 1, 1]], np.int64)
FACTORS = {"attention_type": "factorized", "pooling_type": "max"}
FILE_BASE = replace(FILE, head="token-classification")

ENCODERS = {
    "nystromformer": Encoder(
        "Nystromformer",
        {"conv_kernel_size": 5},
        pad=1,
        without=NO_CAUSAL,
        extras=(UNTIED, Extra("full-length", "base", "As long as there are positions.", lengths=(40, 33))),
    ),
    "canine": Encoder(
        "Canine",
        without=("masked-lm", *NO_CAUSAL),
        tiny={
            "hidden_size": 32,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "intermediate_size": 48,
            "max_position_embeddings": 40,
            "type_vocab_size": 2,
            "downsampling_rate": 3,
            "upsampling_kernel_size": 4,
            "num_hash_functions": 4,
            "num_hash_buckets": 50,
            "local_transformer_stride": 4,
        },
        extras=(
            FILE_BASE,
            POSITIONS,
            Extra(
                "whole-molecules",
                "sequence-classification",
                "Molecules without characters left over, blocks longer than a text, an odd kernel.",
                {"downsampling_rate": 2, "upsampling_kernel_size": 5, "local_transformer_stride": 128, "num_labels": 3},
                lengths=(12, 8),
            ),
        ),
    ),
    "yoso": Encoder(
        "Yoso",
        {"hash_code_len": 5, "type_vocab_size": 2},
        pad=1,
        without=NO_CAUSAL,
        extras=(
            UNTIED,
            FILE,
            Extra("convolved", "base", "A convolution of values, without those of padding.", {"conv_window": 5}),
            Extra("long-hashes", "masked-lm", "As many bits as published models have.", {"hash_code_len": 9}, lengths=(33, 25)),
        ),
    ),
    "funnel": Encoder(
        "Funnel",
        types=3,
        without=NO_CAUSAL,
        more={"blocks": "BaseModel", "pre-training": "ForPreTraining"},
        tiny={
            "vocab_size": 99,
            "block_sizes": [2, 1, 2],
            "num_decoder_layers": 2,
            "d_model": 32,
            "n_head": 4,
            "d_head": 6,
            "d_inner": 48,
        },
        extras=(
            UNTIED,
            FILE,
            Extra(
                "repeats",
                "base",
                "Layers that run several times; the decoder takes what lies within the first block.",
                {"block_repeats": [2, 3, 1]},
            ),
            Extra("factorized", "base", "Scores of positions in factors, pooled by the maximum.", FACTORS, lengths=(16, 9)),
            Extra("keys", "base", "Keys and values are pooled too.", {"pool_q_only": False}, padding="left"),
            Extra("last-token", "base", "The last token is pooled.", {"truncate_seq": False}, lengths=(12, 10)),
            Extra("first-token", "base", "The first token is pooled.", {"separate_cls": False, "pool_q_only": False}),
            Extra("pooled-first-token", "blocks", "The first token is pooled, of queries alone.", {"separate_cls": False}),
            Extra("one-block", "base", "Nothing is pooled.", {"block_sizes": [2]}, mask=False),
            *(
                Extra(f"length-{n}", "blocks", "So short that the last block has two positions or three.", lengths=(n, n - n // 3))
                for n in (5, 6, 7)
            ),
            Extra("short", "base", "So short that the last block has three positions.", lengths=(5, 4)),
        ),
    ),
    "longformer": Encoder(
        "Longformer",
        {"attention_window": 4},
        pad=1,
        without=(*NO_CAUSAL, "multiple-choice", "question-answering"),
        extras=(
            UNTIED,
            POSITIONS,
            FILE,
            Extra("global", "base", "Global tokens, one of them padding.", inputs={"global_attention_mask": GLOBAL}),
            Extra(
                "global-left-padding",
                "masked-lm",
                "Global tokens, two of them padding; a window for each layer.",
                {"attention_window": [4, 6]},
                {"global_attention_mask": GLOBAL[::-1].copy()},
                padding="left",
            ),
            Extra(
                "global-token-classification",
                "token-classification",
                "Global tokens in the first text alone.",
                {"num_labels": 3},
                {"global_attention_mask": GLOBAL * [[1], [0]]},
            ),
            Extra(
                "windows",
                "base",
                "A window for each layer, the second as wide as the texts; no multiple of either.",
                {"attention_window": [4, 40]},
                lengths=(19, 13),
            ),
            Extra(
                "first-token-padding",
                "sequence-classification",
                "The global token of the second text is padding.",
                {"num_labels": 3},
                padding="left",
            ),
            Extra(
                "global-classification",
                "sequence-classification",
                "Global tokens given in place of the first.",
                {"num_labels": 3},
                {"global_attention_mask": GLOBAL},
            ),
            Extra(
                "question-answering",
                "question-answering",
                "Tokens before the first separator are global.",
                inputs={"input_ids": SEPARATED},
                lengths=(11, 8),
            ),
            Extra(
                "global-question-answering",
                "question-answering",
                "Global tokens given; no text has three separators.",
                inputs={"global_attention_mask": GLOBAL},
            ),
        ),
    ),
}
