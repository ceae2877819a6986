"""Data2VecAudio: positions by several convolutions, fewer frames after the last layer, and every head."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from transformers import Data2VecAudioConfig

from weft_reference import stores, waves
from weft_reference.cases import Case
from weft_reference.models.wav2vec2 import MIXED, SMALL

FEW = {"num_conv_pos_embeddings": 2, "conv_pos_kernel_size": 5}
MODELS = ROOTS = ("data2vec-audio",)


def case(name: str, head: str, notes: str, masked: bool = True, store: Any = None, **changes: Any) -> Case:
    config = Data2VecAudioConfig(**(SMALL | FEW | changes))
    inputs = waves.batch(f"data2vec-audio.{name}", (700, 523), masked)
    return Case(f"data2vec-audio/{name}", f"Data2VecAudio{head}", config, inputs, notes, store)


def goldens() -> Iterator[Case]:
    yield case("base", "Model", "The base model, one waveform padded.")
    yield case(
        "base-no-mask",
        "Model",
        "Three convolutions of even length, and no attention_mask.",
        masked=False,
        num_conv_pos_embeddings=3,
        conv_pos_kernel_size=4,
    )
    fewer = {"add_adapter": True, "num_adapter_layers": 2}
    yield case("ctc", "ForCTC", "Scores of characters; convolutions have biases.", conv_bias=True)
    yield case("ctc-fewer-frames", "ForCTC", "Convolutions after the last layer.", **fewer)
    yield case("ctc-relu", "ForCTC", "Other activations.", feat_extract_activation="relu", hidden_act="silu")
    yield case("classes", "ForSequenceClassification", "Classes of the sound.")
    yield case("classes-mixed", "ForSequenceClassification", "From all layers.", **MIXED)
    yield case("frame-classes", "ForAudioFrameClassification", "Classes of frames.")
    yield case("xvector", "ForXVector", "The speaker's vector.")
    yield case("file", "ForCTC", "model.safetensors as save_pretrained writes it.", store=stores.whole)
