"""The sounds that audio goldens are made of: `data/audio`, made by `make_audio.py`."""

from __future__ import annotations

import wave
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).resolve().parents[1] / "data" / "audio"


def files() -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(FOLDER.iterdir()) if path.suffix != ".safetensors"}


def samples(name: str) -> np.ndarray:
    """The samples of a 16-bit WAV file of one channel, float32."""
    with wave.open(str(FOLDER / name)) as file:
        return np.frombuffer(file.readframes(file.getnframes()), "<i2").astype(np.float32) / 32768


def rate(name: str) -> int:
    """The sampling rate of a WAV file, Hz."""
    with wave.open(str(FOLDER / name)) as file:
        return file.getframerate()
