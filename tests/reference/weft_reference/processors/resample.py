"""Another sampling rate: `torchaudio.functional.resample` with its defaults, stated from its documented definition.

A sinc of `ZEROS` crossings on either side under a Hann window, its cutoff at `ROLLOFF` of the lower Nyquist
frequency, as one convolution with as many kernels as there are phases.
"""

from __future__ import annotations

import math

import numpy as np
import torch

ZEROS = 6
ROLLOFF = 0.99


def resample(samples: np.ndarray, old: int, new: int) -> np.ndarray:
    divisor = math.gcd(old, new)
    old, new = old // divisor, new // divisor
    if old == new:
        return samples
    cutoff = min(old, new) * ROLLOFF
    width = math.ceil(ZEROS * old / cutoff)
    place = torch.arange(-width, width + old, dtype=torch.float64)[None] / old
    phase = torch.arange(0, -new, -1, dtype=torch.float64)[:, None] / new
    t = ((place + phase) * cutoff).clamp(-ZEROS, ZEROS)
    window = torch.cos(t * math.pi / ZEROS / 2) ** 2
    kernels = (torch.sinc(t) * window * cutoff / old).float()
    padded = torch.nn.functional.pad(torch.from_numpy(samples)[None, None], (width, width + old))
    made = torch.nn.functional.conv1d(padded, kernels[:, None], stride=old)
    return made[0].T.reshape(-1)[: math.ceil(new * len(samples) / old)].numpy()
