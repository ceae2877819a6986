"""Diffusion transformers, and autoencoders that are distilled: two in a batch, non-square, all tensors filled."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from weft_reference.diffusion import ModelCase, forward
from weft_reference.inputs import floats
from weft_reference.models.stable_diffusion import AUTOENCODER, decode

MODELS = (
    *("autoencoder-tiny", "flux-transformer-2d", "sd3-transformer-2d", "dit-transformer-2d", "pixart-transformer-2d"),
    *("flux", "stable-diffusion-3", "pixart", "dit"),
)
ROOTS = MODELS


def goldens() -> Iterator[ModelCase]:
    yield from tiny()
    yield from flux()
    yield from sd3()
    yield from dit()
    yield from pixart()
    yield within("stable-diffusion-3", "StableDiffusion3Pipeline", next(sd3()))
    yield within("flux", "FluxPipeline", next(flux()))
    yield within("pixart", "PixArtAlphaPipeline", next(pixart()))
    yield within("pixart", "PixArtSigmaPipeline", next(pixart()), "sigma")
    yield within("dit", "DiTPipeline", next(dit()))


def within(path: str, pipeline: str, case: ModelCase, name: str = "base") -> ModelCase:
    """The denoiser of a case as a component of a pipeline, whose other components have sizes of their own."""
    index = {"_class_name": pipeline, "vae": AUTOENCODER}
    notes = "The denoiser of a pipeline."
    return replace(case, path=f"{path}/{name}", notes=notes, head=pipeline, within=("transformer", index))


def encode(model: torch.nn.Module, inputs: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {"latents": model.encode(inputs["sample"]).latents}


def tiny() -> Iterator[ModelCase]:
    images = {"sample": floats("images", (2, 3, 16, 24))}
    latents = {"latents": floats("latents", (2, 4, 4, 6), -4.0, 4.0)}
    blocks = {"encoder_block_out_channels": (8, 8, 8), "decoder_block_out_channels": (8, 8, 8)}
    config = blocks | {"num_encoder_blocks": (1, 2, 1), "num_decoder_blocks": (2, 1, 1)}

    def case(name: str, notes: str, inputs: dict[str, np.ndarray], **changes: Any) -> ModelCase:
        own = {key: changes.pop(key) for key in ("call", "head", "without") if key in changes}
        return ModelCase(f"autoencoder-tiny/{name}", "AutoencoderTiny", config | changes, inputs, notes, **own)

    half = {"call": encode, "head": "AutoencoderTinyEncoder", "without": ("decoder.",)}
    other = {"call": decode, "head": "AutoencoderTinyDecoder", "without": ("encoder.",)}
    yield case("base", "Images that are encoded to 256 levels and decoded.", images)
    yield case("encoder", "Latents of images with odd sides.", {"sample": floats("odd", (2, 3, 15, 22))}, **half)
    yield case("decoder", "Images of latents.", latents, **other)
    yield case(
        "gelu",
        "Another activation, five channels, other magnitudes, wider layers for the decoder.",
        images,
        act_fn="gelu",
        latent_channels=5,
        latent_magnitude=2,
        latent_shift=0.25,
        decoder_block_out_channels=(12, 12, 12),
    )
    yield case("tripled", "Rows and columns three times.", latents, upsampling_scaling_factor=3, **other)


FLUX = {
    "patch_size": 1,
    "in_channels": 8,
    "num_layers": 2,
    "num_single_layers": 2,
    "attention_head_dim": 8,
    "num_attention_heads": 3,
    "joint_attention_dim": 12,
    "pooled_projection_dim": 10,
    "axes_dims_rope": (2, 2, 4),
}


def flux() -> Iterator[ModelCase]:
    def case(name: str, notes: str, more: dict[str, np.ndarray] | None = None, **changes: Any) -> ModelCase:
        rows, columns, words = 2, 3, 5
        places = [(0, row, column) for row in range(rows) for column in range(columns)]
        inputs = {
            "hidden_states": floats("latents", (2, rows * columns, 8), -2.0, 2.0),
            "encoder_hidden_states": floats("text", (2, words, 12), -2.0, 2.0),
            "pooled_projections": floats("pooled", (2, 10)),
            "timestep": np.array([1.0, 0.25], np.float32),
            "img_ids": np.array(places, np.int64),
            "txt_ids": np.zeros((words, 3), np.int64),
        }
        inputs |= more or {}
        return ModelCase(
            f"flux-transformer-2d/{name}", "FluxTransformer2DModel", FLUX | changes, inputs, notes, call=forward
        )

    yield case("base", "Two blocks of each kind, an image that is not square.")
    yield case(
        "guidance",
        "An embedded guidance scale, other channels than the input's.",
        {"guidance": np.array([3.5, 1.0], np.float32)},
        guidance_embeds=True,
        out_channels=6,
        num_single_layers=1,
    )
    places = [(1, row, column + 7) for row in range(2) for column in range(3)]
    yield case("moved", "Places of another image, and of texts.", {"img_ids": np.array(places, np.int64), "txt_ids": np.full((5, 3), 2)})


SD3 = {
    "sample_size": 8,
    "patch_size": 2,
    "in_channels": 4,
    "num_layers": 3,
    "attention_head_dim": 8,
    "num_attention_heads": 3,
    "joint_attention_dim": 12,
    "caption_projection_dim": 24,
    "pooled_projection_dim": 10,
    "out_channels": 4,
    "pos_embed_max_size": 7,
}


def sd3() -> Iterator[ModelCase]:
    def case(name: str, notes: str, size: tuple[int, int] = (8, 12), **changes: Any) -> ModelCase:
        inputs = {
            "hidden_states": floats("latents", (2, 4, *size), -2.0, 2.0),
            "encoder_hidden_states": floats("text", (2, 5, 12), -2.0, 2.0),
            "pooled_projections": floats("pooled", (2, 10)),
            "timestep": np.array([981.0, 20.5], np.float32),
        }
        return ModelCase(f"sd3-transformer-2d/{name}", "SD3Transformer2DModel", SD3 | changes, inputs, notes)

    yield case("base", "Three blocks, of which the last has done with the text; fewer patches than positions, not evenly.")
    yield case(
        "dual",
        "As 3.5 medium: a second attention in two of the blocks, queries and keys normalised, other channels.",
        dual_attention_layers=(0, 2),
        qk_norm="rms_norm",
        out_channels=6,
    )
    yield case("pixels", "Patches of one position, as many as are stored.", (7, 6), patch_size=1)


BLOCKS = {"num_attention_heads": 3, "attention_head_dim": 8, "num_layers": 2, "sample_size": 8}


def dit() -> Iterator[ModelCase]:
    def case(name: str, notes: str, side: int = 8, **changes: Any) -> ModelCase:
        inputs = {
            "hidden_states": floats("latents", (2, 4, side, side), -2.0, 2.0),
            "timestep": np.array([981.0, 20.0], np.float32),
            "class_labels": np.array([7, 3]),
        }
        config = BLOCKS | {"num_embeds_ada_norm": 7} | changes
        return ModelCase(f"dit-transformer-2d/{name}", "DiTTransformer2DModel", config, inputs, notes)

    yield case("base", "Two classes, one of them none.")
    yield case("larger", "More patches than in training, no biases, other channels.", 12, attention_bias=False, out_channels=8)


def pixart() -> Iterator[ModelCase]:
    def case(name: str, notes: str, more: dict[str, np.ndarray] | None = None, **changes: Any) -> ModelCase:
        config = BLOCKS | {"cross_attention_dim": 24, "caption_channels": 12} | changes
        inputs = {
            "hidden_states": floats("latents", (2, 4, 8, 12), -2.0, 2.0),
            "encoder_hidden_states": floats("text", (2, 5, config["caption_channels"] or 24), -2.0, 2.0),
            "timestep": np.array([981.0, 20.0], np.float32),
            "encoder_attention_mask": np.array([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0]]),
        }
        inputs |= more or {}
        return ModelCase(f"pixart-transformer-2d/{name}", "PixArtTransformer2DModel", config, inputs, notes)

    sizes = {"resolution": np.array([[512, 768], [1024, 1024]], np.float32), "aspect_ratio": np.array([[0.67], [1.0]], np.float32)}
    yield case("base", "A text with padding, an image that is not square.")
    yield case("sizes", "Resolution and aspect ratio, stretched places.", sizes, use_additional_conditions=True, interpolation_scale=2)
    yield case("plain", "The text as it is, no biases, other channels and patches.", caption_channels=None, attention_bias=False, out_channels=None, patch_size=1)
