"""Tasks of SpeechT5: spectrograms of texts, by a seed, and the texts of recordings."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import sentencepiece
import torch
from transformers import SpeechT5Config, SpeechT5FeatureExtractor, SpeechT5Tokenizer

from weft_reference.audio_tasks import AudioTaskCase
from weft_reference.cases import ruled_model, save_config
from weft_reference.files import Files, folder_files
from weft_reference.inputs import floats
from weft_reference.tasks import Call, record, task_json

TEXTS = ("the quick brown fox jumps over the lazy dog", "a warp thread, a weft thread.", "who wove it, and when?")


@cache
def characters() -> bytes:
    """A SentencePiece model of single characters, as `spm_char.model` of published checkpoints."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TEXTS),
        model_writer=model,
        model_type="char",
        vocab_size=33,
        character_coverage=1.0,
        bos_id=0,
        pad_id=1,
        eos_id=2,
        unk_id=3,
        hard_vocab_limit=False,
        normalization_rule_name="identity",
        minloglevel=2,
    )
    return model.getvalue()


def tokenizer() -> SpeechT5Tokenizer:
    with tempfile.TemporaryDirectory() as temporary:
        path = Path(temporary) / "spm_char.model"
        path.write_bytes(characters())
        return SpeechT5Tokenizer(str(path))


@dataclass(frozen=True)
class SpectrogramCase:
    """What `generate` makes of texts without a vocoder, each call from a seed of its own."""

    path: str
    config: SpeechT5Config
    calls: tuple[Call, ...]
    notes: str

    def make(self) -> Files:
        model, parameters = ruled_model("SpeechT5ForTextToSpeech", self.config)
        words = tokenizer()
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            save_config(model, folder)
            words.save_pretrained(folder)
            files = folder_files(folder)

        def answer(text: Any, given: dict[str, Any]) -> Any:
            options = dict(given["forward_params"])
            voice = torch.tensor(options.pop("speaker_embeddings"), dtype=torch.float32)
            torch.manual_seed(given["seed"])
            made = model.generate(**words(text, return_tensors="pt"), speaker_embeddings=voice, **options)
            return {"spectrogram": made.tolist()}

        calls = [record(call, answer) for call in self.calls]
        files["task.json"] = task_json("text-to-audio", "SpeechT5ForTextToSpeech", calls, parameters, self.notes)
        return {f"{self.path}/{name}": data for name, data in files.items()}


def speech(small: dict[str, Any]) -> Iterator[SpectrogramCase]:
    config = SpeechT5Config(**(small | {"vocab_size": len(tokenizer()), "max_text_positions": 60}))
    voice = [[round(float(x), 4) for x in floats("voice", (config.speaker_embedding_dim,))]]

    def call(text: str, seed: int, **options: Any) -> Call:
        return Call(text, {"forward_params": {"speaker_embeddings": voice, **options}, "seed": seed})

    yield SpectrogramCase(
        "speecht5/tasks/text-to-audio",
        config,
        (
            call("the quick fox", 7, maxlenratio=1.5),
            call("a warp  thread, X", 8, maxlenratio=1.0, threshold=5.0),
            call("who wove it?", 9, minlenratio=0.5, maxlenratio=2.0, threshold=0.1),
        ),
        "Texts with spaces and an unknown letter, lengths bounded on both sides.",
    )


def recognition(small: dict[str, Any]) -> Iterator[AudioTaskCase]:
    words = tokenizer()
    changes = {"vocab_size": len(words), "conv_stride": [10, 8, 4], "tie_word_embeddings": False}
    config = SpeechT5Config(**(small | changes))
    yield AudioTaskCase(
        "speecht5/tasks/automatic-speech-recognition",
        "automatic-speech-recognition",
        "SpeechT5ForSpeechToText",
        config,
        SpeechT5FeatureExtractor(),
        (
            Call("speech.wav", {"generate_kwargs": {"max_new_tokens": 8}}),
            Call("sweep.wav", {"generate_kwargs": {"max_new_tokens": 6, "num_beams": 1}}),
            Call(["speech.wav", "sweep.wav"], {"generate_kwargs": {"max_new_tokens": 5, "num_beams": 2}}),
        ),
        "Files of other rates, by beams and greedily.",
        words,
        {"decoder_start_token_id": 2, "bos_token_id": 0, "eos_token_id": 2, "pad_token_id": 1}
        | {"no_repeat_ngram_size": 2, "suppress_tokens": [0, 1, 2, 3]},
    )


__all__ = ["recognition", "speech"]
