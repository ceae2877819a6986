"""Wav2Vec2-Conformer: layers with a convolution, and relative, rotary or no position embeddings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from transformers import Wav2Vec2ConformerConfig

from weft_reference import stores, waves
from weft_reference.cases import Case
from weft_reference.models.wav2vec2 import MIXED, SMALL

KERNEL = {"conv_depthwise_kernel_size": 5}
ROTARY, UNPLACED = {"position_embeddings_type": "rotary"}, {"position_embeddings_type": None}
MODELS = ROOTS = ("wav2vec2-conformer",)


def case(
    name: str, head: str, notes: str, lengths: tuple[int, ...] = (700, 523), masked: bool = True, store: Any = None, **changes: Any
) -> Case:
    config = Wav2Vec2ConformerConfig(**(SMALL | KERNEL | changes))
    inputs = waves.batch(f"wav2vec2-conformer.{name}", lengths, masked)
    return Case(f"wav2vec2-conformer/{name}", f"Wav2Vec2Conformer{head}", config, inputs, notes, store)


def goldens() -> Iterator[Case]:
    fewer = {"add_adapter": True, "num_adapter_layers": 2}
    books = {"proj_codevector_dim": 10, "num_codevector_groups": 2, "num_codevectors_per_group": 5, "codevector_dim": 8}
    yield case("base", "Model", "Relative positions, one waveform padded.")
    yield case("base-rotary", "Model", "Rotary positions.", **ROTARY)
    yield case("base-unplaced", "Model", "No positions.", **UNPLACED)
    yield case("base-narrower", "Model", "Convolutions after the last layer.", **fewer, output_hidden_size=10)
    yield case("ctc", "ForCTC", "Scores of characters.")
    yield case("ctc-rotary", "ForCTC", "No attention_mask; layers' norms keep their epsilon.", masked=False, layer_norm_eps=1e-3, **ROTARY)
    yield case("ctc-relu", "ForCTC", "Other activations.", feat_extract_activation="relu", hidden_act="silu")
    yield case("classes", "ForSequenceClassification", "Classes of the sound.")
    yield case("classes-mixed", "ForSequenceClassification", "From all layers.", **MIXED)
    yield case("frame-classes", "ForAudioFrameClassification", "Classes of frames.")
    yield case("xvector", "ForXVector", "The speaker's vector.")
    yield case("pre-training", "ForPreTraining", "Entries of two codebooks.", lengths=(180, 140), **books)
    yield case("file", "ForCTC", "model.safetensors as save_pretrained writes it.", store=stores.whole)
