"""Encoders of documents and tables: tokens with boxes, cells, rows and columns."""

from __future__ import annotations

import numpy as np

from weft_reference.models.encoders.family import HEADS, Encoder, Extra
from weft_reference.models.encoders.rotary import NO_CAUSAL

EDGES = np.array([[[i * 3, i + 5, i * 3 + 9, i + 11] for i in range(11)], [[60 - i, 2, 61, 7] for i in range(11)]])
SHARES = (
    np.stack([EDGES[..., 0], EDGES[..., 1], EDGES[..., 0] + 3, EDGES[..., 1] + 2], axis=-1).astype(np.float32) / 100
)

# Segment, column, row, whether it was an answer, ranks and relations: a question, a header, cells of one and two tokens.
TABLE = np.array(
    [
        [[0, 0, 0], [0, 0, 0], [1, 1, 0], [1, 2, 0], [1, 1, 1], [1, 1, 1], [1, 2, 1], [1, 1, 2], [1, 2, 2], [1, 9, 9], [1, 9, 9]],
        [[0, 0, 0], [1, 1, 0], [1, 2, 0], [1, 1, 1], [1, 2, 1], [1, 2, 1], [1, 3, 1], [0, 0, 0], [0, 0, 0], [0, 0, 0], [0, 0, 0]],
    ]
)
TABLE = np.concatenate([TABLE, TABLE[..., 1:2] % 2, TABLE[..., 2:3], 3 - TABLE[..., 2:3] % 4, TABLE[..., 1:2] % 3], axis=-1)

ENCODERS = {
    "tapas": Encoder(
        "Tapas",
        {"type_vocab_sizes": [3, 10, 12, 2, 10, 10, 10], "max_num_rows": 6, "max_num_columns": 5, "num_aggregation_labels": 4},
        types=0,
        without=("causal-lm", "token-classification", "multiple-choice"),
        extras=(
            *(
                Extra(f"table-{head}", head, "A table of cells.", inputs={"token_type_ids": TABLE})
                for head in ("base", "masked-lm", "sequence-classification", "question-answering")
            ),
            Extra(
                "absolute-positions",
                "question-answering",
                "Positions are not counted by cell, and the column may be none.",
                {"reset_position_index_per_cell": False, "allow_empty_column_selection": True, "num_aggregation_labels": 0},
                {"token_type_ids": TABLE},
            ),
            Extra(
                "left-padding",
                "question-answering",
                "Padding on the left; the logits of tokens are doubled.",
                {"temperature": 0.5},
                {"token_type_ids": TABLE[:, ::-1].copy()},
                "left",
            ),
        ),
    ),
    "layoutlm": Encoder(
        "LayoutLM",
        {"max_2d_position_embeddings": 64},
        without=(*NO_CAUSAL, "multiple-choice"),
        extras=tuple(
            Extra(f"boxes-{head}", head, "Every token has a place on the page.", inputs={"bbox": EDGES})
            for head in ("base", "masked-lm", "token-classification")
        ),
    ),
    "lilt": Encoder(
        "Lilt",
        {"hidden_size": 48, "max_2d_position_embeddings": 64},
        without=(*NO_CAUSAL, "masked-lm", "multiple-choice"),
        extras=(
            Extra("boxes", "base", "Every token has a place on the page.", inputs={"bbox": EDGES}),
            Extra(
                "boxes-token-classification",
                "token-classification",
                "Every token has a place on the page.",
                {"channel_shrink_ratio": 2},
                {"bbox": EDGES},
            ),
        ),
    ),
    "bros": Encoder(
        "Bros",
        {"hidden_size": 64},
        without=tuple(HEADS),
        extras=(
            Extra("boxes", "base", "Every token has a place on the page.", inputs={"bbox": SHARES}, padding="left"),
            Extra("integer-boxes", "base", "Boxes in whole numbers.", {"bbox_scale": 0.5}, {"bbox": EDGES}),
            Extra(
                "boxes-token-classification",
                "token-classification",
                "Every token has a place on the page.",
                {"num_labels": 3, "bbox_scale": 10.0},
                {"bbox": SHARES},
            ),
        ),
    ),
}
