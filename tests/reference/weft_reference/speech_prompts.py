"""Speech whose text begins with tokens that say the language: Cohere ASR, Canary and SeamlessM4T, by their processors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import transformers

from weft_reference.models.conformers import PIECES, words
from weft_reference.speech_cases import SpeechTaskCase
from weft_reference.tasks import Call

CONTROLS = (
    "startofcontext",
    "startoftranscript",
    "emo:undefined",
    "en",
    "ja",
    "de",
    "pnc",
    "nopnc",
    "noitn",
    "notimestamp",
    "nodiarize",
)
LANGUAGES = ("__eng__", "__fra__", "__jpn__")
TEMPLATE = (
    "{%- for message in messages %}{%- for part in message.content if part.type == 'text' %}"
    "<|startofcontext|><|startoftranscript|><|emo:undefined|>"
    "<|{{ part.source_language }}|><|{{ part.target_language }}|>"
    "<|{{ 'pnc' if part.punctuation else 'nopnc' }}|><|noitn|><|notimestamp|><|nodiarize|>"
    "{%- endfor %}{%- endfor %}"
)
BEGIN, END = 1, 2
ODD = {"array": [round(0.3 * (i * i % 97) / 97 - 0.1, 4) for i in range(937)], "sampling_rate": 16000}
GREEDY: dict[str, Any] = {"max_new_tokens": 9, "num_beams": 1}
BEAMS: dict[str, Any] = {"max_new_tokens": 7, "num_beams": 3}


def tokenizer(controls: tuple[str, ...], **changes: Any) -> Any:
    ends = {"bos_token": "<s>", "eos_token": "</s>"}
    made = words(transformers.PreTrainedTokenizerFast, ["<unk>", "<s>", "</s>", *PIECES, "<pad>"], **ends, **changes)
    made.add_special_tokens({"additional_special_tokens": list(controls)})
    return made


def ids(made: Any, start: int) -> dict[str, Any]:
    return {
        "bos_token_id": BEGIN,
        "eos_token_id": END,
        "pad_token_id": made.pad_token_id,
        "decoder_start_token_id": start,
        "no_repeat_ngram_size": 2,
        # Texts of pieces alone, none of which is dropped.
        "suppress_tokens": [made.unk_token_id, BEGIN, *range(made.pad_token_id, len(made))],
    }


def calls(*given: tuple[Any, Mapping[str, Any]]) -> tuple[Call, ...]:
    return tuple(Call(sound, {"generate_kwargs": dict(options)}) for sound, options in given)


def for_cohere(processor: Any, audio: Any, options: dict[str, Any]) -> Mapping[str, Any]:
    spoken = {name: options.pop(name) for name in ("language", "punctuation") if name in options}
    return processor(audio, sampling_rate=16000, **spoken)


def pieces_of_cohere(processor: Any, rows: list[Any], others: Mapping[str, Any], options: dict[str, Any]) -> str:
    given = {"audio_chunk_index": others["audio_chunk_index"], "language": options["language"]}
    texts = [row.tolist() for row in rows]
    return processor.decode(texts, skip_special_tokens=True, **given)[0]


def cohere(encoder: dict[str, Any], decoder: dict[str, Any]) -> SpeechTaskCase:
    """Recordings in pieces of a third of a second, which end where it is quiet."""
    made = tokenizer(tuple(f"<|{name}|>" for name in CONTROLS))
    extractor = transformers.CohereAsrFeatureExtractor(
        feature_size=12, max_audio_clip_s=0.4, overlap_chunk_second=0.1, min_energy_window_samples=200
    )
    start = made.convert_tokens_to_ids("<|startofcontext|>")
    sizes = decoder | {"vocab_size": len(made), "max_position_embeddings": 40}
    config = transformers.CohereAsrConfig(encoder_config=encoder, **sizes)
    return SpeechTaskCase(
        "cohere_asr",
        "CohereAsrForConditionalGeneration",
        config,
        transformers.CohereAsrProcessor(extractor, made),
        calls(
            ("speech.wav", GREEDY | {"language": "en"}),
            ("sweep.wav", GREEDY | {"language": "ja", "punctuation": False}),
            (ODD, BEAMS | {"language": "de"}),
            (["sweep.wav", "speech.wav"], GREEDY | {"language": "de"}),
        ),
        "Ten tokens before a text; pieces joined with a space, and without one; a short recording in one piece.",
        ids(made, start),
        for_cohere,
        pieces_of_cohere,
    )


def for_canary(processor: Any, audio: Any, options: dict[str, Any]) -> Mapping[str, Any]:
    names = {"language": "source_language", "target_language": "target_language", "punctuation": "punctuation"}
    asked = {name: options.pop(ours) for ours, name in names.items() if ours in options}
    texts = processor.apply_transcription_request(audio, tokenize=False, **asked)
    return processor(audio=audio, text=texts, sampling_rate=16000)


def canary(encoder: dict[str, Any], decoder: dict[str, Any]) -> SpeechTaskCase:
    made = tokenizer(tuple(f"<|{name}|>" for name in CONTROLS))
    start = made.convert_tokens_to_ids("<|startofcontext|>")
    sizes = decoder | {"vocab_size": len(made), "max_position_embeddings": 40}
    config = transformers.CanaryConfig(encoder_config=encoder, decoder_config=sizes, vocab_size=len(made))
    extractor = transformers.ParakeetFeatureExtractor(feature_size=12)
    return SpeechTaskCase(
        "canary",
        "CanaryForConditionalGeneration",
        config,
        transformers.CanaryProcessor(extractor, made, chat_template=TEMPLATE),
        calls(
            ("speech.wav", GREEDY),
            ("sweep.wav", GREEDY | {"language": "German", "punctuation": False}),
            (ODD, BEAMS | {"language": "en", "target_language": "de"}),
            (["sweep.wav", "speech.wav"], GREEDY | {"language": "de"}),
        ),
        "A chat template before a text: transcription and translation, with and without punctuation.",
        ids(made, start),
        for_canary,
    )


def for_seamless(processor: Any, audio: Any, _: dict[str, Any]) -> Mapping[str, Any]:
    return processor(audio=audio, sampling_rate=16000, return_tensors="pt")


def seamless(model: str, prefix: str, sizes: dict[str, Any]) -> SpeechTaskCase:
    made = tokenizer(LANGUAGES)
    extractor = transformers.SeamlessM4TFeatureExtractor(feature_size=6, num_mel_bins=6)
    config = getattr(transformers, f"{prefix}Config")(**(sizes | {"vocab_size": len(made)}))
    codes = {name.strip("_"): made.convert_tokens_to_ids(name) for name in LANGUAGES}
    return SpeechTaskCase(
        model,
        f"{prefix}ForSpeechToText",
        config,
        transformers.SeamlessM4TProcessor(extractor, made),
        calls(
            ("speech.wav", GREEDY | {"tgt_lang": "eng"}),
            ("sweep.wav", GREEDY | {"tgt_lang": "__fra__"}),
            (ODD, BEAMS | {"tgt_lang": "jpn"}),
            (["sweep.wav", "speech.wav"], GREEDY),
        ),
        "Texts that begin with a language, and without one.",
        ids(made, END) | {"text_decoder_lang_to_code_id": codes},
        for_seamless,
    )
