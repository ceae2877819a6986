"""Pipelines of one text encoder: AuraFlow, Chroma, BRIA, Lumina-Image 2.0, Sana, Sana-Sprint, Qwen-Image and FLUX.2 klein."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
from transformers import (
    Gemma2Config,
    Gemma2Model,
    Qwen2_5_VLConfig,
    Qwen2_5_VLForConditionalGeneration,
    Qwen3Config,
    Qwen3ForCausalLM,
    UMT5Config,
    UMT5EncoderModel,
)

from weft_reference.diffusion import diffusers
from weft_reference.models import conditioned_transformers, refined_transformers, stream_transformers
from weft_reference.models import unet_kin, video_autoencoders
from weft_reference.models.text_to_image.components import T5, autoencoder, denoiser, filled, t5, t5_tokenizer
from weft_reference.models.text_to_image.flux import DYNAMIC, unpacked
from weft_reference.models.text_to_image.pipelines import PipelineCase, Run
from weft_reference.models.text_to_image.z_image import tokenizer
from weft_reference.pieces import pieces

FLOW = "FlowMatchEulerDiscreteScheduler"
SIZE = {"height": 24, "width": 16}
TWO = ("A red disc", "Blue bars, and more of them than a tokenizer takes: " + "bars " * 20)
DECODER = {
    "hidden_size": 12,
    "intermediate_size": 20,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 8,
}
BLOCKS = {
    "block_out_channels": (4,) * 4,
    "down_block_types": ("DownEncoderBlock2D",) * 4,
    "up_block_types": ("UpDecoderBlock2D",) * 4,
}


def gemma() -> Any:
    torch.manual_seed(0)
    config = {"num_hidden_layers": 3, "query_pre_attn_scalar": 8, "sliding_window": 40, **DECODER}
    return filled(Gemma2Model(Gemma2Config(vocab_size=len(pieces()), **config)))


def built(name: str, **components: Any) -> Any:
    return getattr(diffusers, name)(scheduler=diffusers.FlowMatchEulerDiscreteScheduler(), **components)


def aura_flow() -> Any:
    config = next(stream_transformers.auraflow()).config
    torch.manual_seed(0)
    text = UMT5EncoderModel(UMT5Config(vocab_size=len(pieces()), **T5))
    return built(
        "AuraFlowPipeline",
        tokenizer=t5_tokenizer(),
        text_encoder=filled(text),
        vae=autoencoder(),
        transformer=denoiser("AuraFlowTransformer2DModel", **config | {"sample_size": 8}),
    )


def chroma() -> Any:
    config = next(stream_transformers.chroma()).config
    return built(
        "ChromaPipeline",
        vae=autoencoder(shift_factor=0.1159, scaling_factor=0.3611, use_quant_conv=False, use_post_quant_conv=False),
        text_encoder=t5(),
        tokenizer=t5_tokenizer(),
        transformer=denoiser("ChromaTransformer2DModel", **config | {"in_channels": 16}),
    )


def bria() -> Any:
    config = list(stream_transformers.kin())[4].config
    return built(
        "BriaPipeline",
        transformer=denoiser("BriaTransformer2DModel", **config | {"in_channels": 16}),
        vae=autoencoder(shift_factor=0.1159, scaling_factor=0.3611),
        text_encoder=t5(),
        tokenizer=t5_tokenizer(),
    )


def lumina2() -> Any:
    config = next(refined_transformers.lumina2()).config
    return built(
        "Lumina2Pipeline",
        transformer=denoiser("Lumina2Transformer2DModel", **config | {"sample_size": 8, "axes_lens": (300, 20, 20)}),
        vae=autoencoder(shift_factor=0.1159, scaling_factor=0.3611, **BLOCKS),
        text_encoder=gemma(),
        tokenizer=t5_tokenizer(),
    )


def sana(name: str = "SanaPipeline", **more: Any) -> Any:
    config = next(conditioned_transformers.sana()).config
    torch.manual_seed(0)
    deep = filled(diffusers.AutoencoderDC(**next(unet_kin.deep()).config | {"scaling_factor": 0.41407}))
    return built(
        name,
        tokenizer=t5_tokenizer(),
        text_encoder=gemma(),
        vae=deep,
        transformer=denoiser("SanaTransformer2DModel", **config | {"caption_channels": 12, "sample_size": 8, **more}),
    )


def sana_sprint() -> Any:
    return sana("SanaSprintPipeline", guidance_embeds=True, qk_norm="rms_norm_across_heads")


def qwen_image() -> Any:
    config = next(stream_transformers.qwen_image()).config
    words = tokenizer()
    rope = {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [1, 1, 2]}
    text = {**DECODER, "num_hidden_layers": 2, "vocab_size": len(words), "hidden_size": 16, "rope_parameters": rope}
    del text["head_dim"]
    vision = {"depth": 1, "hidden_size": 8, "out_hidden_size": 16, "num_heads": 2, "intermediate_size": 8}
    torch.manual_seed(0)
    made = Qwen2_5_VLForConditionalGeneration(Qwen2_5_VLConfig(text_config=text, vision_config=vision))
    torch.manual_seed(0)
    scales = {"latents_mean": [0.1, -0.2, 0.3], "latents_std": [1.5, 0.75, 2.0]}
    video = filled(diffusers.AutoencoderKLQwenImage(**next(video_autoencoders.wan()).config | scales))
    return built(
        "QwenImagePipeline",
        vae=video,
        text_encoder=filled(made),
        tokenizer=words,
        transformer=denoiser("QwenImageTransformer2DModel", **config | {"in_channels": 12, "joint_attention_dim": 16}),
    )


def flux2_klein() -> Any:
    config = next(stream_transformers.flux2()).config
    words = tokenizer()
    text = {**DECODER, "hidden_size": 8, "intermediate_size": 6, "num_hidden_layers": 28, "head_dim": 4}
    torch.manual_seed(0)
    made = filled(Qwen3ForCausalLM(Qwen3Config(vocab_size=len(words), **text)))
    torch.manual_seed(0)
    vae = diffusers.AutoencoderKLFlux2(**next(video_autoencoders.flux2()).config)
    vae = filled(vae)
    vae.bn.running_var.abs_().add_(0.5)
    return built(
        "Flux2KleinPipeline",
        vae=vae,
        text_encoder=made,
        tokenizer=words,
        transformer=denoiser(
            "Flux2Transformer2DModel",
            **config | {"in_channels": 24, "joint_attention_dim": 24, "guidance_embeds": False},
        ),
    )


def shared(latents: torch.Tensor, options: Mapping[str, Any]) -> torch.Tensor:
    """Tokens of FLUX.2, one for each place."""
    rows, columns = options["height"] // 4, options["width"] // 4
    return latents.permute(0, 2, 1).reshape(len(latents), -1, rows, columns)


def unpacked_fours(latents: torch.Tensor, options: Mapping[str, Any]) -> torch.Tensor:
    """As of Flux, where four pixels are a row of latents."""
    return diffusers.FluxPipeline._unpack_latents(latents, options["height"], options["width"], 4)


def with_options(runs: tuple[Run, ...], **more: Any) -> tuple[Run, ...]:
    """Runs with more options, or without those that are None."""
    options = [{name: value for name, value in {**run.options, **more}.items() if value is not None} for run in runs]
    return tuple(replace(run, options=own) for run, own in zip(runs, options))


def cases() -> list[PipelineCase]:
    few = {**SIZE, "num_inference_steps": 4}
    guided = {**few, "negative_prompt": "rain", "guidance_scale": 2.5}
    plain = Run("plain", FLOW, {"shift": 3.0}, options={**few, "guidance_scale": 1.0})
    pair = Run("guided", FLOW, {"shift": 1.73}, TWO, guided, 7)
    images = replace(pair, name="images", prompts=TWO[1:], options={**guided, "num_images_per_prompt": 2})
    dynamic = (plain, replace(pair, fields=DYNAMIC), images)
    runs = (plain, pair, images)

    def case(path: str, build: Any, runs: tuple[Run, ...], **more: Any) -> PipelineCase:
        return PipelineCase(f"text-to-image/{path}", build, runs, **more)

    names = {"guidance_scale": "true_cfg_scale"}
    scaled = tuple(
        replace(run, options={names.get(name, name): value for name, value in run.options.items()}) for run in dynamic
    )
    large = {"height": 48, "width": 32, "max_sequence_length": 150}
    solver = {"prediction_type": "flow_prediction", "use_flow_sigmas": True, "flow_shift": 3.0}
    solved = (plain, replace(pair, scheduler="DPMSolverMultistepScheduler", fields=solver), images)
    deep = {"height": 64, "width": 32, "max_sequence_length": 9, "use_resolution_binning": False}
    scm, other = "SCMScheduler", {"num_inference_steps": 3, "intermediate_timesteps": None, "guidance_scale": 3.0}
    sprint = (
        Run("two-steps", scm, options={**deep, "num_inference_steps": 2}),
        Run("three-steps", scm, {"sigma_data": 0.75}, TWO, {**deep, **other, "num_images_per_prompt": 2}, 7),
    )
    # Without dynamic shifting sigmas are those of whole timesteps; other schedulers space their own.
    whole = replace(plain, name="whole", options={**few, "num_inference_steps": 7, "guidance_scale": 2.0})
    ddim = Run("ddim", "DDIMScheduler", {"clip_sample": False, "timestep_spacing": "trailing"}, options=few)
    return [
        case("aura-flow", aura_flow, with_options(runs, max_sequence_length=9)),
        case("chroma", chroma, with_options(dynamic, max_sequence_length=9), latents=unpacked),
        case("bria", bria, with_options((*dynamic, whole, ddim), max_sequence_length=40), latents=unpacked),
        case("lumina2", lumina2, with_options(dynamic, **large)),
        case("sana", sana, with_options(solved, **deep)),
        case("sana-sprint", sana_sprint, sprint),
        case("qwen-image", qwen_image, with_options(scaled, max_sequence_length=40), latents=unpacked_fours),
        case(
            "flux2-klein",
            flux2_klein,
            with_options(dynamic[:2], max_sequence_length=40, negative_prompt=None),
            latents=shared,
        ),
    ]
