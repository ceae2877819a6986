"""Models of Stable Diffusion and Stable Diffusion XL: the U-Net and the autoencoder, non-square, two in a batch."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from weft_reference import weights
from weft_reference.diffusion import ModelCase, diffusers
from weft_reference.inputs import floats

MODELS = (
    *("unet-2d-condition", "autoencoder-kl", "stable-diffusion", "stable-diffusion-xl"),
    *("stable-diffusion-controlnet", "stable-diffusion-xl-controlnet", "latent-consistency-model"),
    *("stable-diffusion-instruct-pix2pix", "stable-diffusion-xl-refiner"),
)
ROOTS = MODELS
UNET = {
    "sample_size": 8,
    "block_out_channels": (8, 16),
    "layers_per_block": 2,
    "down_block_types": ("CrossAttnDownBlock2D", "DownBlock2D"),
    "up_block_types": ("UpBlock2D", "CrossAttnUpBlock2D"),
    "norm_num_groups": 4,
    "cross_attention_dim": 12,
    "attention_head_dim": 2,
}
AUTOENCODER = {
    "sample_size": 16,
    "block_out_channels": (8, 16),
    "down_block_types": ("DownEncoderBlock2D",) * 2,
    "up_block_types": ("UpDecoderBlock2D",) * 2,
    "norm_num_groups": 4,
    "layers_per_block": 1,
}


def goldens() -> Iterator[ModelCase]:
    yield from unets()
    yield from autoencoders()
    yield denoiser("stable-diffusion/base", "StableDiffusionPipeline", "base")
    yield denoiser("stable-diffusion/inpaint", "StableDiffusionInpaintPipeline", "inpaint")
    yield denoiser("latent-consistency-model/base", "LatentConsistencyModelPipeline", "distilled")
    yield denoiser("stable-diffusion-instruct-pix2pix/base", "StableDiffusionInstructPix2PixPipeline", "edit")
    yield denoiser("stable-diffusion-xl-refiner/base", "StableDiffusionXLImg2ImgPipeline", "refiner")
    yield denoiser("stable-diffusion-xl/base", "StableDiffusionXLPipeline", "sdxl")
    yield denoiser("stable-diffusion-xl/inpaint", "StableDiffusionXLInpaintPipeline", "sdxl")
    yield controlled(denoiser("stable-diffusion-controlnet/base", "StableDiffusionControlNetPipeline", "base"), "All of it added.", 1.0)
    half = denoiser("stable-diffusion-controlnet/half", "StableDiffusionControlNetPipeline", "deep")
    yield controlled(half, "Three blocks, half of what is added, channels in another order.", 0.5, controlnet_conditioning_channel_order="bgr")
    yield controlled(denoiser("stable-diffusion-xl-controlnet/base", "StableDiffusionXLControlNetPipeline", "sdxl"), "Sizes and pooled text.", 0.7)


def unets() -> Iterator[ModelCase]:
    def case(name: str, notes: str, more: dict[str, np.ndarray] | None = None, **changes: Any) -> ModelCase:
        config = UNET | {key: value for key, value in changes.items() if key not in ("size", "stored")}
        size = changes.get("size", (8, 12))
        inputs = {
            "sample": floats("sample", (2, config.get("in_channels", 4), *size), -2.0, 2.0),
            "timestep": np.array([981.0, 20.5], np.float32),
            "encoder_hidden_states": floats("text", (2, 7, 12), -2.0, 2.0),
        }
        stored = changes.get("stored", False)
        inputs |= more or {}
        return ModelCase(f"unet-2d-condition/{name}", "UNet2DConditionModel", config, inputs, notes, stored=stored)

    yield case("base", "Two blocks, the deeper one without attention; timesteps of each, one between two steps.")
    yield case("file", "Weights as save_pretrained writes them.", stored=True)
    yield case("odd", "A height and a width that two halves do not make up.", size=(5, 7))
    yield case(
        "deep",
        "Three blocks, another number of layers in each, heads by block, and sines before cosines.",
        block_out_channels=(8, 8, 16),
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"),
        layers_per_block=(1, 2, 1),
        attention_head_dim=(1, 2, 4),
        transformer_layers_per_block=(1, 1, 2),
        flip_sin_to_cos=False,
        freq_shift=1,
        size=(9, 12),
    )
    yield case("linear", "Linear projections, as Stable Diffusion 2 has them.", use_linear_projection=True)
    yield case(
        "inpaint",
        "Nine input channels, scale and shift by time, another activation, a width of its own for time.",
        in_channels=9,
        resnet_time_scale_shift="scale_shift",
        act_fn="gelu",
        time_embedding_dim=24,
        norm_eps=1e-3,
        mid_block_scale_factor=1.5,
        conv_in_kernel=5,
        conv_out_kernel=1,
    )
    yield case("no-middle", "No block in the middle.", mid_block_type=None)
    yield case(
        "distilled",
        "An embedded guidance scale.",
        {"timestep_cond": floats("cond", (2, 6))},
        time_cond_proj_dim=6,
    )
    yield case("edit", "Eight input channels.", in_channels=8)
    yield case(
        "refiner",
        "A score takes the place of two sizes.",
        {"text_embeds": floats("pooled", (2, 10)), "time_ids": floats("ids", (2, 5), 0.0, 1024.0)},
        addition_embed_type="text_time",
        addition_time_embed_dim=4,
        projection_class_embeddings_input_dim=30,
        use_linear_projection=True,
        transformer_layers_per_block=(1, 2),
    )
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


def encode(model: torch.nn.Module, inputs: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    latents = model.encode(inputs["sample"]).latent_dist
    return {"mean": latents.mean, "logvar": latents.logvar}


def decode(model: torch.nn.Module, inputs: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {"sample": model.decode(inputs["latents"]).sample}


def autoencoders() -> Iterator[ModelCase]:
    images = {"sample": floats("images", (2, 3, 16, 24))}
    latents = {"latents": floats("latents", (2, 4, 6, 9), -2.0, 2.0)}

    def case(name: str, notes: str, inputs: dict[str, np.ndarray], **changes: Any) -> ModelCase:
        own = {key: changes.pop(key) for key in ("call", "head", "without", "stored", "rename") if key in changes}
        return ModelCase(f"autoencoder-kl/{name}", "AutoencoderKL", AUTOENCODER | changes, inputs, notes, **own)

    half = {"call": encode, "head": "AutoencoderKLEncoder", "without": ("decoder.", "post_quant_conv.")}
    other = {"call": decode, "head": "AutoencoderKLDecoder", "without": ("encoder.", "quant_conv.")}
    yield case("base", "Images that are encoded and decoded.", images)
    yield case("encoder", "The distribution of latents.", images, **half)
    yield case("odd", "A height and a width that are no multiples.", {"sample": floats("odd", (2, 3, 15, 22))}, **half)
    yield case("decoder", "Images of latents.", latents, **other)
    yield case(
        "sixteen",
        "Sixteen channels, no convolutions around the latents, no attention, another activation: as Flux, in part.",
        {"latents": floats("sixteen", (2, 16, 5, 3))},
        latent_channels=16,
        use_quant_conv=False,
        use_post_quant_conv=False,
        mid_block_add_attention=False,
        act_fn="relu",
        block_out_channels=(8, 8, 16),
        down_block_types=("DownEncoderBlock2D",) * 3,
        up_block_types=("UpDecoderBlock2D",) * 3,
        layers_per_block=2,
        **other,
    )
    renamed = {"to_q": "query", "to_k": "key", "to_v": "value", "to_out.0": "proj_attn"}
    ends = {f".{new}.{end}": f".{old}.{end}" for new, old in renamed.items() for end in ("weight", "bias")}
    yield case("older", "Attention under the names of older files.", images, stored=True, rename=ends)


def denoiser(path: str, pipeline: str, case: str) -> ModelCase:
    """The U-Net of a case as a component of a pipeline, whose configuration holds those of all components."""
    text = {"hidden_size": 12, "intermediate_size": 20, "num_hidden_layers": 1, "num_attention_heads": 2}
    components = {"text_encoder": {"model_type": "clip_text_model", **text}, "vae": AUTOENCODER}
    if pipeline.startswith("StableDiffusionXL"):
        components["text_encoder_2"] = components["text_encoder"]
    if pipeline == "StableDiffusionXLImg2ImgPipeline":
        del components["text_encoder"]
    unet = next(unet for unet in unets() if unet.path.endswith(f"/{case}"))
    within = ("unet", {"_class_name": pipeline, **components})
    notes = "The denoiser of a pipeline."
    return ModelCase(path, "UNet2DConditionModel", unet.config, unet.inputs, notes, head=pipeline, within=within)


def controlnet(unet: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """The configuration of a ControlNet beside a U-Net, whose conditioning has two layers."""
    ours = {"in_channels", *inspect.signature(diffusers.ControlNetModel).parameters} - {"sample_size"}
    layers = unet["layers_per_block"]
    same = {key: value for key, value in unet.items() if key in ours}
    same |= {"layers_per_block": layers if isinstance(layers, int) else layers[0]}
    return same | {"conditioning_embedding_out_channels": (6, 8)} | changes


class Controlled(ModelCase):
    """A U-Net and a ControlNet, as components of a pipeline."""

    def fill(self, model: torch.nn.Module) -> dict[str, list[int]]:
        assert self.within
        pipeline = torch.nn.Module()
        net = diffusers.ControlNetModel(**self.within[1]["controlnet"]).float().eval()
        pipeline.add_module("unet", model)
        pipeline.add_module("controlnet", net)
        # Not one of the model's own modules.
        model.__dict__["controlled_by"] = net
        return weights.fill(pipeline)


def with_control(model: torch.nn.Module, inputs: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    control = {"controlnet_cond": inputs.pop("controlnet_cond"), "conditioning_scale": inputs.pop("conditioning_scale").item()}
    added = {name: inputs.pop(name) for name in ("text_embeds", "time_ids") if name in inputs}
    inputs |= {"added_cond_kwargs": added} if added else {}
    maps, middle = model.__dict__["controlled_by"](**inputs, **control, return_dict=False)
    given = {"down_block_additional_residuals": maps, "mid_block_additional_residual": middle}
    return {"sample": model(**inputs, **given).sample}


def controlled(case: ModelCase, notes: str, scale: float, **changes: Any) -> ModelCase:
    """A U-Net of a pipeline, with the ControlNet of another one's shape."""
    assert case.within
    height, width = case.inputs["sample"].shape[2:]
    config = case.config | ({"layers_per_block": 1} if "half" in case.path else {})
    pipeline = case.within[1] | {"controlnet": controlnet(dict(config), **changes)}
    factor = 2 ** (len(pipeline["controlnet"]["conditioning_embedding_out_channels"]) - 1)
    control = {
        "controlnet_cond": floats("control", (2, 3, factor * height, factor * width), 0.0, 1.0),
        "conditioning_scale": np.array([scale], np.float32),
    }
    fields = {field.name: getattr(case, field.name) for field in dataclasses.fields(case)}
    own = {"config": config, "inputs": {**case.inputs, **control}, "notes": notes, "call": with_control}
    return Controlled(**fields | own | {"within": ("unet", pipeline)})
