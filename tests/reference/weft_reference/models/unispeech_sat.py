"""UniSpeech-SAT: wav2vec 2.0's network."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from transformers import UniSpeechSatConfig

from weft_reference import stores, waves
from weft_reference.cases import Case
from weft_reference.models.wav2vec2 import LARGE, MIXED, SMALL


def case(name: str, head: str, notes: str, masked: bool = True, store: Any = None, **changes: Any) -> Case:
    config = UniSpeechSatConfig(**(SMALL | {} | changes))
    inputs = waves.batch(f"unispeech-sat.{name}", (700, 523), masked)
    return Case(f"unispeech-sat/{name}", f"UniSpeechSat{head}", config, inputs, notes, store)


def goldens() -> Iterator[Case]:
    yield case("base", "Model", "The base model, one waveform padded.")
    yield case("base-layer-norm", "Model", "As large checkpoints are.", **LARGE)
    yield case("ctc", "ForCTC", "Scores of characters.")
    yield case("ctc-no-mask", "ForCTC", "No attention_mask.", masked=False, **LARGE)
    yield case("classes", "ForSequenceClassification", "Classes of the sound.")
    yield case("classes-mixed", "ForSequenceClassification", "From all layers.", **MIXED)
    stable = MIXED | LARGE
    yield case("classes-mixed-stable", "ForSequenceClassification", "The same, as large checkpoints are.", **stable)
    yield case("frame-classes", "ForAudioFrameClassification", "Classes of frames.")
    yield case("xvector", "ForXVector", "The speaker's vector.", **MIXED)
    parts = "parametrizations.weight.original"
    old = stores.renamed({f"{parts}0": "weight_g", f"{parts}1": "weight_v"})
    yield case("file-legacy-names", "ForCTC", "weight_g and weight_v.", store=old)
