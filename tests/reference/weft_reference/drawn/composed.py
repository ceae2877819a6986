"""Encoder-decoders of two stacks, each with a configuration of its own, drawn at random."""

from __future__ import annotations

from random import Random
from typing import Any

import transformers

from weft_reference.cases import Case
from weft_reference.drawn.common import ACTIVATIONS, EPSILONS, store, texts, without_mask
from weft_reference.drawn.text_to_text import written
from weft_reference.inputs import floats, text_batch
from weft_reference.models import t5gemma2 as t5gemma2_cases


def t5gemma_stack(rng: Random, vocab_size: int) -> dict[str, Any]:
    kv_heads = rng.choice((1, 2, 3))
    heads = kv_heads * rng.choice((1, 2))
    layers = rng.randint(1, 4)
    return {
        "vocab_size": vocab_size,
        "hidden_size": heads * rng.randint(3, 9),
        "intermediate_size": rng.randint(8, 60),
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "head_dim": 2 * rng.randint(2, 6),
        "query_pre_attn_scalar": rng.randint(4, 30),
        "sliding_window": rng.randint(2, 12),
        "final_logit_softcapping": rng.choice((None, 8.0, 30.0)),
        "attn_logit_softcapping": rng.choice((None, 5.0, 50.0)),
        "attention_bias": rng.random() < 0.3,
        "rms_norm_eps": rng.choice((1e-6, 1e-5)),
        "layer_types": [rng.choice(("full_attention", "sliding_attention")) for _ in range(layers)],
        "rope_parameters": {"rope_type": "default", "rope_theta": rng.choice((10000.0, 500.0))},
    }


def t5gemma(rng: Random, path: str) -> Case:
    head = rng.choice(("Model", "ForConditionalGeneration", "ForSequenceClassification", "ForTokenClassification"))
    vocab_size = rng.randint(30, 200)
    whole = "Classification" not in head
    config = transformers.T5GemmaConfig(
        encoder=t5gemma_stack(rng, vocab_size),
        decoder=t5gemma_stack(rng, vocab_size),
        vocab_size=vocab_size,
        is_encoder_decoder=whole or rng.random() < 0.5,
        tie_word_embeddings=rng.random() < 0.7,
        num_labels=rng.randint(1, 5),
    )
    read = texts(rng, path, vocab_size, 30, rng.choice(("right", "left")))
    inputs = without_mask(rng, read)
    if whole:
        inputs |= written(rng, path, vocab_size, len(read["input_ids"]))
    return Case(path, f"T5Gemma{head}", config, inputs, "Drawn at random.", store(rng))


STACKS = {
    "bert": transformers.BertConfig,
    "roberta": transformers.RobertaConfig,
    "bert-generation": transformers.BertGenerationConfig,
}


def encoder_decoder(rng: Random, path: str) -> Case:
    sizes = [rng.randint(30, 200), rng.randint(30, 200)]

    def stack(vocab_size: int) -> transformers.PreTrainedConfig:
        name = rng.choice(list(STACKS))
        heads = rng.choice((1, 2, 3))
        return STACKS[name](
            vocab_size=vocab_size,
            hidden_size=heads * rng.randint(3, 12),
            num_hidden_layers=rng.randint(1, 4),
            num_attention_heads=heads,
            intermediate_size=rng.randint(8, 60),
            max_position_embeddings=rng.randint(40, 60),
            hidden_act=rng.choice(ACTIVATIONS),
            layer_norm_eps=rng.choice(EPSILONS),
            tie_word_embeddings=rng.random() < 0.7,
            pad_token_id=0,
            **({} if name == "bert-generation" else {"type_vocab_size": rng.randint(1, 3)}),
        )

    config = transformers.EncoderDecoderConfig.from_encoder_decoder_configs(
        *(stack(size) for size in sizes), decoder_start_token_id=3, pad_token_id=0
    )
    read = texts(rng, path, sizes[0], 38, rng.choice(("right", "left")))
    inputs = without_mask(rng, read) | written(rng, path, sizes[1], len(read["input_ids"]))
    inputs["decoder_input_ids"][:, 0] = 3
    return Case(path, "EncoderDecoderModel", config, inputs, "Drawn at random.", store(rng))


def rag(rng: Random, path: str) -> Case:
    """Passages of any number; questions alone have no place in the reference without an index."""
    heads, vocab_size, n_docs = rng.choice((1, 2, 3)), rng.randint(30, 200), rng.randint(1, 4)
    question = transformers.DPRConfig(
        vocab_size=40, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8
    )
    sizes = {"d_model": heads * rng.randint(3, 12), "decoder_start_token_id": 0, "vocab_size": vocab_size}
    if rng.random() < 0.5:
        generator = transformers.BartConfig(
            encoder_layers=rng.randint(1, 3),
            decoder_layers=rng.randint(1, 3),
            encoder_attention_heads=heads,
            decoder_attention_heads=heads,
            encoder_ffn_dim=rng.randint(8, 40),
            decoder_ffn_dim=rng.randint(8, 40),
            max_position_embeddings=rng.randint(40, 60),
            activation_function=rng.choice(ACTIVATIONS),
            scale_embedding=rng.random() < 0.5,
            **sizes,
        )
    else:
        feed_forward = rng.choice(("relu", "gated-gelu"))
        generator = transformers.T5Config(num_layers=2, num_heads=heads, feed_forward_proj=feed_forward, **sizes)
    head = rng.choice(("Model", "SequenceForGeneration", "TokenForGeneration"))
    config = transformers.RagConfig.from_question_encoder_generator_configs(
        question, generator, n_docs=n_docs, do_marginalize=rng.random() < 0.5
    )
    questions = rng.randint(1, 3)
    lengths = [rng.randint(1, 38) for _ in range(questions * n_docs)]
    passages = text_batch(vocab_size, tuple(lengths), rng.choice(("right", "left")), pad=1, key=path)
    inputs = {f"context_{name}": passages[name] for name in ("input_ids", "attention_mask")}
    inputs |= {"doc_scores": floats(path, (questions, n_docs), -4.0, 4.0)} | written(rng, path, vocab_size, questions)
    return Case(path, f"Rag{head}", config, inputs, "Drawn at random.", store(rng))


def t5gemma2(rng: Random, path: str) -> Case:
    """Texts alone or with an image each; both halves have one width and vocabulary."""
    common = t5gemma_stack(rng, rng.randint(95, 200))
    stacks = []
    for _ in range(2):
        drawn = t5gemma_stack(rng, 0) | {name: common[name] for name in ("vocab_size", "hidden_size")}
        drawn["num_attention_heads"] = rng.choice([n for n in (1, 2, 3, 4, 6) if drawn["hidden_size"] % n == 0])
        drawn["num_key_value_heads"] = 1
        del drawn["attn_logit_softcapping"], drawn["rope_parameters"]
        stacks.append(drawn | {"max_position_embeddings": 64, "bos_token_id": 3})
    images = rng.random() < 0.6
    encoder = t5gemma2_cases.encoder(stacks[0])
    config = transformers.T5Gemma2Config(
        encoder=encoder,
        decoder=stacks[1],
        image_token_index=t5gemma2_cases.IMAGE,
        tie_word_embeddings=rng.random() < 0.7,
        num_labels=rng.randint(1, 5),
    )
    padding = rng.choice(("right", "left"))
    places = [[rng.randint(0, 4)] for _ in range(rng.randint(1, 3))]
    inputs = t5gemma2_cases.read(places, padding) if images else texts(rng, path, 90, 30, padding)
    head = rng.choice(("Model", "ForConditionalGeneration", "ForSequenceClassification", "ForTokenClassification"))
    if "Classification" not in head:
        inputs |= written(rng, path, 90, len(inputs["input_ids"]))
    return Case(path, f"T5Gemma2{head}", config, inputs, "Drawn at random.", store(rng))


DRAWN = {"encoder-decoder": encoder_decoder, "rag": rag, "t5gemma": t5gemma, "t5gemma2": t5gemma2}
