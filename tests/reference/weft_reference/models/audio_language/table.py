"""Decoders that read recordings, one entry a model."""

from __future__ import annotations

from random import Random
from typing import Any

from transformers import PreTrainedConfig

from weft_reference.models.audio_language.chunked import CHUNKED
from weft_reference.models.audio_language.convolved import VIBEVOICE
from weft_reference.models.audio_language.family import AudioFamily, spectra
from weft_reference.models.llava import IMAGE as AUDIO
from weft_reference.models.vision_language.family import Changes

"""A small Whisper encoder by the names of Qwen2-Audio's configuration."""
WHISPER: Changes = {
    "num_mel_bins": 6,
    "d_model": 12,
    "encoder_layers": 2,
    "encoder_attention_heads": 3,
    "encoder_ffn_dim": 18,
    "max_source_positions": 12,
}
"""The same by the names of its successors."""
SUCCESSOR: Changes = {
    "num_mel_bins": 6,
    "hidden_size": 12,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "intermediate_size": 18,
    "max_source_positions": 12,
}
GLMASR: Changes = {
    "num_mel_bins": 6,
    "hidden_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "intermediate_size": 96,
    "max_position_embeddings": 40,
}


def positions(config: PreTrainedConfig) -> int:
    return 2 * config.audio_config.max_source_positions


def pooled(frames: int) -> int:
    """Positions of Whisper's encoder, of which pairs are averaged."""
    return -(-frames // 2) // 2


def whisper(rng: Random, _: Any) -> Changes:
    heads = rng.choice((1, 2, 4))
    audio = {
        "num_mel_bins": rng.randint(3, 12),
        "hidden_size": heads * rng.choice((4, 6)),
        "num_hidden_layers": rng.randint(1, 3),
        "num_attention_heads": heads,
        "intermediate_size": rng.randint(9, 40),
        "max_source_positions": rng.randint(9, 16),
        "activation_function": rng.choice(("gelu", "relu")),
    }
    return {"audio": audio}


def qwen2_audio(rng: Random, config: Any) -> Changes:
    names = {
        "hidden_size": "d_model",
        "num_hidden_layers": "encoder_layers",
        "num_attention_heads": "encoder_attention_heads",
        "intermediate_size": "encoder_ffn_dim",
    }
    audio = whisper(rng, config)["audio"]
    return {"audio": {names.get(name, name): value for name, value in audio.items()}}


def side_by_side(rng: Random, config: Any) -> Changes:
    """Four positions as wide as the layers between."""
    audio = whisper(rng, config)["audio"]
    audio |= {"intermediate_size": 4 * audio["hidden_size"], "max_source_positions": 4 * rng.randint(2, 4)}
    return {"audio": audio}


def rotated(rng: Random, _: Any) -> Changes:
    heads = rng.choice((2, 4))
    width = heads * rng.choice((4, 8))
    audio = {
        "num_mel_bins": rng.randint(3, 12),
        "hidden_size": width,
        "num_hidden_layers": rng.randint(1, 3),
        "num_attention_heads": heads,
        "num_key_value_heads": rng.choice((heads, heads // 2)),
        "intermediate_size": 4 * width,
        "hidden_act": rng.choice(("gelu", "relu")),
    }
    return {"audio": audio, "tie_word_embeddings": rng.random() < 0.5}


FAMILIES = (
    AudioFamily(
        "qwen2_audio",
        "Qwen2Audio",
        {"model_type": "qwen2"},
        WHISPER,
        {"audio_token_index": AUDIO},
        spectra(pooled, positions, "feature_attention_mask"),
        {
            "window": (
                "Windows of the language model; another activation function.",
                {
                    "text": {"use_sliding_window": True, "sliding_window": 6, "max_window_layers": 1},
                    "audio": {"activation_function": "relu"},
                },
            ),
            "odd-positions": (
                "An odd number of positions, of which the last has no feature.",
                {"audio": {"max_source_positions": 11}},
            ),
        },
        qwen2_audio,
        without=("attention_mask",),
    ),
    AudioFamily(
        "audioflamingo3",
        "AudioFlamingo3",
        {"model_type": "qwen2"},
        SUCCESSOR,
        {"audio_token_id": AUDIO},
        spectra(pooled, positions),
        {"no-bias": ("A projector without biases.", {"projector_bias": False, "projector_hidden_act": "relu"})},
        lambda rng, config: whisper(rng, config) | {"projector_bias": rng.random() < 0.5},
    ),
    AudioFamily(
        "voxtral",
        "Voxtral",
        {"model_type": "llama", "head_dim": 6},
        SUCCESSOR | {"intermediate_size": 48},
        {"audio_token_id": AUDIO},
        spectra(lambda frames: frames // 8, positions, None),
        {"activation": ("Another activation function of the projector.", {"projector_hidden_act": "relu"})},
        side_by_side,
    ),
    AudioFamily(
        "glmasr",
        "GlmAsr",
        {"model_type": "llama"},
        GLMASR,
        {"audio_token_id": AUDIO},
        spectra(lambda frames: -(-frames // 2) // 4, lambda _: 32),
        {
            "untied": (
                "Scores of tokens have a table of their own; grouped heads.",
                {"tie_word_embeddings": False, "audio": {"num_key_value_heads": 1}},
            )
        },
        rotated,
    ),
    AudioFamily(
        "musicflamingo",
        "MusicFlamingo",
        {"model_type": "qwen2"},
        SUCCESSOR | {"model_type": "audioflamingo3_encoder"},
        {"audio_token_id": AUDIO},
        spectra(pooled, positions),
        {
            "wider": (
                "More pairs turn, by another base and longer frames.",
                {
                    "rope_parameters": {"rope_type": "default", "rope_theta": 40.0, "partial_rotary_factor": 0.5},
                    "audio_frame_step": 0.5,
                },
            )
        },
        lambda rng, config: whisper(rng, config) | {"audio_frame_step": rng.choice((0.01, 0.1))},
    ),
    AudioFamily(
        "moss_transcribe_diarize",
        "MossTranscribeDiarize",
        {"model_type": "qwen3", "head_dim": 6},
        SUCCESSOR,
        {"audio_token_id": AUDIO},
        spectra(lambda frames: -(-frames // 8), positions),
        {
            "untied": (
                "Scores of tokens have a table of their own; a projector without biases, another activation.",
                {
                    "tie_word_embeddings": False,
                    "projector_bias": False,
                    "projector_hidden_act": "gelu",
                    "text": {"rms_norm_eps": 1e-2},
                },
            )
        },
        lambda rng, config: side_by_side(rng, config) | {"tie_word_embeddings": rng.random() < 0.5},
    ),
    *CHUNKED,
    VIBEVOICE,
)
