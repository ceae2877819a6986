"""CLAP: sounds with and without views of their parts, against texts of different lengths."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from transformers import ClapConfig, ClapFeatureExtractor

from weft_reference import stores
from weft_reference.audio_tasks import AudioTaskCase
from weft_reference.cases import Case
from weft_reference.inputs import text_batch
from weft_reference.tasks import Call
from weft_reference.weights import values
from weft_reference.wordpiece import bert_tokenizer, vocabulary

TEXT = {
    "vocab_size": 60,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 24,
    "max_position_embeddings": 20,
}
AUDIO = {
    "spec_size": 32,
    "num_mel_bins": 8,
    "window_size": 4,
    "depths": [2, 2],
    "num_attention_heads": [2, 4],
    "patch_embeds_hidden_size": 8,
    "hidden_size": 16,
    "aff_block_r": 2,
}


def whole() -> ClapConfig:
    """One small enough for a file that the towers are read from."""
    audio = AUDIO | {"depths": [1], "num_attention_heads": [2], "hidden_size": 8}
    return ClapConfig(text_config=TEXT | {"num_hidden_layers": 1}, audio_config=audio, projection_dim=12)


def case(name: str, notes: str, frames: int = 101, text: Any = None, store: Any = None, **audio: Any) -> Case:
    config = ClapConfig(text_config=TEXT | (text or {}), audio_config=AUDIO | audio, projection_dim=12)
    given = text_batch(TEXT["vocab_size"], (9, 5, 7), "right", pad=1, key=name)
    del given["token_type_ids"]
    views = 4 if audio.get("enable_fusion") else 1
    features = values(f"{name}.spectrum.w", (2, views, frames, AUDIO["num_mel_bins"])) * 8 - 20
    given["input_features"] = features.astype(np.float32)
    given["is_longer"] = np.array([[True], [False]])
    return Case(f"clap/{name}", "ClapModel", config, given, notes, store)


def goldens() -> Iterator[Case | AudioTaskCase]:
    yield from cases()
    yield from tasks()


def cases() -> Iterator[Case]:
    fusion = {"enable_fusion": True, "fusion_type": "aff_2d"}
    yield case("one-view", "One view of each sound.")
    yield case("whole-width", "A spectrum as wide as the picture: nothing is interpolated.", frames=128)
    yield case("fused", "Four views of each sound, one of which is long.", **fusion)
    single = {"num_attention_heads": [2], "hidden_size": 8}
    other = single | {"depths": [3], "qkv_bias": False, "hidden_act": "relu", "mlp_ratio": 2.0}
    yield case("other-sizes", "One stage, other activations, no bias.", text={"hidden_act": "relu"}, **other)
    padded = single | {"depths": [2], "window_size": 3}
    yield case("padded-windows", "Windows that the picture is not a multiple of.", **padded)
    yield case("file", "model.safetensors as save_pretrained writes it.", store=stores.whole)


def tasks() -> Iterator[AudioTaskCase]:
    name = "zero-shot-audio-classification"
    labels = {"candidate_labels": ["a dog", "rain on the roof", "music", "a man who reads a letter"]}
    template = {"hypothesis_template": "In this film one hears {}!"}
    calls = (
        Call("sweep.wav", labels),
        Call("speech.wav", labels),
        Call("sweep.wav", labels | template),
        Call(["sweep.wav", "speech.wav"], {"candidate_labels": ["cats", "dogs"]} | template),
        Call("sweep.wav", {"candidate_labels": ["alone"]}),
    )
    small = {"num_mel_bins": 64, "spec_size": 128}
    heard = {"sampling_rate": 16000, "hop_length": 160, "max_length_s": 1, "fft_window_size": 1024}
    heard |= {"frequency_max": 8000}
    tokenizer = bert_tokenizer(TEXT["max_position_embeddings"], True)
    tokenizer.model_input_names = ["input_ids", "attention_mask"]
    text = TEXT | {"vocab_size": len(vocabulary()), "pad_token_id": tokenizer.pad_token_id}
    fusion = {"enable_fusion": True, "fusion_type": "aff_2d"}
    for suffix, truncation, more, notes in (
        ("", "rand_trunc", {}, "Labels of sounds, one of them too long, with other sentences."),
        ("-fused", "fusion", fusion, "The same with views of the long sound's parts."),
    ):
        config = ClapConfig(text_config=text, audio_config=AUDIO | small | more, projection_dim=12)
        extractor = ClapFeatureExtractor(truncation=truncation, **heard)
        path = f"clap/tasks/{name}{suffix}"
        yield AudioTaskCase(path, name, "ClapModel", config, extractor, calls, notes, tokenizer)
