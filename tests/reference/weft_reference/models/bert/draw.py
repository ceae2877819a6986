"""BERT checkpoints drawn at random: sizes, heads, padding and optional inputs that no golden was written for."""

from __future__ import annotations

from random import Random

import numpy as np
from transformers import BertConfig

from weft_reference import stores
from weft_reference.cases import Case
from weft_reference.inputs import choices, text_batch
from weft_reference.models.bert.cases import HEADS

ACTIVATIONS = ("gelu", "gelu", "gelu_new", "gelu_pytorch_tanh", "relu", "silu", "tanh")


def random_config(rng: Random) -> BertConfig:
    heads = rng.choice((1, 2, 3, 4, 6, 8))
    return BertConfig(
        vocab_size=rng.randint(30, 400),
        hidden_size=heads * rng.choice((4, 6, 8, 10, 16, 32)),
        num_hidden_layers=rng.randint(1, 5),
        num_attention_heads=heads,
        intermediate_size=rng.randint(8, 300),
        max_position_embeddings=rng.randint(8, 130),
        type_vocab_size=rng.randint(1, 3),
        hidden_act=rng.choice(ACTIVATIONS),
        layer_norm_eps=rng.choice((1e-12, 1e-5, 1e-3)),
        tie_word_embeddings=rng.random() < 0.75,
        is_decoder=rng.random() < 0.2,
        num_labels=rng.randint(1, 9),
        pad_token_id=rng.randint(0, 4),
    )


def random_case(rng: Random, path: str) -> Case:
    name, model_class = rng.choice(sorted(HEADS.items()))
    config = random_config(rng)
    if name == "question-answering":
        # The reference takes the scores for starts and ends apart, and fails with more or fewer labels.
        config.num_labels = 2
    longest = rng.randint(1, config.max_position_embeddings)

    def batch(key: str) -> dict[str, np.ndarray]:
        padding = "right" if config.is_decoder else rng.choice(("right", "left"))
        return text_batch(config.vocab_size, lengths, padding, config.type_vocab_size, config.pad_token_id, key)

    lengths = (longest, *(rng.randint(1, longest) for _ in range(rng.randint(0, 4))))
    key = f"{path}.{rng.random()}"
    if name == "multiple-choice":
        inputs = choices([batch(f"{key}.{index}") for index in range(rng.randint(1, 4))])
    else:
        inputs = batch(key)
    for optional in ("token_type_ids", "attention_mask"):
        if rng.random() < 0.2:
            del inputs[optional]
    if name != "multiple-choice" and rng.random() < 0.2:
        shape = inputs["input_ids"].shape
        positions = [rng.randrange(config.max_position_embeddings) for _ in range(shape[0] * shape[1])]
        inputs["position_ids"] = np.array(positions, np.int64).reshape(shape)
    store = stores.sharded("40KB") if rng.random() < 0.3 else stores.whole
    return Case(path, model_class, config, inputs, "Drawn at random.", store)
