"""The encoders around BERT: a few lines a model, with what it alone has in config and inputs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from weft_reference.models.encoders.family import HEADS, Encoder, Extra
from weft_reference.models.encoders.rotary import FILE, NO_CAUSAL, POSITIONS, RECENT, UNTIED

NSP = {"next-sentence": "ForNextSentencePrediction"}
INNER = np.array([[7, 8, 1, 9, 10, 1, 11, 12], [1, 1, 13, 14, 15, 16, 17, 18]], np.int64)
INNER_PADDING = Extra(
    "inner-padding",
    "base",
    "Padding's id between tokens and an attention mask that sees it: positions do not count it.",
    inputs={"input_ids": INNER, "attention_mask": np.ones((2, 8), np.int64)},
    lengths=(8, 8),
)
LONGEST = Extra("full-length", "base", "As long as positions after the padding's allow.", lengths=(38, 20))
EDGES = np.array([[[i * 3, i + 5, i * 3 + 9, i + 11] for i in range(11)], [[60 - i, 2, 61, 7] for i in range(11)]])
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
SHARES = (
    np.stack([EDGES[..., 0], EDGES[..., 1], EDGES[..., 0] + 3, EDGES[..., 1] + 2], axis=-1).astype(np.float32) / 100
)

AMINO = np.array([[0, 5, 9, 33, 7, 60, 12, 13, 2], [0, 50, 32, 52, 32, 54, 2, 1, 1]], np.int64)
BIASES = {"norm_bias": True, "attention_bias": True, "mlp_bias": True, "classifier_bias": True}
WAVES = {
    "full_attention": {"rope_type": "default", "rope_theta": 500.0},
    "sliding_attention": {"rope_type": "default", "rope_theta": 50.0},
}

XPATHS = np.arange(132, dtype=np.int64).reshape(2, 11, 6) * 7
XLM_TINY = {"vocab_size": 99, "emb_dim": 32, "n_layers": 2, "n_heads": 4, "max_position_embeddings": 40}
NOT_XLM = ("causal-lm", "multiple-choice")
XLM_HEADS = {"masked-lm": "WithLMHeadModel", "question-answering": "ForQuestionAnsweringSimple"}
LANGS = {"langs": np.arange(22, dtype=np.int64).reshape(2, 11) % 3}
LANGUAGES = (
    replace(UNTIED, config={"tie_word_embeddings": False, "n_langs": 3}),
    POSITIONS,
    Extra("languages", "base", "Every token has a language.", {"n_langs": 3, "gelu_activation": False}, LANGS),
)

ENCODERS = {
    "roberta": Encoder("Roberta", pad=1, extras=(UNTIED, POSITIONS, INNER_PADDING, LONGEST)),
    "camembert": Encoder("Camembert", pad=1),
    "xlm-roberta": Encoder("XLMRoberta", {"type_vocab_size": 1}, pad=1, types=1),
    "xlm-roberta-xl": Encoder("XLMRobertaXL", pad=1, types=1),
    "roberta-prelayernorm": Encoder("RobertaPreLayerNorm", {"hidden_act": "relu"}, pad=1),
    "data2vec-text": Encoder("Data2VecText", pad=1),
    "ernie": Encoder(
        "Ernie",
        more={"pre-training": "ForPreTraining", **NSP},
        extras=(
            Extra("task-zero", "base", "use_task_id, and no task given: it is 0.", {"use_task_id": True}),
            Extra(
                "task-ids",
                "base",
                "use_task_id with tasks given.",
                {"use_task_id": True, "task_type_vocab_size": 5},
                {"task_type_ids": np.arange(22, dtype=np.int64).reshape(2, 11) % 5},
            ),
        ),
    ),
    "megatron-bert": Encoder("MegatronBert", more={"pre-training": "ForPreTraining", **NSP}, extras=(UNTIED,)),
    "electra": Encoder(
        "Electra",
        {"embedding_size": 20, "hidden_act": "gelu_new"},
        more={"pre-training": "ForPreTraining"},
        extras=(UNTIED, Extra("equal-widths", "base", "No layer after the embeddings.", {"embedding_size": 32})),
    ),
    "bert-generation": Encoder(
        "BertGeneration",
        types=0,
        without=tuple(name for name in HEADS if name not in ("base", "causal-lm")),
        more={"base": "Encoder", "causal-lm": "Decoder"},
        extras=(
            POSITIONS,
            replace(UNTIED, head="causal-lm", config={"tie_word_embeddings": False, "is_decoder": True}),
            Extra("sees-all", "causal-lm", "Not is_decoder: tokens see later ones."),
        ),
    ),
    "xmod": Encoder(
        "Xmod",
        {"languages": ["en_XX", "de_DE", "fr_XX"], "default_language": "de_DE"},
        pad=1,
        extras=(
            UNTIED,
            Extra(
                "languages",
                "base",
                "A language for each text; adapters have a normalisation of their own and narrow more.",
                {"adapter_layer_norm": True, "adapter_reuse_layer_norm": False, "adapter_reduction_factor": 4},
                {"lang_ids": np.array([2, 0], np.int64)},
            ),
            Extra(
                "normalised-before",
                "masked-lm",
                "Normalisation before attention and MLP; adapters have none and add to what they read.",
                {"pre_norm": True, "adapter_reuse_layer_norm": False, "ln_before_adapter": False},
                {"lang_ids": np.array([1, 2], np.int64)},
            ),
        ),
    ),
    "big_bird": Encoder(
        "BigBird",
        {"block_size": 4, "num_random_blocks": 1},
        without=("question-answering",),
        more={"pre-training": "ForPreTraining"},
        extras=(
            UNTIED,
            Extra("full-length", "base", "The longest text before attention is sparse.", lengths=(28, 20)),
            Extra(
                "scaled",
                "masked-lm",
                "Attention is never sparse; words are scaled; no biases of queries, keys and values.",
                {"attention_type": "original_full", "rescale_embeddings": True, "use_bias": False},
                lengths=(33, 30),
            ),
        ),
    ),
    "luke": Encoder(
        "Luke",
        {"entity_vocab_size": 20, "entity_emb_size": 8},
        pad=1,
        without=NO_CAUSAL,
        extras=(
            UNTIED,
            POSITIONS,
            FILE,
            Extra("one-query", "base", "Words and entities share queries.", {"use_entity_aware_attention": False}),
        ),
    ),
    "ibert": Encoder("IBert", pad=1, without=NO_CAUSAL, extras=(UNTIED, POSITIONS, FILE)),
    "markuplm": Encoder(
        "MarkupLM",
        {
            "max_depth": 6,
            "xpath_unit_hidden_size": 4,
            "max_xpath_tag_unit_embeddings": 20,
            "max_xpath_subs_unit_embeddings": 30,
            "tag_pad_id": 16,
            "subs_pad_id": 21,
        },
        without=(*NO_CAUSAL, "masked-lm", "multiple-choice"),
        extras=(
            INNER_PADDING,
            Extra(
                "xpaths",
                "token-classification",
                "Every token has a place in the page's tree.",
                {"num_labels": 3},
                {"xpath_tags_seq": XPATHS % 20, "xpath_subs_seq": XPATHS % 30},
            ),
        ),
    ),
    "xlm": Encoder("XLM", pad=2, types=0, without=NOT_XLM, more=XLM_HEADS, extras=LANGUAGES, tiny=XLM_TINY),
    "flaubert": Encoder(
        "Flaubert", pad=2, types=0, without=NOT_XLM, more=XLM_HEADS, extras=LANGUAGES, tiny=XLM_TINY
    ),
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
    "layoutlm": Encoder(
        "LayoutLM",
        {"max_2d_position_embeddings": 64},
        without=(*NO_CAUSAL, "multiple-choice"),
        extras=tuple(
            Extra(f"boxes-{head}", head, "Every token has a place on the page.", inputs={"bbox": EDGES})
            for head in ("base", "masked-lm", "token-classification")
        ),
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
            Extra(
                "boxes-token-classification",
                "token-classification",
                "Every token has a place on the page.",
                {"num_labels": 3, "bbox_scale": 10.0},
                {"bbox": SHARES},
            ),
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
    "nystromformer": Encoder(
        "Nystromformer",
        {"conv_kernel_size": 5},
        pad=1,
        without=NO_CAUSAL,
        extras=(UNTIED, Extra("full-length", "base", "As long as there are positions.", lengths=(40, 33))),
    ),
    **RECENT,
}
