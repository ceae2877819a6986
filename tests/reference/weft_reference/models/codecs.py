"""Neural audio codecs and vocoders: strides even and odd, dilations, lengths that strides do not divide."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import transformers

from weft_reference.cases import Case, Inputs
from weft_reference.inputs import floats

MODELS = ("dac", "speecht5_hifigan")
DAC: dict[str, Any] = {
    "encoder_hidden_size": 4,
    "downsampling_ratios": [2, 4],
    "decoder_hidden_size": 24,
    "n_codebooks": 3,
    "codebook_size": 16,
    "codebook_dim": 5,
}
HIFIGAN: dict[str, Any] = {
    "model_in_dim": 6,
    "upsample_initial_channel": 16,
    "upsample_rates": [4, 2],
    "upsample_kernel_sizes": [8, 5],
    "resblock_kernel_sizes": [3, 5],
    "resblock_dilation_sizes": [[1, 3], [1, 2, 5]],
}


def goldens() -> Iterator[Case]:
    def dac(name: str, notes: str, inputs: Inputs, **changes: Any) -> Case:
        return Case(f"dac/{name}", "DacModel", transformers.DacConfig(**(DAC | changes)), inputs, notes, without=("loss",))

    def hifigan(name: str, notes: str, **changes: Any) -> Case:
        config = transformers.SpeechT5HifiGanConfig(**(HIFIGAN | changes))
        inputs = {"spectrogram": floats("spectrogram", (2, 13, config.model_in_dim))}
        return Case(f"speecht5_hifigan/{name}", "SpeechT5HifiGan", config, inputs, notes)

    waves = {"input_values": floats("wave", (2, 1, 200))}
    odd = {"input_values": floats("odd", (1, 1, 157))}
    yield dac("base", "Two waveforms.", waves)
    yield dac("odd-strides", "Strides of three, and samples that strides do not divide.", odd, downsampling_ratios=[3, 2, 5])
    yield dac("one-codebook", "One codebook of many codes.", odd, n_codebooks=1, codebook_size=64, codebook_dim=8)
    yield hifigan("vocoder", "Two spectrograms, normalised.")
    yield hifigan("plain", "Spectrograms as they are, another slope.", normalize_before=False, leaky_relu_slope=0.3)
    one = {"upsample_rates": [3], "upsample_kernel_sizes": [7], "resblock_kernel_sizes": [7], "resblock_dilation_sizes": [[4]]}
    yield hifigan("one-stage", "One transposed convolution, one residual block.", **one)
