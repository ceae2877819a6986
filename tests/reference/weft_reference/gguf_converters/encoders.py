"""Encoders."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft_reference.gguf_converters.changes import PLUS_ONE, Change
from weft_reference.gguf_converters.converter import HEAD, LLAMA, MLP, NORM, SIZES, Converter


def _padding(c: Any) -> int:
    """The first position of RoBERTa's, those before which are of padding."""
    return c.pad_token_id + 1


# Rows of padding are left out; those that a checkpoint has of it are zeros.
POSITIONS = {
    r"position_embeddings\.weight$": Change(
        lambda w, c: w[_padding(c) :], lambda w, c: np.concatenate([np.zeros((_padding(c), w.shape[1]), w.dtype), w])
    )
}
ROBERTA = Converter(
    "bert",
    {name: key for name, key in (SIZES | MLP | NORM).items() if name != "context_length"},
    POSITIONS,
    rope=False,
    fixed={"attention.causal": False},
    made=lambda c: {"context_length": c.max_position_embeddings - _padding(c)},
    dropped=("pooler.dense",),
)


def _modernbert(c: Any) -> dict[str, Any]:
    rope = c.rope_parameters
    return {
        "rope.freq_base": float(rope["full_attention"]["rope_theta"]),
        "rope.freq_base_swa": float(rope["sliding_attention"]["rope_theta"]),
        "rope.scaling.type": "none",
        "attention.sliding_window_pattern": 1 + c.layer_types[1:].index("full_attention"),
    }


CONVERTERS = {
    "bert": Converter(
        "bert",
        SIZES | MLP | NORM,
        rope=False,
        fixed={"attention.causal": False},
        prefix="bert.",
        dropped=("pooler.dense",),
    ),
    "roberta": ROBERTA,
    "xlm-roberta": ROBERTA,
    "distilbert": Converter(
        "bert",
        SIZES | {"feed_forward_length": "hidden_dim"},
        rope=False,
        fixed={"attention.causal": False, "attention.layer_norm_epsilon": 1e-12},
    ),
    "jina_embeddings_v3": Converter(
        "jina-bert-v3",
        {name: key for name, key in (SIZES | MLP | NORM).items() if name != "context_length"},
        fixed={"attention.causal": False},
        made=lambda c: {"context_length": c.max_position_embeddings - _padding(c)},
        dropped=("pooler.dense",),
    ),
    "modernbert": Converter(
        "modern-bert",
        SIZES
        | MLP
        | {
            "vocab_size": "vocab_size",
            "attention.layer_norm_epsilon": "norm_eps",
            "attention.sliding_window": "local_attention",
            "hidden_act": "hidden_activation",
        },
        rope=False,
        fixed={"attention.causal": False},
        made=_modernbert,
    ),
    "nomic_bert": Converter("nomic-bert", SIZES | MLP | NORM, fixed={"attention.causal": False}, prefix="nomic_bert."),
    "gemma_embedding": Converter(
        "gemma-embedding",
        LLAMA | HEAD,
        PLUS_ONE,
        # As `config.json` has it: the positions on both sides, where the loaded configuration has those on one and its own.
        made=lambda c: {"attention.sliding_window": 2 * (c.sliding_window - 1)},
    ),
    "eurobert": Converter("eurobert", LLAMA | HEAD, fixed={"attention.causal": False}),
}
