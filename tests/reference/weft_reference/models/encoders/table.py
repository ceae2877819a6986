"""The encoders around BERT: a few lines a model, with what it alone has in config and inputs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from weft_reference.models.encoders import documents, long_text, own
from weft_reference.models.encoders.family import HEADS, NSP, Encoder, Extra

from weft_reference.models.encoders.rotary import FILE, NO_CAUSAL, NO_POOLER, POSITIONS, RECENT, UNMASKED, UNTIED

INNER = np.array([[7, 8, 1, 9, 10, 1, 11, 12], [1, 1, 13, 14, 15, 16, 17, 18]], np.int64)
INNER_PADDING = Extra(
    "inner-padding",
    "base",
    "Padding's id between tokens and an attention mask that sees it: positions do not count it.",
    inputs={"input_ids": INNER, "attention_mask": np.ones((2, 8), np.int64)},
    lengths=(8, 8),
)
LONGEST = Extra("full-length", "base", "As long as positions after the padding's allow.", lengths=(38, 20))
XPATHS = np.arange(132, dtype=np.int64).reshape(2, 11, 6) * 7
XLM_TINY = {"vocab_size": 99, "emb_dim": 32, "n_layers": 2, "n_heads": 4, "max_position_embeddings": 40}
NOT_XLM = ("causal-lm", "multiple-choice")
XLM_HEADS = {"masked-lm": "WithLMHeadModel", "question-answering": "ForQuestionAnsweringSimple"}
LANGS = {"langs": np.arange(22, dtype=np.int64).reshape(2, 11) % 3}
LANGUAGES = (
    replace(UNTIED, config={"tie_word_embeddings": False, "n_langs": 3}),
    POSITIONS,
    Extra("languages", "base", "Every token has a language.", {"n_langs": 3, "gelu_activation": False}, LANGS),
    replace(UNMASKED, notes="No attention mask: as many tokens as are no padding are seen."),
    replace(
        UNMASKED,
        name="left-without-mask",
        notes="No attention mask, padding on the left: it is seen, and not the last tokens.",
        padding="left",
    ),
)

ENCODERS = {
    "roberta": Encoder("Roberta", pad=1, extras=(UNTIED, POSITIONS, INNER_PADDING, LONGEST, NO_POOLER)),
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
    "flaubert": Encoder("Flaubert", pad=2, types=0, without=NOT_XLM, more=XLM_HEADS, extras=LANGUAGES, tiny=XLM_TINY),
    **own.ENCODERS,
    **documents.ENCODERS,
    **long_text.ENCODERS,
    **RECENT,
}
