"""SeamlessM4T: texts and spectrograms to texts, with and without padding; position embeddings, chunks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from random import Random
from typing import Any

import transformers

from weft_reference import speech_prompts, stores
from weft_reference.cases import Case, Inputs
from weft_reference.inputs import text_batch
from weft_reference.models.conformers import spectrograms
from weft_reference.speech_cases import SpeechTaskCase

MODELS = ("seamless_m4t", "seamless_m4t_v2")
SMALL: dict[str, Any] = {
    "vocab_size": 40,
    "hidden_size": 16,
    "max_position_embeddings": 40,
    "encoder_layers": 2,
    "encoder_ffn_dim": 20,
    "encoder_attention_heads": 4,
    "decoder_layers": 2,
    "decoder_ffn_dim": 24,
    "decoder_attention_heads": 2,
    "speech_encoder_layers": 2,
    "speech_encoder_attention_heads": 4,
    "speech_encoder_intermediate_size": 28,
    "feature_projection_input_dim": 12,
    "adaptor_kernel_size": 4,
    "adaptor_stride": 4,
    "conv_depthwise_kernel_size": 5,
    "t2u_vocab_size": 20,
    "t2u_encoder_layers": 1,
    "t2u_encoder_ffn_dim": 16,
    "t2u_encoder_attention_heads": 2,
    "t2u_decoder_layers": 1,
    "t2u_decoder_ffn_dim": 16,
    "t2u_decoder_attention_heads": 2,
    "t2u_max_position_embeddings": 30,
    "upsample_initial_channel": 16,
    "upsample_rates": [2],
    "upsample_kernel_sizes": [4],
    "resblock_kernel_sizes": [3],
    "resblock_dilation_sizes": [[1]],
    "unit_hifi_gan_vocab_size": 20,
    "unit_embed_dim": 4,
    "lang_embed_dim": 4,
    "spkr_embed_dim": 4,
    "vocoder_num_langs": 2,
    "vocoder_num_spkrs": 2,
}
NEWER: dict[str, Any] = {
    "char_vocab_size": 20,
    "t2u_variance_predictor_embed_dim": 8,
    "t2u_variance_predictor_hidden_dim": 8,
    "left_max_position_embeddings": 6,
    "right_max_position_embeddings": 3,
}


def texts(key: str, padding: str = "right", prefix: str = "decoder_", lengths: tuple[int, int] = (7, 5)) -> Inputs:
    text = text_batch(SMALL["vocab_size"], lengths, padding, key=key)
    return {f"{prefix}{name}": text[name] for name in ("input_ids", "attention_mask")}


def case(model: str, name: str, head: str, notes: str, inputs: Inputs, **changes: Any) -> Case:
    prefix = "SeamlessM4T" if model == "seamless_m4t" else "SeamlessM4Tv2"
    made = SMALL | (NEWER if prefix.endswith("v2") else {}) | changes
    config = getattr(transformers, f"{prefix}Config")(**made)
    # Eager attention adds the mask of chunks, which is boolean, to scores.
    attention = "sdpa" if prefix.endswith("v2") else "eager"
    return Case(f"{model}/{name}", f"{prefix}{head}", config, inputs, notes, attention=attention)


def goldens() -> Iterator[Case | SpeechTaskCase]:
    yield from cases()
    yield speech_prompts.seamless("seamless_m4t", "SeamlessM4T", SMALL)
    yield speech_prompts.seamless("seamless_m4t_v2", "SeamlessM4Tv2", SMALL | NEWER)


def cases() -> Iterator[Case]:
    for model in MODELS:
        made = partial(case, model)
        text = texts("text", prefix="", lengths=(9, 6)) | texts("written")
        speech = spectrograms() | texts("heard")
        yield made("text-to-text", "ForTextToText", "Texts of two lengths.", text)
        left = texts("left", "left", "", (9, 6)) | texts("left-written")
        plain = {"scale_embedding": False, "tie_word_embeddings": False, "activation_function": "gelu"}
        yield made("untied", "ForTextToText", "Tables of their own, no scale; padding on the left of texts that are read.", left, **plain)
        yield made("text", "Model", "The model of all, given texts.", text)
        yield made("text-to-speech", "ForTextToSpeech", "Text before it is spoken.", text)
        yield made("speech-to-text", "ForSpeechToText", "Spectrograms of two lengths.", speech)
        unmasked = spectrograms(lengths=(32, 32), masked=False) | texts("unmasked")
        yield made("no-mask", "ForSpeechToText", "No mask of frames.", unmasked)
        deeper = {
            "num_adapter_layers": 2,
            "adaptor_kernel_size": 5,
            "adaptor_stride": 3,
            "speech_encoder_hidden_act": "relu",
        }
        yield made("adapter", "ForSpeechToText", "Two layers of the adapter, by other strides.", speech, **deeper)
        yield made(
            "no-adapter",
            "ForSpeechToText",
            "No adapter.",
            speech,
            add_adapter=False,
            adaptor_kernel_size=1,
            adaptor_stride=1,
        )
        yield made("speech-to-speech", "ForSpeechToSpeech", "Text before it is spoken.", speech)
    rotary = {"position_embeddings_type": "rotary", "rotary_embedding_base": 100}
    yield case(
        "seamless_m4t",
        "rotary",
        "ForSpeechToText",
        "Rotary position embeddings.",
        spectrograms() | texts("rotary"),
        **rotary,
    )
    chunks = {"speech_encoder_chunk_size": 8, "speech_encoder_left_chunk_num": 1}
    yield case(
        "seamless_m4t_v2",
        "chunks",
        "ForSpeechToText",
        "Chunks of eight frames.",
        spectrograms() | texts("chunks"),
        **chunks,
    )


def random_case(model: str, rng: Random, path: str) -> Case:
    heads, speech_heads = rng.choice((1, 2, 4)), rng.choice((1, 2, 4))
    changes = {
        "hidden_size": 8 * rng.randint(1, 4),
        "encoder_attention_heads": heads,
        "decoder_attention_heads": rng.choice((1, 2, 4)),
        "speech_encoder_attention_heads": speech_heads,
        "encoder_layers": rng.randint(1, 3),
        "decoder_layers": rng.randint(1, 3),
        "speech_encoder_layers": rng.randint(1, 3),
        "conv_depthwise_kernel_size": rng.choice((3, 5, 7)),
        "tie_word_embeddings": rng.random() < 0.6,
        "scale_embedding": rng.random() < 0.5,
    }
    if model.endswith("v2"):
        changes |= {"speech_encoder_chunk_size": rng.randint(5, 30), "speech_encoder_left_chunk_num": rng.randint(0, 2)}
    written = texts(path)
    if rng.random() < 0.5:
        given, head = texts(f"{path}.text", "right", "", (9, 6)) | written, "ForTextToText"
    else:
        given, head = spectrograms(12, (rng.randint(24, 60), rng.randint(12, 24))) | written, "ForSpeechToText"
    return replace(case(model, "random", head, "Drawn at random.", given, **changes), path=path, store=stores.whole)


DRAWN = {model: partial(random_case, model) for model in MODELS}
