"""Speech Encoder Decoder: wav2vec 2.0 or HuBERT, and BERT or RoBERTa; adapters, widths that differ."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any

import transformers

from weft_reference import stores, waves
from weft_reference.audio_tasks import AudioTaskCase
from weft_reference.cases import Case
from weft_reference.models import encoder_decoder, t5
from weft_reference.models.wav2vec2 import SMALL
from weft_reference.tasks import Call
from weft_reference.vision_tasks import image_questions

MODELS = ROOTS = ("speech-encoder-decoder",)
ENCODERS = {"wav2vec2": transformers.Wav2Vec2Config, "hubert": transformers.HubertConfig}


def case(
    name: str,
    notes: str,
    padding: str = "right",
    encoder: str = "wav2vec2",
    text: str = "bert",
    speech: dict[str, Any] | None = None,
    samples: tuple[int, int] = (900, 620),
    **changes: Any,
) -> Case:
    sizes = encoder_decoder.STACK | encoder_decoder.PADDED.get(text, {}) | changes
    stacks = ENCODERS[encoder](**(SMALL | (speech or {}))), encoder_decoder.CLASSES[text](**sizes)
    ids = {"decoder_start_token_id": 3, "pad_token_id": 0}
    config = transformers.SpeechEncoderDecoderConfig.from_encoder_decoder_configs(*stacks, **ids)
    given = waves.batch(name, samples, True) | encoder_decoder.begun(t5.decoder_text((9, 6), padding))
    return Case(f"speech-encoder-decoder/{name}", "SpeechEncoderDecoderModel", config, given, notes)


def goldens() -> Iterator[Case | AudioTaskCase]:
    yield from cases()
    yield recognition()


def cases() -> Iterator[Case]:
    width = {"hidden_size": encoder_decoder.STACK["hidden_size"]}
    yield case("same-width", "wav2vec 2.0 and BERT of one width.", speech=width)
    yield case(
        "projected",
        "Another width of speech, projected for the decoder; padding on the left.",
        "left",
        speech={"hidden_size": 16},
    )
    adapter = {"add_adapter": True, "num_adapter_layers": 2, "adapter_stride": 2, "adapter_kernel_size": 3}
    yield case("adapter", "An adapter network of two layers.", speech=width | adapter, samples=(1500, 900))
    yield case("hubert", "HuBERT and RoBERTa.", encoder="hubert", text="roberta", speech={"hidden_size": 16})


def recognition() -> AudioTaskCase:
    name, made = "automatic-speech-recognition", image_questions.tokenizer(40)
    text = encoder_decoder.STACK | {"vocab_size": len(made), "max_position_embeddings": 20}
    stacks = transformers.Wav2Vec2Config(**(SMALL | {"conv_stride": [5, 8, 8]})), transformers.BertConfig(**text)
    ids = {
        "decoder_start_token_id": image_questions.CLS,
        "eos_token_id": image_questions.SEP,
        "pad_token_id": image_questions.PAD,
    }
    greedy, beams = {"max_new_tokens": 9, "num_beams": 1}, {"max_new_tokens": 7}
    return AudioTaskCase(
        f"speech-encoder-decoder/tasks/{name}",
        name,
        "SpeechEncoderDecoderModel",
        transformers.SpeechEncoderDecoderConfig.from_encoder_decoder_configs(*stacks, **ids),
        transformers.Wav2Vec2FeatureExtractor(return_attention_mask=True),
        (Call("speech.wav", {"generate_kwargs": greedy}), Call("sweep.wav", {"generate_kwargs": beams})),
        "Files of other rates, greedily and by beams.",
        made,
        ids | {"no_repeat_ngram_size": 2},
    )


def random_case(rng: Random, path: str) -> Case:
    speech = {
        "num_hidden_layers": rng.randint(1, 3),
        "hidden_size": 8 * rng.randint(1, 4),
        "num_conv_pos_embeddings": rng.randint(2, 9),
    }
    chosen = {"encoder": rng.choice(tuple(ENCODERS)), "text": rng.choice(("bert", "roberta")), "speech": speech}
    made = case("random", "Drawn at random.", samples=(rng.randint(700, 1200), rng.randint(400, 700)), **chosen)
    return replace(made, path=path, store=stores.whole)


DRAWN = {"speech-encoder-decoder": random_case}
