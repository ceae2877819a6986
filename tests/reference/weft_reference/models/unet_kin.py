"""Kin of Stable Diffusion's U-Net and autoencoder: two in a batch, non-square, all tensors filled."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from weft_reference.diffusion import ModelCase
from weft_reference.inputs import floats
from weft_reference.models.stable_diffusion import AUTOENCODER, UNET, decode

MODELS = ("controlnet", "unet-2d", "vq-model", "autoencoder-dc")
ROOTS = MODELS


def goldens() -> Iterator[ModelCase]:
    yield from controlnets()
    yield from unets()
    yield from quantized()
    yield from deep()


def controlled(model: torch.nn.Module, inputs: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    added = {name: inputs.pop(name) for name in ("text_embeds", "time_ids") if name in inputs}
    scale = inputs.pop("conditioning_scale", torch.ones(1)).item()
    made = model(**inputs, conditioning_scale=scale, **({"added_cond_kwargs": added} if added else {}))
    maps = {f"down_block_res_samples.{index}": map for index, map in enumerate(made.down_block_res_samples)}
    return maps | {"mid_block_res_sample": made.mid_block_res_sample}


def controlnets() -> Iterator[ModelCase]:
    small = {key: value for key, value in UNET.items() if key not in ("sample_size", "up_block_types")}

    def case(name: str, notes: str, more: dict[str, np.ndarray] | None = None, **changes: Any) -> ModelCase:
        rows, columns = changes.pop("size", (8, 12))
        config = small | {"conditioning_embedding_out_channels": (4, 6)} | changes
        factor = 2 ** (len(config["conditioning_embedding_out_channels"]) - 1)
        channels = config.get("conditioning_channels", 3)
        inputs = {
            "sample": floats("sample", (2, 4, rows, columns), -2.0, 2.0),
            "timestep": np.array([981.0, 20.5], np.float32),
            "encoder_hidden_states": floats("text", (2, 7, 12), -2.0, 2.0),
            "controlnet_cond": floats("control", (2, channels, rows * factor, columns * factor), 0.0, 1.0),
        } | (more or {})
        return ModelCase(f"controlnet/{name}", "ControlNetModel", config, inputs, notes, call=controlled)

    yield case("base", "Two blocks, the deeper one without attention, a scale.", {"conditioning_scale": np.array([0.75], np.float32)})
    yield case("odd", "A height and a width that two halves do not make up, channels from blue to red, more layers before.",
               size=(5, 7), controlnet_conditioning_channel_order="bgr", conditioning_embedding_out_channels=(4, 6, 8))
    yield case("pooled", "Means over all positions, one channel.", global_pool_conditions=True, conditioning_channels=1)
    yield case(
        "sdxl",
        "The pooled text and sizes are added to the timestep.",
        {"text_embeds": floats("pooled", (2, 10)), "time_ids": floats("ids", (2, 6), 0.0, 1024.0)},
        addition_embed_type="text_time",
        addition_time_embed_dim=4,
        projection_class_embeddings_input_dim=34,
        use_linear_projection=True,
        transformer_layers_per_block=(2, 1),
    )


def unets() -> Iterator[ModelCase]:
    def case(name: str, notes: str, more: dict[str, np.ndarray] | None = None, **changes: Any) -> ModelCase:
        size = changes.pop("size", (8, 12))
        config = {
            "block_out_channels": (8, 16),
            "down_block_types": ("DownBlock2D", "AttnDownBlock2D"),
            "up_block_types": ("AttnUpBlock2D", "UpBlock2D"),
            "norm_num_groups": 4,
            "attention_head_dim": 4,
        } | changes
        inputs = {
            "sample": floats("sample", (2, 3, *size), -2.0, 2.0),
            "timestep": np.array([981.0, 20.5], np.float32),
        } | (more or {})
        return ModelCase(f"unet-2d/{name}", "UNet2DModel", config, inputs, notes)

    yield case("base", "Two blocks, the deeper one with attention.")
    yield case("ddpm", "As DDPM: zeros on two sides, one head, sines before cosines.", downsample_padding=0, attention_head_dim=None,
               flip_sin_to_cos=False, freq_shift=1, norm_eps=1e-3, layers_per_block=1)
    yield case("classes", "Classes, scale and shift by time, three blocks.", {"class_labels": np.array([4, 2])}, num_class_embeds=5,
               resnet_time_scale_shift="scale_shift", block_out_channels=(8, 8, 16), attn_norm_num_groups=2, act_fn="gelu",
               down_block_types=("AttnDownBlock2D", "DownBlock2D", "DownBlock2D"), time_embedding_dim=20, center_input_sample=True,
               up_block_types=("UpBlock2D", "UpBlock2D", "AttnUpBlock2D"), mid_block_scale_factor=1.5)
    yield case("shifted", "Scale and shift by time, no norm of attention in the middle.", resnet_time_scale_shift="scale_shift")
    yield case("no-middle", "No attention anywhere.", add_attention=False, down_block_types=("DownBlock2D",) * 2, up_block_types=("UpBlock2D",) * 2)


def latents(model: torch.nn.Module, inputs: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    made = model.encode(inputs["sample"])
    return {"latents": made.latents if hasattr(made, "latents") else made.latent}


def unquantized(model: torch.nn.Module, inputs: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {"sample": model.decode(inputs["latents"], force_not_quantize=True).sample}


def quantized() -> Iterator[ModelCase]:
    images = {"sample": floats("images", (2, 3, 16, 24))}
    small = {key: value for key, value in AUTOENCODER.items() if key != "sample_size"} | {"latent_channels": 4, "num_vq_embeddings": 20}

    def case(name: str, notes: str, inputs: dict[str, np.ndarray], **changes: Any) -> ModelCase:
        own = {key: changes.pop(key) for key in ("call", "head", "without") if key in changes}
        return ModelCase(f"vq-model/{name}", "VQModel", small | changes, inputs, notes, **own)

    half = {"call": latents, "head": "VQModelEncoder", "without": ("decoder.", "post_quant_conv.", "quantize.")}
    other = {"call": unquantized, "head": "VQModelDecoder", "without": ("encoder.", "quant_conv.", "quantize.")}
    yield case("base", "Images that are encoded, quantized and decoded, narrower codes than latents.", images, vq_embed_dim=3)
    yield case("encoder", "Latents of images, attention in a block.", images, down_block_types=("DownEncoderBlock2D", "AttnDownEncoderBlock2D"), **half)
    movq = {"norm_type": "spatial", "block_out_channels": (32, 64), "norm_num_groups": 32}
    yield case("movq", "As of Kandinsky: latents modulate the decoder, attention in a block.", {"latents": floats("latents", (2, 4, 5, 7), -2.0, 2.0)},
               up_block_types=("AttnUpDecoderBlock2D", "UpDecoderBlock2D"), **movq, **other)


def deep() -> Iterator[ModelCase]:
    small = {
        "latent_channels": 4,
        "attention_head_dim": 4,
        "encoder_block_types": ("ResBlock", "ResBlock", "EfficientViTBlock"),
        "decoder_block_types": ("ResBlock", "ResBlock", "EfficientViTBlock"),
        "encoder_block_out_channels": (8, 8, 16),
        "decoder_block_out_channels": (8, 8, 16),
        "encoder_layers_per_block": (1, 1, 2),
        "decoder_layers_per_block": (2, 1, 1),
        "encoder_qkv_multiscales": ((), (), (5,)),
        "decoder_qkv_multiscales": ((), (), (5,)),
    }
    images = {"sample": floats("images", (2, 3, 16, 24))}

    def case(name: str, notes: str, inputs: dict[str, np.ndarray], **changes: Any) -> ModelCase:
        own = {key: changes.pop(key) for key in ("call", "head", "without") if key in changes}
        return ModelCase(f"autoencoder-dc/{name}", "AutoencoderDC", small | changes, inputs, notes, **own)

    half = {"call": latents, "head": "AutoencoderDCEncoder", "without": ("decoder.",)}
    other = {"call": decode, "head": "AutoencoderDCDecoder", "without": ("encoder.",)}
    yield case("base", "Images that are encoded and decoded.", images)
    yield case("sana", "As of Sana: convolutions and nearest neighbours, no layers at the first resolution.", images,
               downsample_block_type="Conv", upsample_block_type="interpolate", encoder_layers_per_block=(0, 1, 1),
               decoder_layers_per_block=(0, 1, 1))
    yield case("encoder", "Latents of images, no shortcut, windows of two sizes.", images, encoder_out_shortcut=False,
               encoder_qkv_multiscales=((), (), (3, 5)), encoder_block_types="EfficientViTBlock", **half)
    yield case("decoder", "Images of latents, batch normalisation, other activations, no shortcut.", {"latents": floats("latents", (2, 4, 5, 3), -2.0, 2.0)},
               decoder_norm_types=("rms_norm", "batch_norm", "rms_norm"), decoder_act_fns="relu", decoder_conv_act_fn="silu",
               decoder_in_shortcut=False, **other)
