"""Whisper: a spectrum through an encoder, words from a decoder with and without padding, classes of sounds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from tokenizers import AddedToken
from transformers import WhisperConfig, WhisperFeatureExtractor, WhisperTokenizer
from transformers.convert_slow_tokenizer import bytes_to_unicode

from weft_reference import stores
from weft_reference.audio_tasks import AudioTaskCase
from weft_reference.cases import Case
from weft_reference.inputs import text_batch
from weft_reference.tasks import Call
from weft_reference.weights import values

SMALL = {
    "vocab_size": 60,
    "num_mel_bins": 6,
    "d_model": 16,
    "encoder_layers": 2,
    "encoder_attention_heads": 4,
    "encoder_ffn_dim": 24,
    "decoder_layers": 2,
    "decoder_attention_heads": 2,
    "decoder_ffn_dim": 20,
    "max_source_positions": 12,
    "max_target_positions": 20,
    "classifier_proj_size": 10,
    "num_labels": 5,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "decoder_start_token_id": 3,
}


def inputs(key: str, lengths: tuple[int, ...], padding: str, config: WhisperConfig) -> dict[str, np.ndarray]:
    shape = (len(lengths) or 2, config.num_mel_bins, 2 * config.max_source_positions)
    given = {"input_features": (values(f"{key}.features", shape) * 2).astype(np.float32)}
    if lengths:
        text = text_batch(config.vocab_size, lengths, padding, key=key)
        given["decoder_input_ids"] = text["input_ids"]
        if padding != "none":
            given["decoder_attention_mask"] = text["attention_mask"]
    return given


def case(
    name: str,
    model_class: str,
    notes: str,
    lengths: tuple[int, ...] = (7, 5),
    padding: str = "right",
    store: Any = None,
    **changes: Any,
) -> Case:
    config = WhisperConfig(**(SMALL | changes))
    given = inputs(name, lengths, padding, config)
    return Case(f"whisper/{name}", f"Whisper{model_class}", config, given, notes, store)


def goldens() -> Iterator[Case | AudioTaskCase]:
    yield from cases()
    yield from recognition()
    yield from classification()


def cases() -> Iterator[Case]:
    speech, classes = "ForConditionalGeneration", "ForAudioClassification"
    yield case("base", "Model", "The base model.")
    yield case("speech", speech, "Scores of tokens, one text padded.")
    yield case("speech-no-mask", speech, "No decoder_attention_mask.", (6, 6), "none")
    yield case("speech-left-padding", speech, "Padding on the left.", padding="left")
    yield case("speech-one-token", speech, "The first token alone.", (1, 1), "none")
    yield case("speech-full-length", speech, "As many tokens as there are positions.", (20, 20), "none")
    yield case("speech-untied", speech, "Scores by a table of their own.", tie_word_embeddings=False)
    deep = {"encoder_layers": 3, "decoder_layers": 1, "activation_function": "relu"}
    yield case("speech-deep", speech, "More layers in the encoder, another activation.", **deep)
    wider = {"max_source_positions": 16, "d_model": 20, "encoder_attention_heads": 5}
    yield case("speech-wider", speech, "As many positions of the encoder as a tile of half precision has.", **wider)
    yield case("classes", classes, "Classes of the sound.", ())
    yield case("classes-mixed", classes, "From all layers.", (), use_weighted_layer_sum=True)
    yield case("file", speech, "model.safetensors as save_pretrained writes it.", store=stores.whole)


# One token a byte, then those that steer, then times up to a second: as checkpoints have them, a thirtieth as long.
STEERING = ["endoftext", "startoftranscript", "en", "de", "cy", "translate", "transcribe", "startofprev", "nospeech"]
STEERING += ["notimestamps"]
IDS = {f"<|{name}|>": 256 + index for index, name in enumerate(STEERING)}
POSITIONS = 50
END, START, NO_TIMES = IDS["<|endoftext|>"], IDS["<|startoftranscript|>"], IDS["<|notimestamps|>"]
VOCABULARY = NO_TIMES + 1 + POSITIONS + 1


def tokenizer() -> WhisperTokenizer:
    names = bytes_to_unicode()
    made = WhisperTokenizer(vocab={names[byte]: byte for byte in range(256)}, merges=[])
    made.add_special_tokens({"extra_special_tokens": [name for name in IDS]})
    made.add_tokens([AddedToken(f"<|{i * 0.02:.2f}|>", special=False) for i in range(POSITIONS + 1)])
    for name, number in (IDS | {"<|0.00|>": NO_TIMES + 1, "<|1.00|>": VOCABULARY - 1}).items():
        if made.convert_tokens_to_ids(name) != number:
            raise ValueError(f"{name} is {made.convert_tokens_to_ids(name)}, not {number}")
    return made


GENERATION = {
    "decoder_start_token_id": START,
    "bos_token_id": END,
    "eos_token_id": END,
    "pad_token_id": END,
    "lang_to_id": {name: IDS[name] for name in ("<|en|>", "<|de|>", "<|cy|>")},
    "task_to_id": {name: IDS[f"<|{name}|>"] for name in ("translate", "transcribe")},
    "no_timestamps_token_id": NO_TIMES,
    "is_multilingual": True,
    "return_timestamps": False,
    "max_initial_timestamp_index": 10,
    "max_length": 36,
    "no_repeat_ngram_size": 3,
    # What is no printable letter.
    "suppress_tokens": [*range(32), *range(127, 256), *range(START, NO_TIMES)],
    "begin_suppress_tokens": [32, END],
}


def task(name: str, task: str, model_class: str, notes: str, *calls: Call, **changes: Any) -> AudioTaskCase:
    small = {key: value for key, value in SMALL.items() if key not in ("num_labels", "num_mel_bins")}
    heard = {"max_source_positions": POSITIONS, "max_target_positions": 40, "num_mel_bins": 10}
    ends = {"pad_token_id": END, "bos_token_id": END, "eos_token_id": END, "decoder_start_token_id": START}
    speech = model_class == "ForConditionalGeneration"
    generation = GENERATION | changes.pop("generation", {}) if speech else None
    ends |= {"vocab_size": VOCABULARY, "tie_word_embeddings": False}
    config = WhisperConfig(**(small | heard | ends | changes))
    extractor = WhisperFeatureExtractor(feature_size=10, chunk_length=1)
    words = tokenizer() if speech else None
    path = f"whisper/tasks/{name}"
    return AudioTaskCase(path, task, f"Whisper{model_class}", config, extractor, calls, notes, words, generation)


def recognition() -> Iterator[AudioTaskCase]:
    name, times, chunks = "automatic-speech-recognition", {"return_timestamps": True}, {"chunk_length_s": 0.8}

    def how(**given: Any) -> dict[str, Any]:
        return {"generate_kwargs": given}

    yield task(
        name,
        name,
        "ForConditionalGeneration",
        "Languages heard and told, translation, beams, times; long recordings in pieces, apart and overlapping.",
        Call("sweep.wav"),
        Call("sweep.wav", how(num_beams=1)),
        Call("sweep.wav", how(language="german", num_beams=1)),
        Call("sweep.wav", how(language="cy", task="translate")),
        Call("sweep.wav", times),
        Call("sweep.wav", times | how(num_beams=1, language="en")),
        Call("sweep.wav", {"return_language": True} | how(num_beams=2)),
        Call("speech.wav", times | how(num_beams=1)),
        Call("speech.wav", times | {"return_language": True}),
        Call("speech.wav", chunks | how(num_beams=1)),
        Call("speech.wav", chunks | times | how(num_beams=1)),
        Call("speech.wav", chunks | times | {"stride_length_s": [0.3, 0.1]}),
        Call(["sweep.wav", "speech.wav"], chunks | how(max_new_tokens=6)),
    )
    words = {"return_timestamps": "word"}
    yield task(
        f"{name}-words",
        name,
        "ForConditionalGeneration",
        "Times of words, in one piece and in several, apart and overlapping.",
        Call("sweep.wav", words | how(num_beams=1)),
        Call("sweep.wav", words),
        Call("speech.wav", words | how(num_beams=1)),
        Call("speech.wav", chunks | words | how(num_beams=1)),
        Call("speech.wav", chunks | words | {"stride_length_s": [0.3, 0.1]} | how(num_beams=1, language="de")),
        Call("sweep.wav", words | how(num_beams=1, max_new_tokens=5)),
        generation={"alignment_heads": [[0, 1], [1, 0], [1, 1]]},
    )
    forced = {"forced_decoder_ids": [[1, None], [2, IDS["<|transcribe|>"]]]}
    forced |= {"suppress_tokens": None, "max_length": None}
    yield task(
        f"{name}-forced",
        name,
        "ForConditionalGeneration",
        "As older checkpoints say it: tokens by their places; no token suppressed.",
        Call("sweep.wav", how(max_new_tokens=12)),
        Call("sweep.wav", times | how(max_new_tokens=20)),
        Call("speech.wav", times | how(max_new_tokens=20, num_beams=1)),
        generation=forced,
    )


def classification() -> Iterator[AudioTaskCase]:
    name, names = "audio-classification", ["yes", "no", "up", "down", "left"]
    labels = {"id2label": dict(enumerate(names)), "label2id": {name: index for index, name in enumerate(names)}}
    calls = (Call("speech.wav"), Call(["sweep.wav", "speech.wav"], {"top_k": 2}))
    yield task(name, name, "ForAudioClassification", "Labels of sounds.", *calls, **labels)
