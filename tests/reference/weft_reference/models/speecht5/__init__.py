"""SpeechT5: text and waveforms in, text and spectrograms out, with the pre-net's dropout told from outside."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any
from unittest import mock

import numpy as np
import torch
import transformers
from transformers.models.speecht5.modeling_speecht5 import SpeechT5SpeechDecoderPrenet

from weft_reference import waves
from weft_reference.cases import Case, Inputs
from weft_reference.inputs import floats, text_batch
from weft_reference.models.speecht5 import tasks

SMALL: dict[str, Any] = {
    "vocab_size": 40,
    "hidden_size": 16,
    "encoder_layers": 2,
    "encoder_attention_heads": 4,
    "encoder_ffn_dim": 24,
    "decoder_layers": 2,
    "decoder_attention_heads": 2,
    "decoder_ffn_dim": 20,
    "conv_dim": [8, 8, 8],
    "conv_stride": [5, 4, 2],
    "conv_kernel": [10, 4, 2],
    "num_conv_pos_embeddings": 6,
    "num_conv_pos_embedding_groups": 4,
    "num_mel_bins": 6,
    "speech_decoder_prenet_units": 10,
    "speaker_embedding_dim": 12,
    "speech_decoder_postnet_units": 7,
    "speech_decoder_postnet_layers": 3,
    "max_speech_positions": 40,
    "max_text_positions": 30,
    "encoder_max_relative_position": 4,
}
MASK = "prenet_dropout_mask"


def told(masks: np.ndarray) -> AbstractContextManager[Any]:
    """The reference with these masks in place of those that it draws, one for each layer of the pre-net."""
    layers = iter(torch.from_numpy(masks))

    def dropout(_self: Any, x: torch.Tensor, p: float) -> torch.Tensor:
        return torch.where(next(layers) == 1, x, 0) * 1 / (1 - p)

    return mock.patch.object(SpeechT5SpeechDecoderPrenet, "_consistent_dropout", dropout)


def speech_inputs(key: str, config: transformers.SpeechT5Config, lengths: tuple[int, ...] = (6, 4)) -> Inputs:
    """Frames as the decoder takes them, the second's padded, and voices."""
    rows, frames = len(lengths), max(lengths)
    shape = (config.speech_decoder_prenet_layers, frames, config.speech_decoder_prenet_units)
    return {
        "decoder_input_values": floats(f"{key}.frames", (rows, frames, config.num_mel_bins)),
        "decoder_attention_mask": (np.arange(frames)[None] < np.array(lengths)[:, None]).astype(np.int64),
        "speaker_embeddings": floats(f"{key}.voices", (rows, config.speaker_embedding_dim)),
        MASK: (floats(f"{key}.kept", shape) > 0).astype(np.float32),
    }


def speech(name: str, model_class: str, notes: str, inputs: Inputs, **changes: Any) -> Case:
    config = transformers.SpeechT5Config(**(SMALL | changes))
    given = {**inputs, **speech_inputs(name, config)}
    masks = given.pop(MASK)
    path = f"speecht5/{name}"
    return Case(path, f"SpeechT5{model_class}", config, given, notes, own={MASK: masks}, within=lambda: told(masks))


def texts(key: str, lengths: tuple[int, ...] = (9, 7)) -> Inputs:
    text = text_batch(SMALL["vocab_size"], lengths, "right", key=key)
    return {"input_ids": text["input_ids"], "attention_mask": text["attention_mask"]}


def transcript(
    name: str, notes: str, samples: tuple[int, ...] = (400, 330), masked: bool = True, **changes: Any
) -> Case:
    config = transformers.SpeechT5Config(**(SMALL | changes))
    text = text_batch(config.vocab_size, (6, 4), "right", key=name)
    ids = np.where(text["attention_mask"] == 1, np.maximum(text["input_ids"], 3), config.pad_token_id)
    given = {**waves.batch(name, samples, masked), "decoder_input_ids": ids, "decoder_attention_mask": text["attention_mask"]}
    return Case(f"speecht5/{name}", "SpeechT5ForSpeechToText", config, given, notes)


def goldens() -> Iterator[Any]:
    yield from cases()
    yield from tasks.speech(SMALL)
    yield from tasks.recognition(SMALL)


def cases() -> Iterator[Case]:
    to_speech, speech_to_speech = "ForTextToSpeech", "ForSpeechToSpeech"
    yield speech("text-to-speech", to_speech, "Two texts, the second shorter, and frames so far.", texts("tts"))
    wider = {"reduction_factor": 3, "speech_decoder_prenet_layers": 3, "speech_decoder_postnet_layers": 1, "hidden_act": "relu"}
    yield speech("reduction", to_speech, "Three frames a position, other layers around.", texts("reduction"), **wider)
    rate = {"speech_decoder_prenet_dropout": 0.2, "layer_norm_eps": 0.05, "speech_decoder_postnet_kernel": 3}
    yield speech("dropout", to_speech, "Another rate of dropout, a wide epsilon.", texts("dropout"), **rate)
    yield speech("speech-to-speech", speech_to_speech, "Two waveforms, the second shorter.", waves.batch("s2s", (400, 330), True))
    layers = {"feat_extract_norm": "layer", "conv_bias": True, "num_conv_pos_embeddings": 5}
    yield speech("layer-norm", speech_to_speech, "Layer norm after each convolution.", waves.batch("ln", (380, 300), True), **layers)
    yield transcript("speech-to-text", "Two waveforms, the second shorter, and texts so far.")
    yield transcript("no-mask", "No mask of samples.", (360, 360), masked=False)
    other = {"tie_word_embeddings": False, "scale_embedding": True, "pad_token_id": 3}
    yield transcript("untied", "A table of its own for logits, scaled embeddings, another padding.", **other)
    yield transcript("far", "More frames than there are distances.", (1600, 1200), encoder_max_relative_position=3)
