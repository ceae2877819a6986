"""Decoders drawn at random: what the table of decoders varies, together and in other sizes."""

from __future__ import annotations

from random import Random

import transformers

from weft_reference.cases import Case
from weft_reference.drawn.common import Changes, functions, store, texts, without_mask
from weft_reference.models.decoders.family import LABELLED, Decoder

HEADS = ("num_attention_heads", "n_head", "n_heads", "num_heads", "attention_heads")
WIDTHS = ("hidden_size", "n_embd", "d_model")
LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")
INNER = ("intermediate_size", "ffn_dim", "dff", "n_inner")
KEY_HEADS = ("num_key_value_heads", "num_kv_heads")
POSITIONS = ("max_position_embeddings", "n_positions")
# Lists of one entry for each layer, where they are lists.
BY_LAYER = ("layer_types", "layers_block_type", "mlp_layer_types", "indexer_types", "moe_topk")
# Fields beside which each head has keys and values of its own.
ALL_HEADS = {"kv_lora_rank", "use_shared_attention_adapter"}
# Half of the heads are subtracted from the others; projections are joined in four pieces.
HEADS_BY = {"diffllama": 2, "codegen": 4}
# The projection after attention takes heads to be shares of the hidden size.
EVEN_SHARES = ("helium",)
# A quarter of a head's dimensions is rotated, in pairs.
QUARTER_ROTARY = ("stablelm", "gpt_neox", "qwen3_next")
# What rotates in a head is its own field, which this one repeats.
ROTARY_HEADS = ("longcat_flash",)
# The reference writes the convolutions of queries, keys and values as equal thirds of one.
EVEN_THIRDS = ("olmo_hybrid",)
# The layers without which the reference does not run: the first with attention, or those that share one.
FEWEST = {"recurrent_gemma": 3, "zamba": 3, "zamba2": 5}
# What the published checkpoints have in one way only, and the specs say so.
ONE_ACTIVATION = ("openai_gpt", "bloom", "mpt", "ctrl", "apertus", "diffllama")
# Opened from files, the reference empties padding's row of the table where padding has a name.
UNNAMED_PADDING = ("youtu",)
# Its variants exclude each other.
ONE_OF = ("falcon",)
# What padding before the text sees is arbitrary.
RIGHT_ONLY = ("openai_gpt",)


def random_case(decoder: Decoder, rng: Random, path: str) -> Case:
    head, suffix = rng.choice(
        [item for item in decoder.heads.items() if hasattr(transformers, decoder.prefix + item[1])]
    )
    config_class = getattr(transformers, f"{decoder.config or decoder.prefix}Config")
    given = decoder.base | decoder.changes
    chosen = [changes for changes in decoder.cases.values() if rng.random() < 0.3]
    for changes in rng.sample(chosen, 1) if chosen and decoder.model in ONE_OF else chosen:
        given |= changes
    known = config_class(**given).to_dict()
    if given.get("sliding_window", 0) is None and "sliding_attention" in (known.get("layer_types") or ()):
        # One change took the window away, another asks for layers that have it.
        given["sliding_window"] = rng.randint(1, 12)
    given |= sizes(decoder, rng, given)
    given |= by_layer(given)
    if decoder.model not in ONE_ACTIVATION:
        given |= functions(rng, known)
    given["num_labels"] = rng.randint(1, 6) if head in LABELLED else 2
    pad = rng.randint(0, 4)
    given["pad_token_id"] = None if decoder.model in UNNAMED_PADDING else pad
    config = config_class(**given)
    longest = min([known[name] for name in POSITIONS if isinstance(known.get(name), int)] + [40])
    padding = "right" if decoder.model in RIGHT_ONLY else rng.choice(("right", "left"))
    inputs = texts(rng, path, given["vocab_size"], longest, padding, pad)
    if rng.random() < 0.2 and head not in LABELLED:
        inputs = without_mask(rng, inputs)
    attention = "sdpa" if getattr(config, "alibi", False) is True else "eager"
    notes = "Drawn at random."
    return Case(path, decoder.prefix + suffix, config, inputs, notes, store(rng), attention=attention, without=decoder.without)


def sizes(decoder: Decoder, rng: Random, given: Changes) -> Changes:
    """Heads, widths and layers that fit each other, under the names that the table uses."""
    drawn: Changes = {"vocab_size": rng.randint(30, 300)}
    heads = rng.choice((1, 2, 3, 4, 6, 8))
    wide = rng.choice((4, 8, 12, 16)) if "rotary_dim" not in given else rng.choice((8, 12, 16))
    if "short_factor" in given.get("rope_parameters", {}):
        wide = 2 * len(given["rope_parameters"]["short_factor"])
    if decoder.model in QUARTER_ROTARY:
        wide = 8 * rng.randint(1, 3)
    heads *= HEADS_BY.get(decoder.model, 1)
    for name in given:
        if name in HEADS:
            drawn[name] = heads
        elif name in WIDTHS:
            drawn[name] = heads * wide
        elif name in LAYERS and not {"layer_types", "attention_types"} & set(given):
            drawn[name] = rng.randint(FEWEST.get(decoder.model, 1), 5)
        elif name in INNER:
            drawn[name] = rng.randint(8, 120)
        elif name in KEY_HEADS:
            drawn[name] = heads if ALL_HEADS & set(given) else key_heads(decoder, rng, heads)
        elif name == "attn_config" and "kv_n_heads" in given[name]:
            drawn[name] = given[name] | {"kv_n_heads": key_heads(decoder, rng, heads)}
        elif name == "head_dim" and decoder.model not in ROTARY_HEADS:
            drawn[name] = wide if decoder.model in EVEN_SHARES + QUARTER_ROTARY else rng.choice((4, 6, 8, 16)) * 2
        elif name in ("sliding_window", "window_size") and given[name]:
            drawn[name] = rng.randint(1, 12)
    return drawn | delta_rule(decoder, rng, given)


def delta_rule(decoder: Decoder, rng: Random, given: Changes) -> Changes:
    """Heads of the delta rule, where there are any: those of keys are shared by as many of values each."""
    if "linear_num_key_heads" not in given:
        return {}
    groups, shared, value = rng.randint(1, 3), rng.randint(1, 3), rng.randint(2, 12)
    return {
        "linear_num_key_heads": groups,
        "linear_num_value_heads": groups * shared,
        "linear_key_head_dim": shared * value if decoder.model in EVEN_THIRDS else rng.randint(2, 12),
        "linear_value_head_dim": value,
    }


def by_layer(given: Changes) -> Changes:
    """Lists by layer, repeated or cut to as many entries as there are layers."""
    layers = next((given[name] for name in LAYERS if name in given), 0)
    lists = {name: given[name] for name in BY_LAYER if isinstance(given.get(name), list)}
    return {name: [entries[index % len(entries)] for index in range(layers)] for name, entries in lists.items()}


def key_heads(decoder: Decoder, rng: Random, heads: int) -> int:
    step = 2 if decoder.model == "diffllama" else 1
    return rng.choice([count for count in range(step, heads + 1, step) if heads % count == 0])
