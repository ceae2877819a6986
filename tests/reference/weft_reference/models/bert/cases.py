"""BERT: every head, and what its config, inputs and checkpoints vary in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from transformers import BertConfig

from weft_reference import stores
from weft_reference.cases import Case, Inputs, Store
from weft_reference.inputs import choices, text_batch

HEADS = {
    "base": "BertModel",
    "masked-lm": "BertForMaskedLM",
    "lm-head": "BertLMHeadModel",
    "next-sentence": "BertForNextSentencePrediction",
    "pre-training": "BertForPreTraining",
    "sequence-classification": "BertForSequenceClassification",
    "token-classification": "BertForTokenClassification",
    "question-answering": "BertForQuestionAnswering",
    "multiple-choice": "BertForMultipleChoice",
}
LABELLED = ("BertForSequenceClassification", "BertForTokenClassification")
LEGACY_NORMS = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}


def config(**changes: Any) -> BertConfig:
    tiny = {
        "vocab_size": 99,
        "hidden_size": 32,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "intermediate_size": 48,
        "max_position_embeddings": 40,
        "type_vocab_size": 2,
    }
    return BertConfig(**(tiny | changes))


def small(**changes: Any) -> BertConfig:
    """For cases that carry weight files."""
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
    return config(**({"vocab_size": 40, "max_position_embeddings": 16} | sizes | changes))


def case(
    name: str, model_class: str, notes: str, inputs: Inputs | None = None, store: Store | None = None, **changes: Any
) -> Case:
    chosen = (small if store else config)(**changes)
    return Case(f"bert/{name}", model_class, chosen, inputs or text_batch(chosen.vocab_size), notes, store)


def goldens() -> Iterator[Case]:
    for name, model_class in HEADS.items():
        changes = {"num_labels": 3} if model_class in LABELLED else {}
        batches = [text_batch(99, lengths, key=f"choice.{lengths}") for lengths in ((11, 7), (9, 11), (11, 5))]
        inputs = choices(batches) if name == "multiple-choice" else None
        yield case(name, model_class, "Two sequences, the second padded on the right.", inputs, **changes)

    text = text_batch(99)
    ids = text["input_ids"]
    yield case(
        "left-padding", "BertForMaskedLM", "The second sequence is padded on the left.", text_batch(99, padding="left")
    )
    yield case(
        "ids-only",
        "BertForMaskedLM",
        "No attention_mask, no token_type_ids: all ones, all zeros.",
        {"input_ids": text_batch(99, padding="none")["input_ids"]},
    )
    positions = np.stack([np.arange(11)[::-1], np.arange(20, 31)]).astype(np.int64)
    yield case(
        "position-ids", "BertModel", "Positions given, backwards and shifted.", text | {"position_ids": positions}
    )
    yield case("single-token", "BertModel", "One sequence of one token.", text_batch(99, (1,), key="single"))
    yield case("full-length", "BertModel", "As long as there are positions.", text_batch(99, (40, 33), key="full"))
    masked = text | {"attention_mask": (text["attention_mask"] * (ids % 3 != 0)).astype(np.int64)}
    yield case("scattered-mask", "BertForMaskedLM", "Masked positions between attended ones.", masked)
    for activation in ("relu", "gelu_new", "gelu_pytorch_tanh", "silu", "tanh"):
        yield case(
            f"hidden-act-{activation.replace('_', '-')}",
            "BertForMaskedLM",
            f"hidden_act {activation}.",
            num_hidden_layers=1,
            hidden_act=activation,
        )
    yield case("untied", "BertForMaskedLM", "The output projection has a weight of its own.", tie_word_embeddings=False)
    yield case(
        "untied-pre-training",
        "BertForPreTraining",
        "The output projection has a weight of its own.",
        tie_word_embeddings=False,
    )
    yield case("causal", "BertLMHeadModel", "is_decoder: no token sees a later one.", is_decoder=True)
    yield case(
        "causal-left-padding",
        "BertLMHeadModel",
        "is_decoder with padding on the left.",
        text_batch(99, padding="left"),
        is_decoder=True,
    )
    yield case("causal-base", "BertModel", "is_decoder without a head.", is_decoder=True)
    yield case(
        "norm-epsilon",
        "BertModel",
        "An epsilon that matters, and other sizes.",
        layer_norm_eps=0.1,
        hidden_size=20,
        num_attention_heads=5,
        intermediate_size=36,
        num_hidden_layers=2,
        type_vocab_size=4,
    )
    yield case("one-label", "BertForSequenceClassification", "Regression: one label.", num_labels=1)

    yield case("file", "BertForMaskedLM", "model.safetensors as save_pretrained writes it.", store=stores.whole)
    yield case("file-sharded", "BertForSequenceClassification", "Shards and an index.", store=stores.sharded("6KB"))
    yield case(
        "file-legacy-names",
        "BertForTokenClassification",
        "LayerNorm.gamma and LayerNorm.beta.",
        store=stores.renamed(LEGACY_NORMS),
    )
    yield case(
        "file-float16",
        "BertForQuestionAnswering",
        "float16 weights, float32 arithmetic.",
        store=stores.as_dtype(torch.float16),
    )
    yield case(
        "file-bfloat16",
        "BertForMaskedLM",
        "bfloat16 weights, float32 arithmetic.",
        store=stores.as_dtype(torch.bfloat16),
    )
    yield case(
        "file-prefixed-base",
        "BertModel",
        "The base model read from a head's checkpoint: names begin with bert.",
        store=stores.from_head("BertForNextSentencePrediction"),
    )
