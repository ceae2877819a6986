"""wav2vec 2.0: waveforms of different lengths in a batch, both norms of the convolutions, both orders of the layers."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from transformers import Wav2Vec2Config, Wav2Vec2CTCTokenizer, Wav2Vec2FeatureExtractor

from weft_reference import stores, waves
from weft_reference.audio_tasks import AudioTaskCase
from weft_reference.cases import Case
from weft_reference.tasks import Call

SMALL = {
    "vocab_size": 20,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 24,
    "conv_dim": [8, 12, 12],
    "conv_kernel": [10, 3, 2],
    "conv_stride": [5, 2, 2],
    "num_conv_pos_embeddings": 6,
    "num_conv_pos_embedding_groups": 4,
    "classifier_proj_size": 10,
    "num_labels": 5,
    "tdnn_dim": [12, 12, 14],
    "tdnn_kernel": [5, 3, 1],
    "tdnn_dilation": [1, 2, 1],
    "xvector_output_dim": 9,
}
# As large checkpoints are: every convolution normalised and with a bias, layers that normalise first.
LARGE = {"feat_extract_norm": "layer", "conv_bias": True, "do_stable_layer_norm": True}
MIXED = {"use_weighted_layer_sum": True}


def case(name: str, model_class: str, notes: str, lengths: tuple[int, ...] = (700, 523), **changes: Any) -> Case:
    masked, store = changes.pop("masked", True), changes.pop("store", None)
    config = Wav2Vec2Config(**(SMALL | changes))
    return Case(f"wav2vec2/{name}", f"Wav2Vec2{model_class}", config, waves.batch(name, lengths, masked), notes, store)


def goldens() -> Iterator[Case | AudioTaskCase]:
    yield from cases()
    yield from recognition()
    yield from classification()


def cases() -> Iterator[Case]:
    ctc, classes = "ForCTC", "ForSequenceClassification"
    yield case("base", "Model", "The base model, one waveform padded.")
    yield case("base-layer-norm", "Model", "As large checkpoints are.", **LARGE)
    yield case("base-no-mask", "Model", "No attention_mask.", masked=False)
    yield case("base-no-vocabulary", "Model", "No vocabulary, which the base model needs none of.", vocab_size=None)
    yield case("ctc", ctc, "Scores of characters.")
    yield case("ctc-layer-norm", ctc, "Scores of characters, as large checkpoints are.", **LARGE)
    yield case("ctc-stable-group", ctc, "By channel; layers that normalise first.", do_stable_layer_norm=True)
    yield case("ctc-one", ctc, "One waveform.", lengths=(401,), masked=False)
    yield case("ctc-odd-positions", ctc, "A position kernel of odd length.", num_conv_pos_embeddings=5)
    other = {"feat_extract_activation": "relu", "hidden_act": "silu", "layer_norm_eps": 1e-3}
    yield case("ctc-relu", ctc, "Other activations and epsilon.", **other)
    yield case("ctc-adapter", ctc, "Adapters within layers.", **LARGE, adapter_attn_dim=6)
    fewer = {"add_adapter": True, "num_adapter_layers": 2}
    yield case("ctc-fewer-frames", ctc, "Convolutions after the last layer.", **fewer)
    yield case("base-narrower", "Model", "As before, and narrower.", **fewer, output_hidden_size=10)
    yield case("classes", classes, "Classes of the sound.")
    yield case("classes-no-mask", classes, "Classes of the sound, no attention_mask.", masked=False)
    yield case("classes-mixed", classes, "From all layers.", **MIXED)
    yield case("classes-mixed-stable", classes, "From all layers, as large checkpoints are.", **MIXED, **LARGE)
    yield case("frame-classes", "ForAudioFrameClassification", "Classes of frames.")
    yield case("frame-classes-mixed", "ForAudioFrameClassification", "From all layers.", **MIXED)
    yield case("xvector", "ForXVector", "The speaker's vector.")
    yield case("xvector-no-mask", "ForXVector", "The speaker's vector, no attention_mask.", masked=False, **MIXED)
    # Few frames and entries: of many, two would be nearly as near.
    books, head = {"proj_codevector_dim": 10}, "ForPreTraining"
    two = books | {"num_codevector_groups": 2, "num_codevectors_per_group": 5, "codevector_dim": 8}
    yield case("pre-training", head, "Entries of two codebooks.", lengths=(180, 140), **two)
    three = books | {"num_codevector_groups": 3, "num_codevectors_per_group": 2, "codevector_dim": 9}
    yield case("pre-training-layer-norm", head, "Of three, as large checkpoints are.", (200, 150), **LARGE, **three)
    parts = "parametrizations.weight.original"
    old = stores.renamed({f"{parts}0": "weight_g", f"{parts}1": "weight_v"})
    yield case("file-legacy-names", ctc, "weight_g and weight_v.", store=old)
    yield case("file", classes, "model.safetensors as save_pretrained writes it.", store=stores.whole)


LETTERS = ["<pad>", "<s>", "</s>", "<unk>", "|", *"ETAONIHSRDLUMW'"]


def tokenizer(**settings: Any) -> Wav2Vec2CTCTokenizer:
    with tempfile.TemporaryDirectory() as temporary:
        path = Path(temporary) / "vocab.json"
        path.write_text(json.dumps({letter: index for index, letter in enumerate(LETTERS)}))
        return Wav2Vec2CTCTokenizer(str(path), **settings)


def task(name: str, task: str, model_class: str, notes: str, *calls: Call, **changes: Any) -> AudioTaskCase:
    given = {key: changes.pop(key) for key in ("tokenizer",) if key in changes}
    extractor = Wav2Vec2FeatureExtractor(**changes.pop("extractor", {}))
    small = {key: value for key, value in SMALL.items() if key != "num_labels"}
    config = Wav2Vec2Config(**(small | {"conv_stride": [5, 8, 8]} | changes))
    return AudioTaskCase(
        f"wav2vec2/tasks/{name}", task, f"Wav2Vec2{model_class}", config, extractor, calls, notes, **given
    )


def recognition() -> Iterator[AudioTaskCase]:
    name = "automatic-speech-recognition"
    char, word = {"return_timestamps": "char"}, {"return_timestamps": "word"}
    chunks = {"chunk_length_s": 0.5}
    samples = {"array": [round(0.3 * (i * i % 97) / 97 - 0.1, 4) for i in range(900)], "sampling_rate": 8000}
    yield task(
        name,
        name,
        "ForCTC",
        "Files, samples of another rate, times of characters and words, long recordings in pieces.",
        Call("speech.wav"),
        Call("sweep.wav"),
        Call(samples),
        Call("speech.wav", char),
        Call("speech.wav", word),
        Call("speech.wav", chunks),
        Call("speech.wav", chunks | word),
        Call("speech.wav", {"chunk_length_s": 0.4, "stride_length_s": [0.1, 0.05]} | char),
        Call("sweep.wav", {"chunk_length_s": 0.3, "stride_length_s": 0.02}),
        Call(["sweep.wav", "speech.wav"], char),
        tokenizer=tokenizer(),
        vocab_size=len(LETTERS),
    )
    yield task(
        f"{name}-settings",
        name,
        "ForCTC",
        "Lower case, another delimiter, no normalisation, as large checkpoints are.",
        Call("speech.wav"),
        Call("speech.wav", word),
        Call("sweep.wav", chunks | char),
        tokenizer=tokenizer(do_lower_case=True, word_delimiter_token="E", clean_up_tokenization_spaces=True),
        extractor={"do_normalize": False, "return_attention_mask": True},
        vocab_size=len(LETTERS),
        **LARGE,
    )


def classification() -> Iterator[AudioTaskCase]:
    name, many = "audio-classification", {"problem_type": "multi_label_classification"}
    names = ["yes", "no", "up", "down", "left", "right", "on"]
    labels = {"id2label": dict(enumerate(names)), "label2id": {name: index for index, name in enumerate(names)}}
    calls = (
        Call("speech.wav"),
        Call("sweep.wav", {"top_k": 2}),
        Call(["sweep.wav", "speech.wav"], {"top_k": 9}),
        Call("speech.wav", {"function_to_apply": "sigmoid"}),
        Call("speech.wav", {"function_to_apply": "none", "top_k": 1}),
    )
    yield task(name, name, "ForSequenceClassification", "Labels of sounds, every function.", *calls, **labels)
    yield task(f"{name}-multi-label", name, "ForSequenceClassification", "Sigmoid.", *calls[:2], **labels, **many)
