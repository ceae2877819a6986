"""Decoders whose encoders read recordings of any length, one entry a model."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
from transformers import PreTrainedConfig

from weft_reference.cases import Inputs
from weft_reference.inputs import floats
from weft_reference.models.audio_language.family import AudioFamily, Recordings, frame_mask
from weft_reference.models.llava import IMAGE as AUDIO
from weft_reference.models.vision_language.family import Changes

CHUNKS: Changes = {
    "num_mel_bins": 5,
    "d_model": 12,
    "encoder_layers": 2,
    "encoder_attention_heads": 3,
    "encoder_ffn_dim": 18,
    "downsample_hidden_size": 3,
    "n_window_infer": 100,
    "output_dim": 16,
}
SENSE_VOICE: Changes = {
    "num_mel_bins": 3,
    "num_stacked_frames": 2,
    "hidden_size": 12,
    "num_attention_heads": 3,
    "intermediate_size": 18,
    "num_hidden_layers": 4,
    "num_timestamp_prediction_layers": 2,
    "fsmn_kernel_size": 4,
}
ADAPTOR: Changes = {
    "hidden_size": 16,
    "num_attention_heads": 4,
    "intermediate_size": 4,
    "num_hidden_layers": 2,
    "projector_hidden_size": 10,
}
CONFORMER: Changes = {
    "input_dim": 6,
    "num_layers": 3,
    "hidden_dim": 12,
    "feedforward_mult": 2,
    "num_heads": 3,
    "output_dim": 7,
    "context_size": 4,
    "max_pos_emb": 6,
    "conv_kernel_size": 3,
}
QFORMER: Changes = {
    "model_type": "blip_2_qformer",
    "hidden_size": 8,
    "intermediate_size": 10,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "encoder_hidden_size": 12,
    "use_qformer_text_input": False,
}


def seconds(config: PreTrainedConfig, count: int, key: str) -> Inputs:
    """Spectrograms of two seconds, the second a part of one, the third one and a part."""
    bins = getattr(config, "audio_config", config).num_mel_bins
    seen = [(200, 37, 163)[index % 3] for index in range(count)]
    features = floats(f"features.{key}", (count, bins, 200), -1.5, 1.5)
    return {"input_features": features, "input_features_mask": frame_mask(200, seen)}


def chunks(config: PreTrainedConfig, count: int, key: str) -> Recordings:
    inputs = seconds(config, count, key)
    seen = inputs["input_features_mask"].sum(-1)
    return Recordings(inputs, [sum(-(-min(100, max(0, one - first)) // 8) for first in (0, 100)) for one in seen])


def stacks(config: PreTrainedConfig, count: int, key: str) -> Inputs:
    """Stacked frames, every second recording shorter."""
    audio = getattr(config, "audio_config", config)
    seen = [7 if index % 2 == 0 else 3 for index in range(count)]
    features = floats(f"features.{key}", (count, 7, audio.num_mel_bins * audio.num_stacked_frames), -1.5, 1.5)
    return {"input_features": features, "input_features_mask": frame_mask(7, seen)}


def stacked(config: PreTrainedConfig, count: int, key: str) -> Recordings:
    inputs = stacks(config, count, key)
    return Recordings(inputs, list(inputs["input_features_mask"].sum(-1)))


def windows(config: PreTrainedConfig, count: int, key: str) -> Recordings:
    """Ten frames, which fill no whole number of blocks nor of windows; every second recording ends with padding."""
    features = floats(f"features.{key}", (count, 10, config.encoder_config.input_dim), -1.5, 1.5)
    each = -(-10 // config.window_size) * (config.window_size // config.downsample_rate)
    seen = [each if index % 2 == 0 else each - 1 for index in range(count)]
    return Recordings(
        {"input_features": features, "input_features_mask": frame_mask(each, seen).astype(np.bool_)}, seen
    )


def qwen3_asr(rng: Random, config: Any) -> Changes:
    heads = rng.choice((1, 2, 4))
    audio = {
        "num_mel_bins": rng.randint(3, 17),
        "d_model": heads * rng.choice((4, 6)),
        "encoder_layers": rng.randint(1, 3),
        "encoder_attention_heads": heads,
        "encoder_ffn_dim": rng.randint(9, 40),
        "downsample_hidden_size": rng.randint(1, 5),
        "n_window_infer": rng.choice((100, 200, 800)),
        "activation_function": rng.choice(("gelu", "relu")),
    }
    text = getattr(config, "text_config", None)
    own = {} if text is None else {"output_dim": text.hidden_size}
    return {"audio": audio | own, "tie_word_embeddings": rng.random() < 0.5}


def fun_asr_nano(rng: Random, config: Any) -> Changes:
    heads = rng.choice((1, 2, 4))
    layers = rng.randint(1, 4)
    audio = {
        "num_mel_bins": rng.randint(3, 8),
        "num_stacked_frames": 2 * rng.randint(1, 3),
        "hidden_size": heads * rng.choice((4, 6)),
        "num_attention_heads": heads,
        "intermediate_size": rng.randint(9, 40),
        "num_hidden_layers": layers,
        "num_timestamp_prediction_layers": rng.randint(0, layers - 1),
        "fsmn_kernel_size": rng.randint(1, 6),
        "layer_norm_eps": rng.choice((1e-5, 1e-2)),
    }
    text = getattr(config, "text_config", None)
    if text is None:
        return {"audio": audio}
    width = text.hidden_size
    adaptor = {
        "hidden_size": width,
        "num_attention_heads": text.num_attention_heads,
        "intermediate_size": width // 4,
        "num_hidden_layers": rng.randint(1, 3),
        "projector_hidden_size": rng.randint(5, 20),
        "projector_hidden_act": rng.choice(("relu", "gelu")),
    }
    return {"audio": audio, "adaptor_config": adaptor, "tie_word_embeddings": rng.random() < 0.5}


def granite_speech(rng: Random, _: Any) -> Changes:
    heads, downsample = rng.choice((1, 2, 4)), rng.randint(1, 3)
    audio = {
        "input_dim": rng.randint(3, 10),
        "num_layers": rng.randint(2, 4),
        "hidden_dim": heads * rng.choice((4, 6)),
        "num_heads": heads,
        "dim_head": rng.choice((None, 4, 5)),
        "feedforward_mult": rng.randint(1, 3),
        "output_dim": rng.randint(3, 9),
        "context_size": rng.randint(2, 6),
        "conv_kernel_size": rng.randint(2, 6),
        "conv_expansion_factor": rng.randint(1, 3),
    }
    projector = QFORMER | {
        "encoder_hidden_size": audio["hidden_dim"],
        "num_hidden_layers": rng.randint(1, 4),
        "cross_attention_frequency": rng.choice((1, 2)),
    }
    windows = {"downsample_rate": downsample, "window_size": downsample * rng.randint(1, 3)}
    return {"audio": audio, "projector_config": projector, "tie_word_embeddings": rng.random() < 0.5} | windows


def granite_speech_plus(rng: Random, config: Any) -> Changes:
    made = granite_speech(rng, config)
    layers = sorted(rng.sample(range(made["audio"]["num_layers"]), rng.randint(1, 2)))
    made["audio"]["cat_hidden_layers"] = layers
    made["projector_config"]["encoder_hidden_size"] = made["audio"]["hidden_dim"] * (len(layers) + 1)
    return made


MULTIPLIED: Changes = {
    "embedding_multiplier": 3.0,
    "logits_scaling": 4.0,
    "residual_multiplier": 0.5,
    "attention_multiplier": 0.3,
}
GRANITE: Changes = {"audio_token_index": AUDIO, "window_size": 4, "downsample_rate": 2, "projector_config": QFORMER}

CHUNKED = (
    AudioFamily(
        "qwen3_asr",
        "Qwen3ASR",
        {"model_type": "qwen3", "head_dim": 6},
        CHUNKS,
        {"audio_token_id": AUDIO},
        chunks,
        {
            "one-window": (
                "A window of two seconds; scores of tokens have a table of their own.",
                {"audio": {"n_window_infer": 200, "activation_function": "relu"}, "tie_word_embeddings": False},
            )
        },
        qwen3_asr,
    ),
    AudioFamily(
        "fun_asr_nano",
        "FunAsrNano",
        {"model_type": "qwen3", "head_dim": 6},
        SENSE_VOICE,
        {"audio_token_id": AUDIO, "adaptor_config": ADAPTOR},
        stacked,
        {
            "untied": (
                "Scores of tokens have a table of their own; other activations, stacks as wide as states.",
                {
                    "tie_word_embeddings": False,
                    "audio": {"hidden_act": "gelu", "num_mel_bins": 6},
                    "adaptor_config": ADAPTOR | {"hidden_act": "gelu", "projector_hidden_act": "silu"},
                },
            )
        },
        fun_asr_nano,
    ),
    AudioFamily(
        "granite_speech",
        "GraniteSpeech",
        {"model_type": "granite"} | MULTIPLIED,
        CONFORMER,
        GRANITE,
        windows,
        {
            "wide-heads": (
                "Heads of a size of their own, an even kernel; blocks of which the last is full.",
                {"audio": {"dim_head": 6, "conv_kernel_size": 4, "context_size": 5}, "tie_word_embeddings": False},
            )
        },
        granite_speech,
        key="encoder_config",
    ),
    AudioFamily(
        "granite_speech_plus",
        "GraniteSpeechPlus",
        {"model_type": "granite"} | MULTIPLIED,
        CONFORMER | {"cat_hidden_layers": [0, 1], "num_layers": 2},
        GRANITE | {"projector_config": QFORMER | {"encoder_hidden_size": 36}},
        windows,
        {
            "last-alone": (
                "No other layers than the last.",
                {"audio": {"cat_hidden_layers": None}, "projector_config": QFORMER},
            )
        },
        granite_speech_plus,
        key="encoder_config",
    ),
)
