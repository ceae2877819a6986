"""SEW: wav2vec 2.0's network on squeezed frames, by even and odd kernels and factors that leave frames over."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from transformers import SEWConfig

from weft_reference import stores, waves
from weft_reference.cases import Case
from weft_reference.models.wav2vec2 import SMALL

LAYERS = {"feat_extract_norm": "layer", "conv_bias": True}


def case(name: str, head: str, notes: str, masked: bool = True, store: Any = None, **changes: Any) -> Case:
    config = SEWConfig(**(SMALL | changes))
    inputs = waves.batch(f"sew.{name}", (700, 523), masked)
    return Case(f"sew/{name}", f"SEW{head}", config, inputs, notes, store)


def goldens() -> Iterator[Case]:
    yield case("base", "Model", "The base model, one waveform padded.")
    yield case("base-layer-norm", "Model", "Every convolution normalised.", **LAYERS)
    yield case("base-same-width", "Model", "Features as wide as hidden states.", conv_dim=[8, 12, 16])
    yield case("ctc", "ForCTC", "Scores of characters.")
    yield case("ctc-no-mask", "ForCTC", "No attention_mask.", masked=False)
    yield case("ctc-three", "ForCTC", "Three frames become one; odd kernel.", squeeze_factor=3, num_conv_pos_embeddings=5)
    yield case("ctc-one", "ForCTC", "Every frame stays.", squeeze_factor=1, num_conv_pos_embeddings=7)
    yield case("ctc-relu", "ForCTC", "Other activations.", feat_extract_activation="relu", hidden_act="silu")
    yield case("classes", "ForSequenceClassification", "Classes of the sound.")
    yield case("file", "ForCTC", "model.safetensors as save_pretrained writes it.", store=stores.whole)
