"""Autoencoders of waveforms: whole and each half, strides even and odd, all tensors filled."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from weft_reference.diffusion import ModelCase
from weft_reference.inputs import floats
from weft_reference.models.stable_diffusion import decode

MODELS = ("autoencoder-oobleck",)
ROOTS = MODELS


def encode(model: torch.nn.Module, inputs: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    latents = model.encode(inputs["sample"]).latent_dist
    return {"mean": latents.mean, "std": latents.std}


def goldens() -> Iterator[ModelCase]:
    ratios = {"downsampling_ratios": [2, 4], "channel_multiples": [1, 3]}
    config = ratios | {
        "encoder_hidden_size": 8,
        "decoder_channels": 6,
        "decoder_input_channels": 4,
        "audio_channels": 2,
    }
    sounds = {"sample": floats("sounds", (2, 2, 96))}
    path, name = "autoencoder-oobleck", "AutoencoderOobleck"
    yield ModelCase(f"{path}/base", name, config, sounds, "Two waveforms that are encoded and decoded.")
    odd = config | {"downsampling_ratios": [3, 5], "channel_multiples": [2, 1], "audio_channels": 1}
    one = {"sample": floats("odd", (1, 1, 157))}
    yield ModelCase(f"{path}/odd-strides", name, odd, one, "Odd strides, and samples that strides do not divide.")
    half = {"call": encode, "head": f"{name}Encoder", "without": ("decoder.",)}
    yield ModelCase(f"{path}/encoder", name, config, sounds, "The distribution of latents.", **half)
    other = {"call": decode, "head": f"{name}Decoder", "without": ("encoder.",)}
    latents = {"latents": floats("latents", (2, 4, 11), -2.0, 2.0)}
    yield ModelCase(f"{path}/decoder", name, config, latents, "Waveforms of latents.", **other)
