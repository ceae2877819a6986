"""Encoders of recordings alone, one entry a model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random

import transformers
from transformers import PreTrainedConfig

from weft_reference import stores
from weft_reference.cases import Case, Inputs
from weft_reference.inputs import floats
from weft_reference.models.audio_language.chunked import CHUNKS, SENSE_VOICE, fun_asr_nano, qwen3_asr, seconds, stacks
from weft_reference.models.audio_language.convolved import LATENTS, convolved, latents, samples
from weft_reference.models.audio_language.family import frame_mask
from weft_reference.models.audio_language.table import (
    GLMASR,
    SUCCESSOR,
    WHISPER,
    qwen2_audio,
    rotated,
    side_by_side,
    whisper,
)
from weft_reference.models.vision_language.family import Changes


@dataclass(frozen=True)
class Encoder:
    """`audio` is a tiny configuration, `hear` makes so many recordings, `extras` are cases of its own."""

    model: str
    model_class: str
    audio: Changes
    hear: Callable[[PreTrainedConfig, int, str], Inputs]
    vary: Callable[[Random, PreTrainedConfig], Changes]
    extras: dict[str, tuple[str, Changes]] = field(default_factory=dict)

    def config(self, **changes: object) -> PreTrainedConfig:
        return getattr(transformers, self.model_class).config_class(**(self.audio | changes))

    def case(
        self, name: str, notes: str, count: int = 2, store: object = None, path: str | None = None, **changes: object
    ) -> Case:
        config = self.config(**changes)
        return Case(
            path or f"{self.model}/{name}", self.model_class, config, self.hear(config, count, name), notes, store
        )

    def goldens(self) -> Iterator[Case]:
        yield self.case("base", "Two recordings.")
        yield self.case("file", "model.safetensors as save_pretrained writes it.", store=stores.whole)
        for name, (notes, changes) in self.extras.items():
            yield self.case(name, notes, **changes)

    def random_case(self, rng: Random, path: str) -> Case:
        changes = self.vary(rng, self.config())["audio"]
        store = rng.choice((stores.whole, stores.sharded("20KB")))
        return self.case(path, "Drawn at random.", rng.randint(1, 3), store, path, **changes)


def spectrum(
    frames: Callable[[PreTrainedConfig], int], masked: bool = False
) -> Callable[[PreTrainedConfig, int, str], Inputs]:
    """Spectrograms `[recordings, mels, frames]`, every second shorter where there is a mask."""

    def made(config: PreTrainedConfig, count: int, key: str) -> Inputs:
        whole = frames(config)
        inputs = {"input_features": floats(f"features.{key}", (count, config.num_mel_bins, whole), -1.5, 1.5)}
        if masked:
            inputs["input_features_mask"] = frame_mask(
                whole, [whole if index % 2 == 0 else whole - 5 for index in range(count)]
            )
        return inputs

    return made


def positions(config: PreTrainedConfig) -> int:
    return 2 * config.max_source_positions


RELU: dict[str, tuple[str, Changes]] = {
    "odd-positions": (
        "Another activation function, an odd number of positions.",
        {"activation_function": "relu", "max_source_positions": 11},
    )
}

ENCODERS = (
    Encoder("qwen2_audio_encoder", "Qwen2AudioEncoder", WHISPER, spectrum(positions), qwen2_audio, RELU),
    Encoder("voxtral_encoder", "VoxtralEncoder", SUCCESSOR, spectrum(positions), side_by_side, RELU),
    Encoder("audioflamingo3_encoder", "AudioFlamingo3Encoder", SUCCESSOR, spectrum(positions, True), whisper, RELU),
    Encoder(
        "glmasr_encoder",
        "GlmAsrEncoder",
        GLMASR,
        spectrum(lambda _: 25),
        rotated,
        {"grouped": ("Grouped heads, another activation function.", {"num_key_value_heads": 1, "hidden_act": "relu"})},
    ),
    Encoder(
        "qwen3_asr_encoder",
        "Qwen3ASREncoder",
        CHUNKS,
        seconds,
        qwen3_asr,
        {"one-window": ("A window of two seconds.", {"n_window_infer": 200, "activation_function": "relu"})},
    ),
    Encoder(
        "fun_asr_nano_encoder",
        "FunAsrNanoEncoder",
        SENSE_VOICE,
        stacks,
        fun_asr_nano,
        {
            "as-wide": (
                "Stacks as wide as hidden states, another activation function.",
                {"hidden_act": "gelu", "num_mel_bins": 6},
            )
        },
    ),
    Encoder(
        "vibevoice_acoustic_tokenizer_encoder", "VibeVoiceAcousticTokenizerEncoderModel", LATENTS, samples, convolved
    ),
    Encoder(
        "vibevoice_acoustic_tokenizer_decoder", "VibeVoiceAcousticTokenizerDecoderModel", LATENTS, latents, convolved
    ),
)
