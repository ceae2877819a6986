"""VibeVoice: sounds to latents and back by causal convolutions, and a decoder that reads latents of two encoders."""

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

LATENTS: Changes = {
    "hidden_size": 6,
    "kernel_size": 3,
    "num_filters": 2,
    "downsampling_ratios": [2, 3],
    "depths": [1, 2, 1],
    "ffn_expansion": 2,
    "rms_norm_eps": 1e-2,
}


def samples(config: PreTrainedConfig, count: int, key: str) -> Inputs:
    return {"hidden_states": floats(f"samples.{key}", (count, config.channels, 24))}


def latents(config: PreTrainedConfig, count: int, key: str) -> Inputs:
    return {"hidden_states": floats(f"latents.{key}", (count, config.hidden_size, 5))}


def heard(config: PreTrainedConfig, count: int, key: str) -> Recordings:
    """Samples, every second recording shorter."""
    hop = config.acoustic_tokenizer_encoder_config.hop_length
    seen = [4 * hop if index % 2 == 0 else 2 * hop + 1 for index in range(count)]
    values = floats(f"samples.{key}", (count, 1, 4 * hop))
    mask = frame_mask(4 * hop, seen)
    return Recordings(
        {"input_values": (values * mask[:, None]).astype(np.float32), "padding_mask": mask},
        [-(-one // hop) for one in seen],
    )


def convolved(rng: Random, _: Any) -> Changes:
    stages = rng.randint(1, 3)
    audio = {
        "hidden_size": rng.randint(3, 9),
        "kernel_size": rng.randint(1, 7),
        "num_filters": rng.randint(1, 3),
        "downsampling_ratios": [2, 3, 2][:stages],
        "depths": [rng.randint(1, 3) for _ in range(stages + 1)],
        "ffn_expansion": rng.randint(1, 3),
        "hidden_act": rng.choice(("gelu", "relu")),
    }
    return {"audio": audio}


def both(rng: Random, config: Any) -> Changes:
    """Two encoders of one hop length."""
    audio, other = convolved(rng, config)["audio"], convolved(rng, config)["audio"]
    same = {name: audio[name] for name in ("downsampling_ratios", "depths")}
    return {
        "audio": audio,
        "semantic_tokenizer_encoder_config": LATENTS | other | same,
        "acoustic_tokenizer_chunk_size": 120,
    }


VIBEVOICE = AudioFamily(
    "vibevoice_asr",
    "VibeVoiceAsr",
    {"model_type": "qwen2"},
    LATENTS,
    {
        "audio_token_id": AUDIO,
        "semantic_tokenizer_encoder_config": LATENTS | {"hidden_size": 8, "num_filters": 3},
        "acoustic_tokenizer_chunk_size": 120,
    },
    heard,
    {"in-pieces": ("The reference takes samples in pieces.", {"acoustic_tokenizer_chunk_size": 12})},
    both,
    key="acoustic_tokenizer_encoder_config",
    told={"sample": np.array(False)},
)
