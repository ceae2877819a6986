"""Encoders that came after the first of BERT's kin, most with rotary positions; and what both tables say alike."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from weft_reference import stores
from weft_reference.models.encoders.family import HEADS, Encoder, Extra

UNTIED = Extra("untied", "masked-lm", "The output projection has a weight of its own.", {"tie_word_embeddings": False})
BACKWARDS = np.stack([np.arange(11)[::-1], np.arange(20, 31)]).astype(np.int64)
POSITIONS = Extra("position-ids", "base", "Positions given, backwards and shifted.", inputs={"position_ids": BACKWARDS})
UNMASKED = Extra("without-mask", "base", "No attention mask: it follows from the padding's id.", mask=False)
NO_POOLER = Extra(
    "no-pooler", "base", "A checkpoint without a pooler: hidden states alone.", build={"add_pooling_layer": False}
)
FILE = Extra(
    "file",
    "masked-lm",
    "model.safetensors as save_pretrained writes it, under the names of published checkpoints.",
    store=stores.whole,
)
NO_CAUSAL = ("causal-lm",)
LLAMA_BIASES = {"attention_bias": True, "mlp_bias": True}
GLYPHS = {
    "input_shape_ids": np.arange(22, dtype=np.int64).reshape(2, 11) * 7 % 50,
    "input_pronunciation_ids": np.arange(22, dtype=np.int64).reshape(2, 11) * 3 % 40,
}

RECENT = {
    "eurobert": Encoder(
        "EuroBert",
        {"num_key_value_heads": 2, "pad_token_id": 0},
        types=0,
        without=(*NO_CAUSAL, "multiple-choice", "question-answering"),
        extras=(
            POSITIONS,
            Extra("tied-biases", "masked-lm", "Tied; biases everywhere.", LLAMA_BIASES | {"tie_word_embeddings": True}),
            Extra("bos", "sequence-classification", "The first token.", {"classifier_pooling": "bos", "num_labels": 3}),
            Extra(
                "mean",
                "sequence-classification",
                "The mean of all tokens; the second sequence is padded on the left.",
                {"classifier_pooling": "mean", "num_labels": 3},
                padding="left",
            ),
        ),
    ),
    "openai_privacy_filter": Encoder(
        "OpenAIPrivacyFilter",
        {
            "num_key_value_heads": 2,
            "head_dim": 12,
            "pad_token_id": 0,
            "sliding_window": 3,
            "num_local_experts": 4,
            "num_experts_per_tok": 4,
        },
        types=0,
        without=(*NO_CAUSAL, "masked-lm", "sequence-classification", "multiple-choice", "question-answering"),
        extras=(
            POSITIONS,
            Extra("sparse", "token-classification", "Two of five experts.", {"num_local_experts": 5, "num_experts_per_tok": 2}),
            Extra(
                "clamped",
                "base",
                "Clamped closely; no biases; other frequencies.",
                {
                    "swiglu_limit": 0.1,
                    "swiglu_alpha": 1.2,
                    "attention_bias": False,
                    "rope_parameters": {"rope_type": "default", "rope_theta": 100.0},
                },
            ),
        ),
    ),
    "ultrabert": Encoder(
        "Ultrabert",
        {"num_key_value_heads": 2, "pad_token_id": 0, "sliding_window": 2, "num_hidden_layers": 3, "prediction_head_size": 14},
        types=0,
        without=(*NO_CAUSAL, "multiple-choice"),
        extras=(
            POSITIONS,
            FILE,
            Extra("tied-biases", "masked-lm", "Tied; biases everywhere.", LLAMA_BIASES | {"tie_word_embeddings": True}),
            Extra(
                "mean",
                "sequence-classification",
                "The mean of all tokens; the second sequence is padded on the left.",
                {"classifier_pooling": "mean", "num_labels": 3},
                padding="left",
            ),
        ),
    ),
    "esmc": Encoder(
        "Esmc",
        {"mask_token_id": 32},
        pad=1,
        types=0,
        without=(*NO_CAUSAL, "multiple-choice", "question-answering"),
        extras=(
            POSITIONS,
            FILE,
            Extra("biases", "masked-lm", "Biases everywhere; three layers.", LLAMA_BIASES | {"num_hidden_layers": 3}),
        ),
    ),
    "jina_embeddings_v3": Encoder(
        "JinaEmbeddingsV3",
        {"type_vocab_size": 1},
        pad=1,
        types=1,
        without=(*NO_CAUSAL, "multiple-choice"),
        extras=(UNTIED, FILE, POSITIONS),
    ),
    "gte": Encoder(
        "Gte",
        {"type_vocab_size": 1},
        pad=1,
        types=1,
        without=(*NO_CAUSAL, "multiple-choice", "question-answering"),
        extras=(UNTIED, FILE, POSITIONS),
    ),
    "roc_bert": Encoder(
        "RoCBert",
        {"shape_vocab_size": 50, "shape_embed_dim": 12, "pronunciation_vocab_size": 40, "pronunciation_embed_dim": 20},
        more={"pre-training": "ForPreTraining"},
        extras=(
            UNTIED,
            Extra("glyphs", "masked-lm", "Shapes and sounds given.", inputs=GLYPHS),
            Extra(
                "glyphs-base", "base", "Shapes and sounds given, padding on the left.", inputs=GLYPHS, padding="left"
            ),
            Extra("no-shape", "base", "Sounds alone.", {"enable_shape": False}, GLYPHS),
            Extra("no-pronunciation", "base", "Shapes alone.", {"enable_pronunciation": False}, GLYPHS),
        ),
    ),
    "roformer": Encoder(
        "RoFormer",
        {"embedding_size": 20},
        extras=(
            UNTIED,
            Extra(
                "rotary-value",
                "base",
                "Values turn too; no layer after the embeddings.",
                {"rotary_value": True, "embedding_size": None},
            ),
            FILE,
        ),
    ),
    "dpr": Encoder(
        "DPR",
        without=tuple(HEADS),
        more={"question": "QuestionEncoder", "context": "ContextEncoder", "reader": "Reader"},
        extras=(
            Extra("question-projected", "question", "Vectors of another width.", {"projection_dim": 20}),
            Extra("context-projected", "context", "Vectors of another width.", {"projection_dim": 20}, padding="left"),
            replace(UNMASKED, head="question"),
            replace(UNMASKED, name="context-without-mask", head="context", padding="left"),
            Extra("reader-without-mask", "reader", "No attention mask: padding is seen.", mask=False),
        ),
    ),
}
