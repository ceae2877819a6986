"""T5, BART and their kin drawn at random."""

from __future__ import annotations

from functools import partial
from random import Random

import transformers

from weft_reference.cases import Case
from weft_reference.drawn.common import ACTIVATIONS, Changes, store, texts, without_mask
from weft_reference.models import bart

PREFIXES = {"t5": "T5", "mt5": "MT5", "umt5": "UMT5"}
HEADS = ("Model", "ForConditionalGeneration", "EncoderModel", "ForTokenClassification", "ForQuestionAnswering")
ENCODE = ("EncoderModel", "ForTokenClassification", "ForQuestionAnswering")


def random_case(prefix: str, rng: Random, path: str) -> Case:
    head = rng.choice(HEADS)
    heads = rng.randint(1, 6)
    vocab_size = rng.randint(30, 200)
    # A decoder gives distances up to half of the buckets one each.
    buckets, distance = rng.choice(((8, 10), (12, 20), (32, 128)))
    config = getattr(transformers, f"{prefix}Config")(
        vocab_size=vocab_size,
        d_model=rng.randint(4, 40),
        d_kv=rng.randint(3, 12),
        d_ff=rng.randint(8, 60),
        num_layers=rng.randint(1, 4),
        num_decoder_layers=rng.randint(1, 4),
        num_heads=heads,
        relative_attention_num_buckets=buckets,
        relative_attention_max_distance=distance,
        feed_forward_proj=rng.choice(("relu", "gated-gelu", "gated-silu")),
        tie_word_embeddings=rng.random() < 0.7,
        decoder_start_token_id=0,
        num_labels=2 if head == "ForQuestionAnswering" else rng.randint(1, 5),
    )
    padding = rng.choice(("right", "left"))
    read = texts(rng, path, vocab_size, 40, padding)
    inputs = without_mask(rng, read)
    if head not in ENCODE:
        inputs |= written(rng, path, vocab_size, len(read["input_ids"]))
    return Case(path, prefix + head, config, inputs, "Drawn at random.", store(rng))


def written(rng: Random, path: str, vocab_size: int, batch: int) -> Changes:
    """What the decoder reads: as many texts as the encoder's."""
    made: Changes = {}
    while len(made.get("input_ids", ())) != batch:
        made = texts(rng, f"{path}.written", vocab_size, 30, "right")
    made["input_ids"][:, 0] = 0
    inputs = {"decoder_input_ids": made["input_ids"]}
    if rng.random() < 0.5:
        inputs["decoder_attention_mask"] = made["attention_mask"]
    return inputs


def random_kin(kin: bart.Kin, rng: Random, path: str) -> Case:
    """BART or one of its kin; those that classify take no texts without an end."""
    head = rng.choice(("Model", kin.writer, kin.writer, *(head for head in kin.heads if head == bart.SPAN)))
    vocab_size = rng.randint(30, 200)
    heads = rng.choice((1, 2, 4))
    config = getattr(transformers, f"{kin.prefix}Config")(
        vocab_size=vocab_size,
        d_model=4 * rng.randint(2, 10),
        encoder_layers=rng.randint(1, 3),
        encoder_attention_heads=heads,
        encoder_ffn_dim=rng.randint(8, 60),
        decoder_layers=rng.randint(1, 3),
        decoder_attention_heads=rng.choice((1, 2, 4)),
        decoder_ffn_dim=rng.randint(8, 60),
        max_position_embeddings=rng.randint(40, 60),
        activation_function=rng.choice(ACTIVATIONS),
        scale_embedding=rng.random() < 0.5,
        pad_token_id=bart.PAD,
        bos_token_id=0,
        eos_token_id=bart.EOS,
        decoder_start_token_id=bart.START,
        forced_eos_token_id=None,
    )
    padding = rng.choice(("right", "left")) if head != bart.SPAN else "right"
    read = texts(rng, path, vocab_size, 40, padding, pad=bart.PAD)
    inputs = without_mask(rng, read)
    if head != bart.SPAN:
        inputs |= written(rng, path, vocab_size, len(read["input_ids"]))
    return Case(path, kin.prefix + head, config, inputs, "Drawn at random.", store(rng))


def prophetnet_case(rng: Random, path: str) -> Case:
    """Steps are the whole with one head and one stream, or at one position."""
    head = rng.choice(("Model", "ForConditionalGeneration"))
    heads, layers, vocab_size = rng.choice((1, 2, 3)), rng.randint(1, 3), rng.randint(50, 200)
    alone = head != "Model"
    config = transformers.ProphetNetConfig(
        vocab_size=vocab_size,
        hidden_size=6 * heads,
        num_encoder_layers=layers,
        num_encoder_attention_heads=heads,
        encoder_ffn_dim=rng.randint(8, 60),
        num_decoder_layers=layers,
        num_decoder_attention_heads=1 if alone else heads,
        decoder_ffn_dim=rng.randint(8, 60),
        max_position_embeddings=rng.randint(50, 60),
        activation_function=rng.choice(ACTIVATIONS),
        ngram=1 if alone else rng.randint(1, 4),
        num_buckets=rng.choice((8, 32)),
        relative_max_distance=rng.choice((10, 128)),
    )
    read = texts(rng, path, vocab_size, 40, "right")
    inputs = without_mask(rng, read) | written(rng, path, vocab_size, len(read["input_ids"]))
    return Case(path, f"ProphetNet{head}", config, inputs, "Drawn at random.", store(rng))


DRAWN = {
    "prophetnet": prophetnet_case,
    **{model: partial(random_case, prefix) for model, prefix in PREFIXES.items()},
    **{kin.model: partial(random_kin, kin) for kin in bart.KIN},
}
