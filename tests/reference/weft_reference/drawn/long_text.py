"""LED, LongT5, Pegasus-X, BigBird-Pegasus and FSMT drawn at random: windows and blocks of any size, texts of any length."""

from __future__ import annotations

from random import Random

import numpy as np
import transformers

from weft_reference.cases import Case
from weft_reference.drawn.common import ACTIVATIONS, Changes, store, texts, without_mask
from weft_reference.drawn.text_to_text import written
from weft_reference.models import bart, fsmt

HEADS = ("Model", "ForConditionalGeneration", "ForConditionalGeneration")


def sizes(rng: Random, vocab_size: int) -> Changes:
    return {
        "vocab_size": vocab_size,
        "d_model": 4 * rng.randint(2, 10),
        "encoder_layers": rng.randint(1, 3),
        "encoder_attention_heads": rng.choice((1, 2, 4)),
        "encoder_ffn_dim": rng.randint(8, 60),
        "decoder_layers": rng.randint(1, 3),
        "decoder_attention_heads": rng.choice((1, 2, 4)),
        "decoder_ffn_dim": rng.randint(8, 60),
        "activation_function": rng.choice(ACTIVATIONS),
        "pad_token_id": bart.PAD,
        "bos_token_id": 0,
        "eos_token_id": bart.EOS,
        "decoder_start_token_id": bart.START,
        "forced_eos_token_id": None,
    }


def both(rng: Random, path: str, vocab_size: int) -> Changes:
    read = texts(rng, path, vocab_size, 60, rng.choice(("right", "left")), pad=bart.PAD)
    return without_mask(rng, read) | written(rng, path, vocab_size, len(read["input_ids"]))


def led(rng: Random, path: str) -> Case:
    vocab_size = rng.randint(30, 200)
    fields = sizes(rng, vocab_size)
    # A window of 2 is more than the reference can do.
    windows = [2 * rng.randint(2, 6) for _ in range(fields["encoder_layers"])]
    widest = max(windows)
    alike = [widest if widest % window else window for window in windows]
    fields |= {"attention_window": rng.choice((widest, alike))}
    fields |= {"max_encoder_position_embeddings": 80, "max_decoder_position_embeddings": rng.randint(40, 60)}
    inputs = both(rng, path, vocab_size)
    if rng.random() < 0.7:
        shape = inputs["input_ids"].shape
        inputs["global_attention_mask"] = np.array([int(rng.random() < 0.2) for _ in range(shape[0] * shape[1])]).reshape(shape)
    head = rng.choice(HEADS)
    return Case(path, "LED" + head, transformers.LEDConfig(**fields), inputs, "Drawn at random.", store(rng))


def bigbird_pegasus(rng: Random, path: str) -> Case:
    vocab_size = rng.randint(30, 200)
    fields = sizes(rng, vocab_size)
    fields |= {"block_size": rng.randint(1, 6), "num_random_blocks": rng.randint(1, 3), "use_bias": rng.random() < 0.5}
    fields |= {"max_position_embeddings": 80, "scale_embedding": rng.random() < 0.5}
    fields |= {"attention_type": rng.choice(("block_sparse", "block_sparse", "original_full"))}
    config = transformers.BigBirdPegasusConfig(**fields)
    head = rng.choice(HEADS)
    return Case(path, "BigBirdPegasus" + head, config, both(rng, path, vocab_size), "Drawn at random.", store(rng))


def pegasus_x(rng: Random, path: str) -> Case:
    vocab_size = rng.randint(30, 200)
    fields = sizes(rng, vocab_size)
    fields |= {"block_size": 2 * rng.randint(1, 8), "num_global_tokens": rng.randint(1, 6)}
    fields |= {"stagger_local_blocks": rng.random() < 0.7, "scale_embedding": rng.random() < 0.5}
    config = transformers.PegasusXConfig(**fields)
    head = rng.choice(HEADS)
    return Case(path, "PegasusX" + head, config, both(rng, path, vocab_size), "Drawn at random.", store(rng))


def longt5(rng: Random, path: str) -> Case:
    vocab_size = rng.randint(30, 200)
    layers = rng.randint(1, 3)
    buckets, distance = rng.choice(((8, 10), (12, 20), (32, 128)))
    config = transformers.LongT5Config(
        vocab_size=vocab_size,
        d_model=rng.randint(4, 40),
        d_kv=rng.randint(3, 12),
        d_ff=rng.randint(8, 60),
        num_layers=layers,
        num_decoder_layers=layers,
        num_heads=rng.randint(1, 6),
        local_radius=rng.randint(1, 9),
        global_block_size=2 ** rng.randint(0, 4),
        relative_attention_num_buckets=buckets,
        relative_attention_max_distance=distance,
        feed_forward_proj=rng.choice(("relu", "gated-gelu", "gated-silu")),
        encoder_attention_type=rng.choice(("local", "transient-global")),
        decoder_start_token_id=0,
    )
    head = rng.choice((*HEADS, "EncoderModel"))
    inputs = both(rng, path, vocab_size)
    if head == "EncoderModel":
        inputs = {name: value for name, value in inputs.items() if not name.startswith("decoder")}
    return Case(path, "LongT5" + head, config, inputs, "Drawn at random.", store(rng))


def random_fsmt(rng: Random, path: str) -> Case:
    vocab_size = rng.randint(30, 200)
    fields = sizes(rng, vocab_size)
    del fields["vocab_size"]
    fields |= {"src_vocab_size": vocab_size, "tgt_vocab_size": vocab_size, "max_position_embeddings": 80}
    fields |= {"scale_embedding": rng.random() < 0.5, "tie_word_embeddings": rng.random() < 0.3}
    model_class = rng.choice(("FSMTModel", fsmt.WRITER))
    config, inputs = transformers.FSMTConfig(**fields), both(rng, path, vocab_size)
    # Padding in what is written, which the reference finds by itself.
    inputs.setdefault("decoder_attention_mask", (inputs["decoder_input_ids"] != bart.PAD).astype(np.int64))
    return Case(path, model_class, config, inputs, "Drawn at random.", store(rng), forward=fsmt.WHOLE)


DRAWN = {
    "led": led,
    "bigbird_pegasus": bigbird_pegasus,
    "pegasus_x": pegasus_x,
    "longt5": longt5,
    "fsmt": random_fsmt,
}
