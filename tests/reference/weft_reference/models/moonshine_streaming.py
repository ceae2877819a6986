"""Moonshine Streaming: waveforms in whole frames, windows of layers, texts with and without padding."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any

import transformers

from weft_reference import stores, waves
from weft_reference.cases import Case
from weft_reference.inputs import text_batch
from weft_reference.models.conformers import PIECES, words
from weft_reference.speech_cases import SpeechTaskCase
from weft_reference.tasks import Call

ENCODER: dict[str, Any] = {
    "hidden_size": 24,
    "intermediate_size": 20,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "sliding_windows": [[4, 2], [3, 0]],
}
SMALL: dict[str, Any] = {
    "vocab_size": 40,
    "hidden_size": 24,
    "intermediate_size": 28,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "max_position_embeddings": 30,
    "pad_token_id": 0,
}


def case(
    name: str,
    head: str,
    notes: str,
    samples: tuple[int, ...] = (3200, 2000),
    encoder: dict[str, Any] | None = None,
    **changes: Any,
) -> Case:
    made = SMALL | changes
    heads = {"num_key_value_heads": made["num_attention_heads"]}
    config = transformers.MoonshineStreamingConfig(encoder_config=ENCODER | (encoder or {}), **(made | heads))
    text = text_batch(config.vocab_size, (7, 5), "right", key=name)
    given = {**waves.batch(name, samples, True)}
    given |= {f"decoder_{key}": text[key] for key in ("input_ids", "attention_mask")}
    return Case(f"moonshine_streaming/{name}", f"MoonshineStreaming{head}", config, given, notes)


def goldens() -> Iterator[Case | SpeechTaskCase]:
    yield from cases()
    yield recognition()


def cases() -> Iterator[Case]:
    speech = "ForConditionalGeneration"
    yield case("base", "Model", "Two waveforms, the second shorter, and texts so far.")
    yield case("speech", speech, "Logits of tokens.")
    yield case("speech-even", speech, "Waveforms of one length.", (2400, 2400))
    wide = {"hidden_size": 16, "num_key_value_heads": 1, "attention_bias": True, "head_dim": 6, "hidden_act": "relu"}
    other = {
        "tie_word_embeddings": True,
        "attention_bias": True,
        "pad_head_dim_to_multiple_of": 8,
        "hidden_act": "gelu",
    }
    yield case("speech-tied", speech, "An encoder of another width, tied logits, biases.", encoder=wide, **other)
    rope = {"rope_parameters": {"rope_type": "default", "rope_theta": 500.0, "partial_rotary_factor": 0.5}}
    frames = {"sample_rate": 8000, "frame_ms": 10.0, "sliding_windows": [[9, 9], [1, 1]]}
    yield case(
        "speech-rope",
        speech,
        "Half of each head turns; another rate; windows of nine frames and of one.",
        encoder=frames,
        **rope,
    )


def recognition() -> SpeechTaskCase:
    """Waveforms that are no whole frames, which the processor pads."""
    ends = {"bos_token": "<s>", "eos_token": "</s>"}
    pieces = words(transformers.PreTrainedTokenizerFast, ["<unk>", "<s>", "</s>", *PIECES, "<pad>"], **ends)
    extractor = transformers.Wav2Vec2FeatureExtractor(do_normalize=False, return_attention_mask=True)
    processor = transformers.MoonshineStreamingProcessor(extractor, pieces)
    changes = SMALL | {"vocab_size": 20, "max_position_embeddings": 400, "tie_word_embeddings": False}
    config = transformers.MoonshineStreamingConfig(encoder_config=ENCODER, **changes)
    ids = {"bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1, "pad_token_id": 19}
    greedy, beams = {"max_new_tokens": 9, "num_beams": 1}, {"max_new_tokens": 7, "num_beams": 3}
    odd = {"array": [round(0.3 * (i * i % 97) / 97 - 0.1, 4) for i in range(371)], "sampling_rate": 16000}
    calls = [Call(given, {"generate_kwargs": greedy}) for given in ("speech.wav", odd, ["sweep.wav", "speech.wav"])]
    return SpeechTaskCase(
        "moonshine_streaming",
        "MoonshineStreamingForConditionalGeneration",
        config,
        processor,
        (*calls, Call("sweep.wav", {"generate_kwargs": beams})),
        "Samples that are no whole frames, greedily and by beams.",
        ids | {"no_repeat_ngram_size": 2},
    )


def random_case(rng: Random, path: str) -> Case:
    heads, layers = rng.choice((1, 2, 4)), rng.randint(1, 3)
    encoder = {
        "hidden_size": 8 * rng.randint(1, 4),
        "num_hidden_layers": layers,
        "sliding_windows": [[rng.randint(1, 9), rng.randint(0, 4)] for _ in range(layers)],
        "attention_bias": rng.random() < 0.5,
    }
    changes = {
        "num_attention_heads": heads,
        "hidden_size": 8 * heads * rng.randint(1, 2),
        "num_hidden_layers": rng.randint(1, 3),
        "attention_bias": rng.random() < 0.5,
        "tie_word_embeddings": rng.random() < 0.5,
    }
    samples = (80 * rng.randint(20, 50), 80 * rng.randint(10, 20))
    head = rng.choice(("Model", "ForConditionalGeneration"))
    return replace(case("random", head, "Drawn at random.", samples, encoder, **changes), path=path, store=stores.whole)


DRAWN = {"moonshine_streaming": random_case}
