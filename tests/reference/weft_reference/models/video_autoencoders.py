"""Autoencoders of videos: two in a batch, non-square, all tensors filled."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from weft_reference.diffusion import ModelCase
from weft_reference.inputs import floats
from weft_reference.models.stable_diffusion import AUTOENCODER, decode, encode

MODELS = ("autoencoder-kl-flux2", "autoencoder-kl-wan", "autoencoder-kl-qwen-image", "autoencoder-kl-temporal-decoder")
ROOTS = MODELS


def goldens() -> Iterator[ModelCase]:
    yield from flux2()
    yield from wan()
    yield from temporal_decoder()


def halves(path: str, cls: str, without: tuple[tuple[str, ...], tuple[str, ...]], config: dict[str, Any]) -> Any:
    """Cases of a class: of both halves together, and of each alone."""
    calls: dict[str, dict[str, Any]] = {
        "": {},
        "Encoder": {"call": encode, "head": f"{cls}Encoder", "without": without[0]},
        "Decoder": {"call": decode, "head": f"{cls}Decoder", "without": without[1]},
    }

    def case(name: str, half: str, notes: str, inputs: dict[str, np.ndarray], **changes: Any) -> ModelCase:
        return ModelCase(f"{path}/{name}", cls, config | changes, inputs, notes, **calls[half])

    return case


def flux2() -> Iterator[ModelCase]:
    config = AUTOENCODER | {"latent_channels": 6, "layers_per_block": 1}
    without = (("decoder.", "post_quant_conv.", "bn."), ("encoder.", "quant_conv.", "bn."))
    case = halves("autoencoder-kl-flux2", "AutoencoderKLFlux2", without, config)
    yield case("encoder", "Encoder", "The distribution of latents.", {"sample": floats("images", (2, 3, 16, 24))})
    latents = {"latents": floats("latents", (2, 6, 6, 9), -2.0, 2.0)}
    yield case("decoder", "Decoder", "Images of latents.", latents)
    yield case(
        "narrow",
        "Decoder",
        "A decoder of other widths than the encoder's.",
        latents,
        decoder_block_out_channels=(4, 12),
    )


def wan() -> Iterator[ModelCase]:
    small = {
        "base_dim": 4,
        "z_dim": 3,
        "dim_mult": [1, 2, 2],
        "num_res_blocks": 1,
        "temperal_downsample": [False, True],
    }
    without = (("decoder.", "post_quant_conv."), ("encoder.", "quant_conv."))
    for path, cls in (
        ("autoencoder-kl-wan", "AutoencoderKLWan"),
        ("autoencoder-kl-qwen-image", "AutoencoderKLQwenImage"),
    ):
        case = halves(path, cls, without, small)
        yield case(
            "base", "", "Five frames, that are encoded and decoded.", {"sample": floats("video", (2, 3, 5, 12, 8))}
        )
        yield case("image", "", "One frame.", {"sample": floats("image", (2, 3, 1, 12, 8))})
        frames = {"sample": floats("longer", (1, 3, 11, 8, 8))}
        both = {"temperal_downsample": [True, True], "num_res_blocks": 2}
        yield case("encoder", "Encoder", "Frames that become fewer twice, of which two are left out.", frames, **both)
        latents = {"latents": floats("latents", (2, 3, 3, 3, 2), -2.0, 2.0)}
        yield case("decoder", "Decoder", "Three frames of latents that become nine.", latents, **both)
    yield case("one-latent", "Decoder", "One frame of latents.", {"latents": floats("latent", (2, 3, 1, 3, 2))}, **both)
    more = {"in_channels": 4, "out_channels": 5}
    case = halves("autoencoder-kl-wan", "AutoencoderKLWan", without, small)
    yield case("channels", "", "Other channels.", {"sample": floats("wide", (1, 4, 5, 8, 8))}, **more)


def as_one_video(model: torch.nn.Module, inputs: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {"sample": model.decode(inputs["latents"], num_frames=len(inputs["latents"])).sample}


def encoded_and_decoded(model: torch.nn.Module, inputs: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {"sample": model(inputs["sample"], num_frames=len(inputs["sample"])).sample}


def temporal_decoder() -> Iterator[ModelCase]:
    """Normalisation has 32 groups, whatever the configuration."""
    path, cls = "autoencoder-kl-temporal-decoder", "AutoencoderKLTemporalDecoder"
    config = {"block_out_channels": (32, 64), "down_block_types": ("DownEncoderBlock2D",) * 2, "layers_per_block": 1}

    def case(name: str, notes: str, inputs: dict[str, np.ndarray], **changes: Any) -> ModelCase:
        own = {key: changes.pop(key) for key in ("call", "head", "without") if key in changes}
        return ModelCase(f"{path}/{name}", cls, config | changes, inputs, notes, **own)

    video = {"sample": floats("video", (3, 3, 8, 12))}
    yield case(
        "base",
        "Three frames of one video.",
        video,
        call=encoded_and_decoded,
        without=("decoder.mid_block.attentions.",),
    )
    encoder = {"call": encode, "head": f"{cls}Encoder", "without": ("decoder.",)}
    yield case(
        "encoder",
        "The distribution of latents.",
        {"sample": floats("frames", (2, 3, 12, 8))},
        layers_per_block=2,
        **encoder,
    )
    decoder = {"call": as_one_video, "head": f"{cls}Decoder", "without": ("encoder.", "quant_conv.")}
    latents = {"latents": floats("latents", (2, 4, 3, 5), -2.0, 2.0)}
    yield case("decoder", "Two frames, two layers in the middle.", latents, layers_per_block=2, **decoder)
