"""Audio Spectrogram Transformer: overlapping patches of a spectrum."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from transformers import ASTConfig, ASTFeatureExtractor

from weft_reference import stores
from weft_reference.audio_tasks import AudioTaskCase
from weft_reference.cases import Case
from weft_reference.tasks import Call
from weft_reference.weights import values

FOLDER = "audio-spectrogram-transformer"
SMALL = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 24,
    "patch_size": 6,
    "frequency_stride": 4,
    "time_stride": 5,
    "max_length": 40,
    "num_mel_bins": 16,
}


def case(name: str, head: str, notes: str, store: Any = None, **changes: Any) -> Case:
    config = ASTConfig(**(SMALL | {"num_labels": 5} | changes))
    spectra = values(f"{name}.spectrum.w", (2, config.max_length, config.num_mel_bins)).astype(np.float32) * 4
    return Case(f"{FOLDER}/{name}", f"AST{head}", config, {"input_values": spectra}, notes, store)


def goldens() -> Iterator[Case | AudioTaskCase]:
    yield case("base", "Model", "The base model.")
    yield case("classes", "ForAudioClassification", "Classes of the sound.")
    other = {"qkv_bias": False, "hidden_act": "relu", "layer_norm_eps": 1e-3, "frequency_stride": 6}
    yield case("classes-no-bias", "ForAudioClassification", "No bias, other strides and activation.", **other)
    yield case("file", "ForAudioClassification", "As save_pretrained writes it.", store=stores.whole)
    names = ["siren", "speech", "music", "rain", "dog", "door"]
    labels = {"id2label": dict(enumerate(names)), "label2id": {name: index for index, name in enumerate(names)}}
    calls = (
        Call("speech.wav"),
        Call(["sweep.wav", "speech.wav"], {"top_k": 2}),
        Call("sweep.wav", {"function_to_apply": "sigmoid"}),
    )
    path, task = f"{FOLDER}/tasks/audio-classification", "audio-classification"
    extractor = ASTFeatureExtractor(num_mel_bins=16, max_length=40)
    config = ASTConfig(**(SMALL | labels))
    yield AudioTaskCase(path, task, "ASTForAudioClassification", config, extractor, calls, "Labels of sounds.")
