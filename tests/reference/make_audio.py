"""Makes `weft_reference/data/audio`: short sounds in every format that is read, and what they decode to.

Needs `soundfile` (libsndfile with its encoders), which nothing else does: `pip install soundfile safetensors`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import soundfile
from safetensors.numpy import save_file

FOLDER = Path(__file__).resolve().parent / "weft_reference" / "data" / "audio"
# Of what is decoded, every so many samples are kept.
EVERY = 11
# File, container, coding, sampling rate, channels, seconds.
FILES = [
    ("sweep.wav", "WAV", "PCM_16", 16000, 1, 0.7),
    ("speech.wav", "WAV", "PCM_16", 16000, 1, 1.23),
    ("pcm24.wav", "WAV", "PCM_24", 22050, 1, 0.2),
    ("pcm8.wav", "WAV", "PCM_U8", 8000, 1, 0.3),
    ("float.wav", "WAV", "FLOAT", 11025, 2, 0.2),
    ("stereo.wav", "WAV", "PCM_16", 44100, 2, 0.3),
    ("stereo.flac", "FLAC", "PCM_16", 44100, 2, 0.5),
    ("mono24.flac", "FLAC", "PCM_24", 16000, 1, 0.3),
    ("mono.mp3", "MP3", "MPEG_LAYER_III", 16000, 1, 0.6),
    ("stereo.mp3", "MP3", "MPEG_LAYER_III", 44100, 2, 0.5),
    ("mono.ogg", "OGG", "VORBIS", 16000, 1, 0.6),
    ("stereo.ogg", "OGG", "VORBIS", 48000, 2, 0.5),
]


def sound(rate: int, channels: int, seconds: float, seed: int) -> np.ndarray:
    """A tone that rises, another that falls, bursts, and noise beneath: [samples, channels]."""
    random = np.random.default_rng(seed)
    t = np.arange(int(rate * seconds)) / rate
    top = 0.375 * rate
    rising = np.sin(2 * np.pi * (60 * t + (top - 60) * t**2 / (2 * seconds)))
    falling = np.sin(2 * np.pi * (0.2 * rate * t - 0.15 * rate * t**2 / (2 * seconds)))
    bursts = 0.6 + 0.4 * np.sign(np.sin(2 * np.pi * 7 * t))
    mixes = [bursts * (0.35 * rising + 0.2 * falling), 0.3 * falling + 0.1 * rising]
    noise = 0.02 * random.standard_normal((len(t), channels))
    return np.stack(mixes[:channels], axis=1) + noise


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    decoded = {}
    for seed, (name, container, coding, rate, channels, seconds) in enumerate(FILES):
        path = FOLDER / name
        soundfile.write(path, sound(rate, channels, seconds, seed), rate, format=container, subtype=coding)
        samples, _ = soundfile.read(path, dtype="float32", always_2d=True)
        mono = samples.mean(axis=1, dtype=np.float32)
        decoded[f"out.{name}"] = mono[::EVERY].copy()
        decoded[f"length.{name}"] = np.array([len(mono), rate])
    save_file(decoded, FOLDER / "decoded.safetensors")


if __name__ == "__main__":
    main()
