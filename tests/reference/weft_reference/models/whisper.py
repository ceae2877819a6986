"""Whisper: a spectrum through an encoder, words from a decoder with and without padding, classes of sounds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from transformers import WhisperConfig

from weft_reference import stores
from weft_reference.cases import Case
from weft_reference.inputs import text_batch
from weft_reference.weights import values

SMALL = {
    "vocab_size": 60,
    "num_mel_bins": 6,
    "d_model": 16,
    "encoder_layers": 2,
    "encoder_attention_heads": 4,
    "encoder_ffn_dim": 24,
    "decoder_layers": 2,
    "decoder_attention_heads": 2,
    "decoder_ffn_dim": 20,
    "max_source_positions": 12,
    "max_target_positions": 20,
    "classifier_proj_size": 10,
    "num_labels": 5,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "decoder_start_token_id": 3,
}


def inputs(key: str, lengths: tuple[int, ...], padding: str) -> dict[str, np.ndarray]:
    frames = 2 * SMALL["max_source_positions"]
    shape = (len(lengths) or 2, SMALL["num_mel_bins"], frames)
    given = {"input_features": (values(f"{key}.features", shape) * 2).astype(np.float32)}
    if lengths:
        text = text_batch(SMALL["vocab_size"], lengths, padding, key=key)
        given["decoder_input_ids"] = text["input_ids"]
        if padding != "none":
            given["decoder_attention_mask"] = text["attention_mask"]
    return given


def case(
    name: str,
    model_class: str,
    notes: str,
    lengths: tuple[int, ...] = (7, 5),
    padding: str = "right",
    store: Any = None,
    **changes: Any,
) -> Case:
    config = WhisperConfig(**(SMALL | changes))
    return Case(f"whisper/{name}", f"Whisper{model_class}", config, inputs(name, lengths, padding), notes, store)


def goldens() -> Iterator[Case]:
    speech, classes = "ForConditionalGeneration", "ForAudioClassification"
    yield case("base", "Model", "The base model.")
    yield case("speech", speech, "Scores of tokens, one text padded.")
    yield case("speech-no-mask", speech, "No decoder_attention_mask.", (6, 6), "none")
    yield case("speech-left-padding", speech, "Padding on the left.", padding="left")
    yield case("speech-one-token", speech, "The first token alone.", (1, 1), "none")
    yield case("speech-full-length", speech, "As many tokens as there are positions.", (20, 20), "none")
    yield case("speech-untied", speech, "Scores by a table of their own.", tie_word_embeddings=False)
    deep = {"encoder_layers": 3, "decoder_layers": 1, "activation_function": "relu"}
    yield case("speech-deep", speech, "More layers in the encoder, another activation.", **deep)
    yield case("classes", classes, "Classes of the sound.", ())
    yield case("classes-mixed", classes, "From all layers.", (), use_weighted_layer_sum=True)
    yield case("file", speech, "model.safetensors as save_pretrained writes it.", store=stores.whole)
