"""Goldens of `weft::audio`: what audio files decode and resample to, and what the reference's extractors make of them.

`files/` are the sounds; `decoded.safetensors` has every eleventh sample of what libsndfile decodes, channels averaged,
and the length and sampling rate; `resampled.safetensors` has `<old>.<new>` of one sound. A folder for each case has
`preprocessor_config.json` (or `processor_config.json`), `case.json` with the sounds and options that went in, the shape
of each output and which of its values are kept, and `out.safetensors`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import numpy as np
import transformers

from weft_reference.cases import versions
from weft_reference.files import Files, to_json, to_safetensors
from weft_reference.processors import sounds
from weft_reference.processors.resample import resample
from weft_reference.processors.torchaudio import granite_extractor

FOLDER = "processors/audio"
RATES = ((16000, 8000), (8000, 16000), (44100, 16000), (16000, 48000), (22050, 16000), (16000, 16000))


@dataclass(frozen=True)
class Sounds:
    """The files, what is read from them, and one at other rates."""

    path: str = FOLDER

    def make(self) -> Files:
        made: Files = {f"{self.path}/files/{name}": data for name, data in sounds.files().items()}
        made[f"{self.path}/decoded.safetensors"] = (sounds.FOLDER / "decoded.safetensors").read_bytes()
        sweep = sounds.samples("sweep.wav")[:3001]
        resampled = {f"out.{old}.{new}": resample(sweep, old, new) for old, new in RATES}
        made[f"{self.path}/resampled.safetensors"] = to_safetensors({"in.sweep": sweep} | resampled)
        return made


@dataclass(frozen=True)
class ExtractorCase:
    """`config` is what the file says beside the class; `files` are sounds, cut to `cut` samples where given;
    `options` go to the call; of each output every `every`th value is kept."""

    name: str
    extractor: str
    config: Mapping[str, Any]
    files: tuple[str, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    cut: int | None = None
    every: int = 1
    nested: bool = False
    class_named: bool = True

    @property
    def path(self) -> str:
        return f"{FOLDER}/{self.name}"

    def make(self) -> Files:
        granite = self.extractor == "GraniteSpeech5FeatureExtractor"
        extractor = (granite_extractor if granite else getattr(transformers, self.extractor))(**self.config)
        waves = [sounds.samples(name)[: self.cut] for name in self.files]
        with middle():
            given = waves if len(waves) > 1 else waves[0]
            out = extractor(given, sampling_rate=extractor.sampling_rate, return_tensors="np", **self.options)
        arrays = {name: np.asarray(value) for name, value in out.items()}
        kept = {f"out.{name}": array.reshape(-1)[:: self.every] for name, array in arrays.items()}
        settings = {"feature_extractor_type": self.extractor} if self.class_named else {}
        settings |= dict(self.config)
        case = {
            "class": self.extractor,
            "reference": versions(),
            "files": list(self.files),
            "cut": self.cut,
            "options": dict(self.options),
            "every": self.every,
            "shapes": {name: list(array.shape) for name, array in arrays.items()},
        }
        file = "processor_config.json" if self.nested else "preprocessor_config.json"
        return {
            f"{self.path}/{file}": to_json({"feature_extractor": settings} if self.nested else settings),
            f"{self.path}/case.json": to_json(case),
            f"{self.path}/out.safetensors": to_safetensors(kept),
        }


def middle() -> Any:
    """Where the reference draws at random, the middle of what it draws from."""

    class Middle:
        def __enter__(self) -> None:
            self.patches = [
                mock.patch("numpy.random.randint", lambda low, high: (low + high - 1) // 2),
                mock.patch("numpy.random.choice", lambda places: places[len(places) // 2]),
            ]
            for patch in self.patches:
                patch.start()

        def __exit__(self, *_: Any) -> None:
            for patch in self.patches:
                patch.stop()

    return Middle()


def goldens() -> Iterator[Sounds | ExtractorCase]:
    yield Sounds()
    yield from waveform()
    yield from log_mel()
    yield from mel_fusion()
    yield from log_filterbank()
    yield from granite_log_mel()


def waveform() -> Iterator[ExtractorCase]:
    def case(name: str, config: Mapping[str, Any], *files: str, **more: Any) -> ExtractorCase:
        return ExtractorCase(f"waveform-{name}", "Wav2Vec2FeatureExtractor", config, files, every=13, **more)

    both = ("sweep.wav", "speech.wav")
    yield case("one", {}, "sweep.wav")
    yield case("unnamed-class", {"do_normalize": True, "sampling_rate": 16000}, "sweep.wav", class_named=False)
    yield case("raw", {"do_normalize": False, "return_attention_mask": True}, "sweep.wav")
    yield case("padded", {"return_attention_mask": True}, *both, options={"padding": "longest"})
    yield case("padded-unmasked", {"padding_value": 0.1}, *both, options={"padding": "longest"})
    options = {"padding": "max_length", "max_length": 13000, "truncation": True, "pad_to_multiple_of": 128}
    yield case("cut", {}, *both, options=options | {"return_attention_mask": True})


def log_mel() -> Iterator[ExtractorCase]:
    def case(name: str, config: Mapping[str, Any], *files: str, **more: Any) -> ExtractorCase:
        return ExtractorCase(f"log-mel-{name}", "WhisperFeatureExtractor", config, files, **more)

    both, small = ("sweep.wav", "speech.wav"), {"feature_size": 20, "chunk_length": 1}
    yield case("one", small, "sweep.wav")
    yield case("batch", small | {"return_attention_mask": True}, *both, nested=True, every=11)
    yield case("full", {}, "speech.wav", every=97)
    yield case("full-128", {"feature_size": 128}, *both, every=997, options={"return_attention_mask": True})
    longest = {"truncation": False, "padding": "longest", "return_attention_mask": True}
    yield case("longest", small, *both, options=longest)
    yield case("longest-uneven", small, "speech.wav", cut=17777, options=longest)
    other = {"feature_size": 24, "chunk_length": 2, "n_fft": 512, "hop_length": 200, "padding_value": 0.01}
    yield case("other-sizes", other, *both, every=3)


def granite_log_mel() -> Iterator[ExtractorCase]:
    def case(name: str, config: Mapping[str, Any], *files: str, **more: Any) -> ExtractorCase:
        return ExtractorCase(f"granite-{name}", "GraniteSpeech5FeatureExtractor", config, files, **more)

    yield case("one", {}, "sweep.wav", every=13)
    yield case("padded", {"num_mel_bins": 10}, "sweep.wav", "speech.wav", every=3)
    other = {"num_mel_bins": 8, "n_fft": 256, "win_length": 200, "hop_length": 100, "delta_win_length": 5}
    yield case("other-sizes", other | {"logmel_floor_db": 1.5}, "speech.wav", cut=4777, nested=True)


def mel_fusion() -> Iterator[ExtractorCase]:
    def case(name: str, config: Mapping[str, Any], *files: str, **more: Any) -> ExtractorCase:
        return ExtractorCase(f"mel-fusion-{name}", "ClapFeatureExtractor", small | config, files, **more)

    both = ("sweep.wav", "speech.wav")
    small = {"sampling_rate": 16000, "hop_length": 400, "max_length_s": 1, "fft_window_size": 512}
    small |= {"frequency_min": 50, "frequency_max": 7000}
    one = {"truncation": "rand_trunc"}
    yield case("short", {}, "sweep.wav", every=3)
    yield case("batch", {}, *both, every=5)
    yield case("long", {}, "speech.wav", every=3)
    yield case("barely-long", {}, "speech.wav", cut=16001, every=3)
    yield case("two-repeats", {"padding": "repeatpad"}, "sweep.wav", cut=6000, every=3)
    yield case("one-view", one, "sweep.wav")
    yield case("one-view-long", one | {"frequency_min": 0}, "speech.wav")
    yield case("repeat", one | {"padding": "repeat"}, "sweep.wav", cut=5000)
    yield case("pad", one | {"padding": "pad"}, "sweep.wav", cut=5000)
    full = {"sampling_rate": 48000, "hop_length": 480, "max_length_s": 10, "fft_window_size": 1024}
    yield case("full", full | {"frequency_max": 14000}, "speech.wav", every=997)


def log_filterbank() -> Iterator[ExtractorCase]:
    def case(name: str, config: Mapping[str, Any], *files: str, **more: Any) -> ExtractorCase:
        return ExtractorCase(f"log-filterbank-{name}", "ASTFeatureExtractor", config, files, **more)

    both, small = ("sweep.wav", "speech.wav"), {"num_mel_bins": 24, "max_length": 90}
    yield case("one", small, "sweep.wav")
    yield case("batch", small | {"mean": -1.5, "std": 2.5}, *both, every=3)
    yield case("raw", small | {"do_normalize": False}, "sweep.wav")
    yield case("full", {}, "speech.wav", every=97)
