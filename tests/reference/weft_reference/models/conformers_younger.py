"""Conformers with a decoder (Canary, Cohere ASR), and Granite Speech 5: padding, odd numbers of frames, heads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any

import transformers

from weft_reference import speech_prompts, stores
from weft_reference.cases import Case, Inputs
from weft_reference.inputs import text_batch
from weft_reference.models.conformers import PARAKEET, PIECES, spectrograms, words
from weft_reference.processors.torchaudio import granite_extractor
from weft_reference.speech_cases import SpeechTaskCase
from weft_reference.tasks import Call

MODELS = ("canary", "cohere_asr", "granite_speech5_ctc")
DECODER: dict[str, Any] = {
    "vocab_size": 40,
    "hidden_size": 16,
    "intermediate_size": 20,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "head_dim": 4,
    "max_position_embeddings": 30,
}
IDS = {"pad_token_id": 2, "bos_token_id": 4, "eos_token_id": 3, "decoder_start_token_id": 7}
GRANITE: dict[str, Any] = {
    "vocab_size": 17,
    "hidden_size": 24,
    "intermediate_size": 32,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_mel_bins": 3,
    "max_position_embeddings": 9,
    "context_size": 5,
    "conv_kernel_size": 5,
}


def texts(key: str, padding: str = "right") -> Inputs:
    text = text_batch(DECODER["vocab_size"], (7, 5), padding, key=key)
    return {f"decoder_{name}": text[name] for name in ("input_ids", "attention_mask")}


def canary(
    name: str,
    head: str,
    notes: str,
    inputs: Inputs,
    encoder: dict[str, Any] | None = None,
    tied: bool = True,
    **changes: Any,
) -> Case:
    made = DECODER | {"hidden_size": 24, "head_dim": 6} | changes
    config = transformers.CanaryConfig(
        encoder_config=PARAKEET | {"scale_input": False} | (encoder or {}),
        decoder_config=made,
        vocab_size=made["vocab_size"],
        tie_word_embeddings=tied,
        **IDS,
    )
    return Case(f"canary/{name}", f"Canary{head}", config, inputs, notes)


def cohere(
    name: str, head: str, notes: str, inputs: Inputs, encoder: dict[str, Any] | None = None, **changes: Any
) -> Case:
    made = PARAKEET | {"scale_input": False} | (encoder or {})
    config = transformers.CohereAsrConfig(encoder_config=made, **(DECODER | IDS | changes))
    return Case(f"cohere_asr/{name}", f"CohereAsr{head}", config, inputs, notes)


def granite(name: str, notes: str, inputs: Inputs, tied: bool = True, **changes: Any) -> Case:
    made = GRANITE | changes
    config = transformers.GraniteSpeech5CTCConfig(
        vocab_size=made["vocab_size"], encoder_config=made, tie_word_embeddings=tied
    )
    return Case(f"granite_speech5_ctc/{name}", "GraniteSpeech5ForCTC", config, inputs, notes)


def goldens() -> Iterator[Case | SpeechTaskCase]:
    yield from cases()
    yield recognition()
    encoder = PARAKEET | {"scale_input": False}
    yield speech_prompts.cohere(encoder, DECODER)
    yield speech_prompts.canary(encoder, DECODER | {"hidden_size": 24, "head_dim": 6})


def cases() -> Iterator[Case]:
    speech = "ForConditionalGeneration"
    grouped = {"num_key_value_heads": 2, "head_dim": 5, "attention_bias": False, "hidden_act": "gelu"}
    for made in (canary, cohere):
        yield made(
            "base", "Model", "Two spectrograms, the second shorter, and texts so far.", spectrograms() | texts("base")
        )
        yield made("speech", speech, "Logits of tokens.", spectrograms() | texts("speech"))
        unmasked = spectrograms(lengths=(33, 33), masked=False) | texts("no-mask", "left")
        yield made("speech-no-mask", speech, "No mask of frames; texts padded on the left.", unmasked)
        wider = {"hidden_size": 32, "scale_input": True, "subsampling_factor": 8, "num_mel_bins": 16}
        encoder = None if made is canary else wider
        other = {"encoder": encoder} | grouped
        features = spectrograms(16, (61, 40)) if encoder else spectrograms()
        yield made(
            "speech-grouped", speech, "Grouped heads of another width, no biases.", features | texts("grouped"), **other
        )
    yield canary(
        "speech-untied", speech, "A table of its own for logits.", spectrograms() | texts("untied"), tied=False
    )
    tied = spectrograms() | texts("tied")
    yield cohere("speech-tied", speech, "Logits by the table of embeddings.", tied, tie_word_embeddings=True)
    yield granite("ctc", "Two spectrograms of odd lengths, blocks filled with zeros.", spectrograms(12, (37, 26)))
    yield granite("no-mask", "Without a mask; whole blocks.", spectrograms(12, (40, 40), masked=False))
    other = {
        "subsample_layers": [1],
        "attention_bias": False,
        "head_dim": 5,
        "conv_expansion_factor": 3,
        "hidden_act": "gelu",
    }
    yield granite(
        "untied", "Scores by a table of its own, one layer that halves.", spectrograms(12, (31, 18)), False, **other
    )
    one = {"num_hidden_layers": 1, "subsample_layers": [0]}
    yield granite("one-layer", "One layer, and no scores half way.", spectrograms(12, (23, 16)), **one)


def recognition() -> SpeechTaskCase:
    extractor = granite_extractor(num_mel_bins=4)
    pieces = words(transformers.ParakeetTokenizer, ["<pad>", *PIECES, "<unk>"])
    small = GRANITE | {"vocab_size": 18, "num_mel_bins": 4, "num_hidden_layers": 3, "subsample_layers": [0]}
    config = transformers.GraniteSpeech5CTCConfig(vocab_size=18, encoder_config=small, tie_word_embeddings=False)
    odd = {"array": [round(0.3 * (i * i % 97) / 97 - 0.1, 4) for i in range(937)], "sampling_rate": 16000}
    return SpeechTaskCase(
        "granite_speech5_ctc",
        "GraniteSpeech5ForCTC",
        config,
        transformers.GraniteSpeech5Processor(extractor, pieces),
        (Call("speech.wav"), Call("sweep.wav"), Call(odd), Call(["sweep.wav", "speech.wav"])),
        "Files of other rates, and an odd number of frames.",
    )


def random_seq2seq(made: Any, rng: Random, path: str) -> Case:
    heads = rng.choice((1, 2, 4))
    encoder = {"hidden_size": 8 * rng.randint(1, 4), "num_attention_heads": rng.choice((1, 2, 4)), "num_mel_bins": 12}
    encoder |= {"num_hidden_layers": rng.randint(1, 3), "conv_kernel_size": rng.choice((3, 5, 7))}
    if made is canary:
        encoder["hidden_size"] = 4 * heads * 2
    changes = {
        "num_attention_heads": heads,
        "num_key_value_heads": rng.choice([count for count in (1, 2, 4) if heads % count == 0]),
        "hidden_size": 4 * heads * 2,
        "head_dim": rng.choice((4, 6, 8)),
        "num_hidden_layers": rng.randint(1, 3),
        "intermediate_size": rng.randint(8, 60),
        "attention_bias": rng.random() < 0.5,
    }
    lengths = (rng.randint(20, 60), rng.randint(8, 20))
    inputs = spectrograms(12, lengths) | texts(path, rng.choice(("right", "left")))
    head = rng.choice(("Model", "ForConditionalGeneration"))
    return replace(made("random", head, "Drawn at random.", inputs, encoder, **changes), path=path, store=stores.whole)


def random_granite(rng: Random, path: str) -> Case:
    heads, layers = rng.choice((1, 2, 4)), rng.randint(1, 5)
    changes = {
        "num_attention_heads": heads,
        "hidden_size": 4 * heads * rng.randint(1, 3),
        "num_hidden_layers": layers,
        "context_size": rng.randint(2, 9),
        "conv_kernel_size": rng.choice((3, 5, 7)),
        "subsample_layers": sorted(rng.sample(range(layers), rng.randint(0, min(layers, 2)))),
        "attention_bias": rng.random() < 0.5,
    }
    inputs = spectrograms(12, (rng.randint(20, 60), rng.randint(8, 20)))
    made = granite("random", "Drawn at random.", inputs, rng.random() < 0.5, **changes)
    return replace(made, path=path, store=stores.whole)


DRAWN = {
    "canary": lambda rng, path: random_seq2seq(canary, rng, path),
    "cohere_asr": lambda rng, path: random_seq2seq(cohere, rng, path),
    "granite_speech5_ctc": random_granite,
}
