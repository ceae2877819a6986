"""CPM-Ant and Muse Glimmer Assistant drawn at random: models of text with a forward pass of their own."""

from __future__ import annotations

from random import Random

import transformers

from weft_reference.cases import Case
from weft_reference.drawn.common import ACTIVATIONS, EPSILONS, store, texts
from weft_reference.inputs import floats
from weft_reference.models.muse_glimmer_assistant import told


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


def muse_glimmer_assistant(rng: Random, path: str) -> Case:
    kv_heads, layers, read = rng.choice((1, 2, 3)), rng.randint(1, 4), rng.randint(1, 4)
    config = transformers.MuseGlimmerAssistantConfig(
        hidden_size=rng.randint(4, 40),
        intermediate_size=rng.randint(8, 60),
        num_hidden_layers=layers,
        num_attention_heads=kv_heads * rng.choice((1, 2)),
        num_key_value_heads=kv_heads,
        head_dim=2 * rng.randint(2, 6),
        sliding_window=rng.randint(2, 12),
        layer_types=[rng.choice(("full_attention", "sliding_attention")) for _ in range(layers)],
        rms_norm_eps=rng.choice(EPSILONS),
        hidden_act=rng.choice(ACTIVATIONS),
        target_layer_ids=list(range(read)),
        max_position_embeddings=64,
    )
    batch, size = rng.randint(1, 3), config.hidden_size
    inputs = {
        "noise_embeds": floats(f"{path}.noise", (batch, rng.randint(1, 8), size), -2.0, 2.0),
        "context_hidden_states": floats(f"{path}.context", (batch, rng.randint(1, 30), read * size), -2.0, 2.0),
    }
    return Case(path, "MuseGlimmerAssistantModel", config, inputs, "Drawn at random.", store(rng), within=told)


DRAWN = {"cpmant": cpmant, "muse_glimmer_assistant": muse_glimmer_assistant}
