"""Speech: the shapes of published checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import transformers

from published.made import Checkpoint, floats


def whisper() -> Checkpoint:
    """openai/whisper-tiny: 30 seconds of sound."""
    config = transformers.WhisperConfig(
        d_model=384,
        encoder_layers=4,
        decoder_layers=4,
        encoder_attention_heads=6,
        decoder_attention_heads=6,
        encoder_ffn_dim=1536,
        decoder_ffn_dim=1536,
        num_mel_bins=80,
        vocab_size=51865,
        max_source_positions=1500,
        max_target_positions=448,
    )
    return Checkpoint("WhisperForConditionalGeneration", config, {"input_features": floats(1, 80, 3000)})


def wav2vec2() -> Checkpoint:
    """facebook/wav2vec2-base-960h: 10 seconds at 16 kHz."""
    return Checkpoint("Wav2Vec2ForCTC", transformers.Wav2Vec2Config(), {"input_values": floats(1, 160_000)})


CHECKPOINTS: Mapping[str, Callable[[], Checkpoint]] = {
    "whisper": whisper,
    "wav2vec2": wav2vec2,
}
