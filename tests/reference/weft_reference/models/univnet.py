"""UnivNet: spectrograms and noise to waveforms, with strides even and odd."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import transformers

from weft_reference import stores
from weft_reference.cases import Case
from weft_reference.inputs import floats

SMALL: dict[str, Any] = {
    "model_in_channels": 5,
    "model_hidden_channels": 4,
    "num_mel_bins": 7,
    "resblock_kernel_sizes": [3, 5],
    "resblock_stride_sizes": [4, 3],
    "resblock_dilation_sizes": [[1, 3], [1, 2, 4]],
    "kernel_predictor_num_blocks": 2,
    "kernel_predictor_conv_size": 3,
}


def case(name: str, notes: str, lengths: tuple[int, int] = (9, 6), **changes: Any) -> Case:
    made = SMALL | changes
    config = transformers.UnivNetConfig(**made, kernel_predictor_hidden_channels=made["model_in_channels"])
    frames = max(lengths)
    given = {
        "input_features": floats(f"{name}.mel", (2, frames, config.num_mel_bins)),
        "noise_sequence": floats(f"{name}.noise", (2, frames, config.model_in_channels), -2.0, 2.0),
        "padding_mask": (np.arange(frames)[None] < np.array(lengths)[:, None]).astype(np.int64),
    }
    return Case(f"univnet/{name}", "UnivNetModel", config, given, notes)


def goldens() -> Iterator[Case]:
    yield case("waveform", "Two spectrograms, the second shorter; an even and an odd stride.")
    other = {"leaky_relu_slope": 0.05, "kernel_predictor_conv_size": 5, "kernel_predictor_num_blocks": 1}
    one = {"resblock_kernel_sizes": [3], "resblock_stride_sizes": [8], "resblock_dilation_sizes": [[1, 3, 9]]}
    yield case("one-block", "One block, another slope, a wider kernel of the predictor.", (7, 7), **other, **one)


def random_case(rng: Random, path: str) -> Case:
    blocks = rng.randint(1, 3)
    changes = {
        "model_in_channels": rng.randint(2, 8),
        "model_hidden_channels": rng.randint(2, 6),
        "num_mel_bins": rng.randint(3, 12),
        "resblock_kernel_sizes": [rng.choice((1, 3, 5)) for _ in range(blocks)],
        "resblock_stride_sizes": [rng.randint(2, 6) for _ in range(blocks)],
        "resblock_dilation_sizes": [[rng.randint(1, 5) for _ in range(rng.randint(1, 3))] for _ in range(blocks)],
    }
    lengths = (rng.randint(8, 14), rng.randint(4, 8))
    return replace(case("random", "Drawn at random.", lengths, **changes), path=path, store=stores.whole)


DRAWN = {"univnet": random_case}
