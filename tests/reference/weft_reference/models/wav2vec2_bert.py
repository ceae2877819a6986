"""Wav2Vec2-BERT: every head, with and without an adapter network, padding, another shape of distances."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import transformers

from weft_reference.audio_tasks import AudioTaskCase
from weft_reference.cases import Case, Inputs
from weft_reference.models.conformers import spectrograms
from weft_reference.models.wav2vec2 import LETTERS, tokenizer
from weft_reference.tasks import Call

MODELS = ("wav2vec2-bert",)
SMALL: dict[str, Any] = {
    "vocab_size": 17,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 24,
    "feature_projection_input_dim": 10,
    "conv_depthwise_kernel_size": 5,
    "left_max_position_embeddings": 6,
    "right_max_position_embeddings": 2,
    "classifier_proj_size": 12,
    "num_labels": 3,
}


def case(name: str, head: str, notes: str, inputs: Inputs | None = None, **changes: Any) -> Case:
    config = transformers.Wav2Vec2BertConfig(**(SMALL | changes))
    given = inputs or spectrograms(config.feature_projection_input_dim, (21, 14))
    return Case(f"wav2vec2-bert/{name}", f"Wav2Vec2Bert{head}", config, given, notes)


def goldens() -> Iterator[Case | AudioTaskCase]:
    yield from cases()
    yield from recognition()
    yield from classification()


def cases() -> Iterator[Case]:
    classes = "ForSequenceClassification"
    adapter = {"add_adapter": True, "use_intermediate_ffn_before_adapter": True}
    yield case("base", "Model", "Two spectrograms, the second shorter.")
    yield case("base-no-mask", "Model", "Without a mask.", spectrograms(10, (15, 15), masked=False))
    deeper = {"num_adapter_layers": 2, "output_hidden_size": 12, "adapter_act": "gelu", "adapter_kernel_size": 5}
    yield case("base-adapter", "Model", "Two layers of the adapter network, of another width.", **(adapter | deeper))
    yield case("ctc", "ForCTC", "Logits of characters.")
    yield case("ctc-adapter", "ForCTC", "The same over the adapter network.", add_adapter=True)
    plain = {"position_embeddings_type": None, "conv_depthwise_kernel_size": 3, "layer_norm_eps": 0.05}
    yield case("ctc-no-positions", "ForCTC", "No position embeddings, a wide epsilon.", **plain)
    right = {"left_max_position_embeddings": 1, "right_max_position_embeddings": 9, "hidden_act": "gelu"}
    yield case("ctc-right", "ForCTC", "More distances to the right than to the left.", **right)
    yield case("classes", classes, "Classes of recordings.")
    yield case("classes-mixed", classes, "From all layers.", use_weighted_layer_sum=True)
    yield case("frames", "ForAudioFrameClassification", "Classes of frames.")


def recognition() -> Iterator[AudioTaskCase]:
    name, times = "automatic-speech-recognition", {"return_timestamps": "char"}
    width = {"vocab_size": len(LETTERS), "feature_projection_input_dim": 20}
    yield AudioTaskCase(
        f"wav2vec2-bert/tasks/{name}",
        name,
        "Wav2Vec2BertForCTC",
        transformers.Wav2Vec2BertConfig(**({k: v for k, v in SMALL.items() if k != "num_labels"} | width)),
        transformers.SeamlessM4TFeatureExtractor(feature_size=10, num_mel_bins=10),
        (Call("speech.wav"), Call("sweep.wav"), Call("speech.wav", times)),
        "Files of other rates, times of characters.",
        tokenizer(),
    )


def classification() -> Iterator[AudioTaskCase]:
    yield AudioTaskCase(
        "wav2vec2-bert/tasks/audio-classification",
        "audio-classification",
        "Wav2Vec2BertForSequenceClassification",
        transformers.Wav2Vec2BertConfig(**(SMALL | {"feature_projection_input_dim": 20})),
        transformers.SeamlessM4TFeatureExtractor(feature_size=10, num_mel_bins=10),
        (Call("speech.wav"), Call(["sweep.wav", "speech.wav"], {"top_k": 2})),
        "Files of other rates.",
    )
