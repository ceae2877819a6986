"""CPM-Ant drawn at random: prompts, segments and buckets of any number, padding on either side."""

from __future__ import annotations

from random import Random

import transformers

from weft_reference.cases import Case
from weft_reference.drawn.common import EPSILONS, store, texts


def cpmant(rng: Random, path: str) -> Case:
    vocab_size = rng.randint(30, 200)
    buckets, distance = rng.choice(((8, 10), (12, 20), (64, 8)))
    config = transformers.CpmAntConfig(
        vocab_size=vocab_size,
        hidden_size=rng.randint(4, 40),
        num_attention_heads=rng.randint(1, 5),
        dim_head=rng.randint(2, 12),
        dim_ff=rng.randint(8, 60),
        num_hidden_layers=rng.randint(1, 4),
        position_bias_num_buckets=buckets,
        position_bias_max_distance=distance,
        eps=rng.choice(EPSILONS),
        prompt_types=rng.randint(3, 6),
        prompt_length=rng.randint(1, 9),
        segment_types=rng.randint(3, 8),
    )
    ids = texts(rng, path, vocab_size, 40, rng.choice(("right", "left")))["input_ids"]
    head = rng.choice(("Model", "ForCausalLM"))
    return Case(path, f"CpmAnt{head}", config, {"input_ids": ids}, "Drawn at random.", store(rng))


DRAWN = {"cpmant": cpmant}
