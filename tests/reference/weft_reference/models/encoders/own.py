"""Encoders with embeddings, attention or layers of their own: a few lines a model, with what it alone has."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from weft_reference import stores
from weft_reference.models.encoders.family import HEADS, NSP, Encoder, Extra
from weft_reference.models.encoders.rotary import FILE, NO_CAUSAL, POSITIONS, UNTIED

ONLY_BASE = tuple(name for name in HEADS if name not in ("base", "question-answering"))
QUESTION = np.array([[5, 9, 33, 7, 60, 33, 12, 13, 14], [33, 50, 51, 52, 53, 54, 55, 0, 0]], np.int64)
RELATIVE = {
    "relative_attention": True,
    "position_biased_input": False,
    "pos_att_type": ["c2p", "p2c"],
    "max_position_embeddings": 20,
    "type_vocab_size": 2,
}
FAR = Extra(
    "far", "base", "Longer than the distances that are told apart.", {"max_position_embeddings": 40}, lengths=(33, 25)
)
AMINO = np.array([[0, 5, 9, 33, 7, 60, 12, 13, 2], [0, 50, 32, 52, 32, 54, 2, 1, 1]], np.int64)
BIASES = {"norm_bias": True, "attention_bias": True, "mlp_bias": True, "classifier_bias": True}
WAVES = {
    "full_attention": {"rope_type": "default", "rope_theta": 500.0},
    "sliding_attention": {"rope_type": "default", "rope_theta": 50.0},
}

ENCODERS = {
    "rembert": Encoder("RemBert", {"input_embedding_size": 20, "output_embedding_size": 44}),
    "distilbert": Encoder(
        "DistilBert",
        types=0,
        without=("causal-lm",),
        tiny={
            "vocab_size": 99,
            "dim": 32,
            "n_layers": 2,
            "n_heads": 4,
            "hidden_dim": 48,
            "max_position_embeddings": 40,
            "activation": "relu",
        },
        extras=(
            UNTIED,
            Extra("gelu", "masked-lm", "The activation that published models have.", {"activation": "gelu"}),
        ),
    ),
    "albert": Encoder(
        "Albert",
        {"embedding_size": 20, "num_hidden_layers": 4, "num_hidden_groups": 2},
        without=("causal-lm",),
        more={"pre-training": "ForPreTraining"},
        extras=(
            UNTIED,
            Extra(
                "inner-layers",
                "base",
                "Two layers in each of three groups.",
                {"num_hidden_groups": 3, "inner_group_num": 2},
            ),
            Extra(
                "equal-widths", "base", "The layer after the embeddings is there all the same.", {"embedding_size": 32}
            ),
        ),
    ),
    "mpnet": Encoder(
        "MPNet",
        {"max_position_embeddings": 200},
        pad=1,
        types=0,
        without=("causal-lm",),
        extras=(
            UNTIED,
            Extra("distances", "base", "Longer than the distances that are told apart.", lengths=(150, 140)),
        ),
    ),
    "xlnet": Encoder(
        "XLNet",
        {"vocab_size": 99, "d_model": 32, "n_layer": 2, "n_head": 4, "d_inner": 48, "use_mems_eval": False},
        pad=5,
        without=("masked-lm", "causal-lm", "question-answering"),
        more={"lm-head": "LMHeadModel", "question-answering-simple": "ForQuestionAnsweringSimple"},
        extras=(
            Extra("causal", "lm-head", "No token sees a later one; the reference takes no mask then.", {"attn_type": "uni"}, mask=False),
            Extra("clamped", "base", "Distances beyond three are one.", {"clamp_len": 3, "ff_activation": "relu"}),
            Extra("mean", "sequence-classification", "The mean of all states.", {"summary_type": "mean"}),
            Extra("first", "sequence-classification", "The first state as it is.", {"summary_type": "first", "summary_use_proj": False}),
            Extra("untied", "lm-head", "A head of its own, no mask.", {"tie_word_embeddings": False}, mask=False),
            Extra("file", "lm-head", "model.safetensors as save_pretrained writes it.", store=stores.whole),
        ),
        tiny={},
    ),
    "splinter": Encoder(
        "Splinter",
        {"question_token_id": 33},
        without=(*ONLY_BASE, "question-answering"),
        extras=(
            Extra(
                "question-token",
                "question-answering",
                "The first of two question tokens; none in the second text.",
                inputs={"input_ids": QUESTION % 55, "attention_mask": np.ones((2, 9), np.int64)},
                lengths=(9, 9),
            ),
            Extra(
                "padded-question",
                "question-answering",
                "Scores of padding are the lowest number.",
                inputs={"input_ids": QUESTION % 55},
                lengths=(9, 7),
            ),
        ),
    ),
    "fnet": Encoder(
        "FNet",
        {"type_vocab_size": 4, "num_attention_heads": 1},
        pad=3,
        types=4,
        mask=False,
        without=NO_CAUSAL,
        more={"pre-training": "ForPreTraining", **NSP},
        extras=(UNTIED, Extra("full-length", "base", "As long as there are positions.", lengths=(40, 33))),
    ),
    "squeezebert": Encoder(
        "SqueezeBert",
        {"embedding_size": 32, "q_groups": 2, "v_groups": 1, "post_attention_groups": 4, "intermediate_groups": 8},
        without=NO_CAUSAL,
        extras=(UNTIED,),
    ),
    "deberta": Encoder(
        "Deberta",
        RELATIVE,
        without=(*NO_CAUSAL, "multiple-choice"),
        extras=(
            replace(FAR, config={"max_position_embeddings": 40, "max_relative_positions": 12}),
            Extra(
                "positions",
                "masked-lm",
                "Positions in embeddings, no relative attention, no segments.",
                {
                    "relative_attention": False,
                    "position_biased_input": True,
                    "pos_att_type": None,
                    "type_vocab_size": 0,
                },
            ),
            Extra("content-to-position", "base", "Distances meet queries alone.", {"pos_att_type": ["c2p"]}),
            Extra("position-to-content", "base", "Distances meet keys alone.", {"pos_att_type": ["p2c"]}),
            Extra("left-padding", "masked-lm", "The second sequence is padded on the left.", padding="left"),
        ),
    ),
    "deberta-v2": Encoder(
        "DebertaV2",
        RELATIVE | {"position_buckets": 8, "norm_rel_ebd": "layer_norm", "share_att_key": True, "type_vocab_size": 0},
        without=NO_CAUSAL,
        extras=(
            FAR,
            Extra(
                "convolution",
                "base",
                "A convolution beside the first layer; distances have projections and no buckets.",
                {
                    "conv_kernel_size": 3,
                    "conv_groups": 2,
                    "conv_act": "gelu",
                    "share_att_key": False,
                    "position_buckets": -1,
                    "norm_rel_ebd": "none",
                    "max_relative_positions": 6,
                },
            ),
            Extra(
                "positions",
                "base",
                "Positions and segments in embeddings, no relative attention.",
                {"relative_attention": False, "position_biased_input": True, "type_vocab_size": 2},
            ),
        ),
    ),
    "mobilebert": Encoder(
        "MobileBert",
        {"embedding_size": 20, "intra_bottleneck_size": 16, "num_feedforward_networks": 3},
        without=NO_CAUSAL,
        more={"pre-training": "ForPreTraining", **NSP},
        extras=(
            UNTIED,
            Extra(
                "layer-norm",
                "base",
                "Layer normalisation; the pooler has no layer.",
                {"normalization_type": "layer_norm", "classifier_activation": False},
            ),
            Extra(
                "no-bottleneck",
                "base",
                "No bottleneck, no trigrams, one MLP.",
                {"use_bottleneck": False, "trigram_input": False, "num_feedforward_networks": 1},
            ),
            Extra(
                "bottleneck-attention",
                "base",
                "Attention within the narrow stream.",
                {"use_bottleneck_attention": True},
            ),
        ),
    ),
    "convbert": Encoder(
        "ConvBert",
        {"embedding_size": 20, "conv_kernel_size": 5},
        pad=1,
        without=NO_CAUSAL,
        extras=(
            UNTIED,
            Extra(
                "groups",
                "base",
                "MLPs in groups; one head in four attends.",
                {"num_groups": 2, "head_ratio": 4, "embedding_size": 32},
            ),
            Extra("one-head", "base", "Fewer heads than the ratio: one attends.", {"head_ratio": 8}),
        ),
    ),
    "nomic_bert": Encoder(
        "NomicBert",
        without=(*NO_CAUSAL, "multiple-choice", "question-answering"),
        extras=(
            UNTIED,
            FILE,
            POSITIONS,
            Extra("head-dim", "base", "Heads wider than their share.", {"head_dim": 12}),
        ),
    ),
    "esm": Encoder(
        "Esm",
        {"mask_token_id": 32, "pad_token_id": 1, "position_embedding_type": "rotary", "token_dropout": True},
        pad=1,
        types=0,
        without=(*NO_CAUSAL, "multiple-choice", "question-answering"),
        extras=(
            Extra(
                "masked-tokens",
                "masked-lm",
                "Two tokens of the second text are masked.",
                inputs={"input_ids": AMINO},
                lengths=(9, 7),
            ),
            Extra(
                "absolute",
                "masked-lm",
                "A table of positions; embeddings are normalised.",
                {"position_embedding_type": "absolute", "emb_layer_norm_before": True, "token_dropout": False},
            ),
            Extra(
                "absolute-left-padding",
                "base",
                "A table of positions, padding on the left.",
                {"position_embedding_type": "absolute"},
                padding="left",
            ),
            FILE,
            replace(POSITIONS, name="rotary-position-ids"),
            Extra("no-mask-token", "base", "No mask token and no dropout of it.", {"mask_token_id": None, "token_dropout": False}),
        ),
    ),
    "modernbert": Encoder(
        "ModernBert",
        {"num_hidden_layers": 4, "local_attention": 8, "pad_token_id": 0},
        types=0,
        without=NO_CAUSAL,
        extras=(
            UNTIED,
            POSITIONS,
            Extra("unseen", "base", "Padding farther from the last token than layers see.", {"local_attention": 4}),
            Extra(
                "mean",
                "sequence-classification",
                "The mean of all tokens; biases everywhere.",
                BIASES | {"classifier_pooling": "mean", "num_labels": 3},
                padding="left",
            ),
            Extra("biases", "masked-lm", "Biases everywhere but in the decoder.", BIASES | {"decoder_bias": False}),
            Extra(
                "layer-types",
                "base",
                "Two layers in the other order, other wavelengths.",
                {
                    "num_hidden_layers": 2,
                    "layer_types": ["sliding_attention", "full_attention"],
                    "rope_parameters": WAVES,
                },
                padding="left",
            ),
        ),
    ),
}
