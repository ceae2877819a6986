"""What `GraniteSpeech5FeatureExtractor` takes of `torchaudio`, stated from its documented definitions."""

from __future__ import annotations

import importlib
from types import SimpleNamespace
from typing import Any

import torch
from transformers.audio_utils import mel_filter_bank


class MelSpectrogram(torch.nn.Module):
    """`torchaudio.transforms.MelSpectrogram` with its defaults: power spectra under a periodic Hann window, centred,
    the ends reflected, through triangles over HTK's mels whose peaks are one."""

    def __init__(self, sample_rate: int, n_fft: int, win_length: int, hop_length: int, n_mels: int) -> None:
        super().__init__()
        self.sizes = {"n_fft": n_fft, "win_length": win_length, "hop_length": hop_length}
        self.window = torch.hann_window(win_length)
        filters = mel_filter_bank(n_fft // 2 + 1, n_mels, 0.0, sample_rate / 2, sample_rate, norm=None, mel_scale="htk")
        self.filters = torch.from_numpy(filters).float()

    def forward(self, audio: torch.Tensor) -> torch.Tensor:
        spectrum = torch.stft(audio, window=self.window, pad_mode="reflect", return_complex=True, **self.sizes)
        return (spectrum.abs() ** 2).transpose(-1, -2).matmul(self.filters).transpose(-1, -2)


def compute_deltas(features: torch.Tensor, win_length: int = 5) -> torch.Tensor:
    """`torchaudio.functional.compute_deltas`: regressions over a window, the ends repeated."""
    reach = (win_length - 1) // 2
    rows = torch.nn.functional.pad(features.flatten(0, -2)[:, None], (reach, reach), mode="replicate")
    kernel = torch.arange(-reach, reach + 1, dtype=features.dtype)[None, None]
    made = torch.nn.functional.conv1d(rows, kernel) / (reach * (reach + 1) * (2 * reach + 1) / 3)
    return made[:, 0].reshape(features.shape)


def granite_extractor(**settings: Any) -> Any:
    """A `GraniteSpeech5FeatureExtractor` over these, where its module finds no package."""
    module = importlib.import_module("transformers.models.granite_speech5.feature_extraction_granite_speech5")
    transforms = SimpleNamespace(MelSpectrogram=MelSpectrogram)
    functional = SimpleNamespace(compute_deltas=compute_deltas)
    vars(module)["torchaudio"] = SimpleNamespace(transforms=transforms, functional=functional)
    return module.GraniteSpeech5FeatureExtractor(**settings)
