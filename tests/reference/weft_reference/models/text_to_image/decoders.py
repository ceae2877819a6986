"""Pipelines whose text encoder is a decoder that sees chats, or no padding: Ovis-Image, CogView4, FLUX.2 and ERNIE-Image."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from transformers import (
    GlmConfig,
    GlmModel,
    Mistral3Config,
    Mistral3ForConditionalGeneration,
    Mistral3Model,
    Qwen3Config,
    Qwen3Model,
)

from weft_reference.diffusion import diffusers
from weft_reference.models import joint_transformers, refined_transformers, stream_transformers, video_autoencoders
from weft_reference.models.text_to_image.components import autoencoder, denoiser, filled
from weft_reference.models.text_to_image.flows import DECODER, FLOW, TWO, built, shared, with_options
from weft_reference.models.text_to_image.flux import DYNAMIC, unpacked
from weft_reference.models.text_to_image.pipelines import PipelineCase, Run
from weft_reference.models.text_to_image.z_image import tokenizer

SHIFTED = {"shift_factor": 0.1159, "scaling_factor": 0.3611}
CHAT = (
    "{% for message in messages %}"
    "{{ '[SYSTEM]' if message.role == 'system' else '[INST]' }}"
    "{% for part in message.content %}{{ part.text }}{% endfor %}"
    "{{ '[/SYSTEM]' if message.role == 'system' else '[/INST]' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ 'Answer:' }}{% endif %}"
)


def ovis_image() -> Any:
    config = next(stream_transformers.kin()).config
    words = tokenizer()
    torch.manual_seed(0)
    text = Qwen3Config(vocab_size=len(words), num_hidden_layers=2, **DECODER)
    return built(
        "OvisImagePipeline",
        vae=autoencoder(**SHIFTED, use_quant_conv=False, use_post_quant_conv=False),
        text_encoder=filled(Qwen3Model(text)),
        tokenizer=words,
        transformer=denoiser("OvisImageTransformer2DModel", **config | {"in_channels": 16, "out_channels": None}),
    )


def cogview4() -> Any:
    config = next(refined_transformers.cogview()).config
    words = tokenizer(padding_side="left")
    torch.manual_seed(0)
    text = GlmConfig(vocab_size=len(words), num_hidden_layers=3, pad_token_id=words.pad_token_id, **DECODER)
    return built(
        "CogView4Pipeline",
        tokenizer=words,
        text_encoder=filled(GlmModel(text)),
        vae=autoencoder(**SHIFTED | {"shift_factor": None}),
        transformer=denoiser("CogView4Transformer2DModel", **config | {"sample_size": 16}),
    )


def mistral3(words: Any, layers: int, model_type: str = "mistral") -> Any:
    text = {**DECODER, "hidden_size": 8, "intermediate_size": 6, "head_dim": 4, "num_hidden_layers": layers}
    vision = {"hidden_size": 8, "intermediate_size": 6, "num_hidden_layers": 1, "num_attention_heads": 2, "head_dim": 4}
    return Mistral3Config(
        text_config={"model_type": model_type, "vocab_size": len(words), "sliding_window": None, **text},
        vision_config={"model_type": "pixtral", "image_size": 28, "patch_size": 14, **vision},
        image_token_index=words.convert_tokens_to_ids("[IMG]"),
    )


def chats() -> Any:
    """A tokenizer with the tokens of images, that pads before texts."""
    words = tokenizer(padding_side="left")
    words.add_special_tokens({"additional_special_tokens": ["[IMG]", "[IMG_BREAK]", "[IMG_END]"]})
    return words


def normalized() -> Any:
    torch.manual_seed(0)
    vae = filled(diffusers.AutoencoderKLFlux2(**next(video_autoencoders.flux2()).config))
    vae.bn.running_var.abs_().add_(0.5)
    return vae


def flux2() -> Any:
    config = next(stream_transformers.flux2()).config
    words = chats()
    torch.manual_seed(0)
    text = filled(Mistral3ForConditionalGeneration(mistral3(words, 31)))
    # The processor of images, which published folders have here, only hands texts on.
    words.chat_template = CHAT
    return built(
        "Flux2Pipeline",
        vae=normalized(),
        text_encoder=text,
        tokenizer=words,
        transformer=denoiser("Flux2Transformer2DModel", **config | {"in_channels": 24, "joint_attention_dim": 24}),
    )


def ernie_image() -> Any:
    config = next(joint_transformers.ernie()).config
    words = chats()
    torch.manual_seed(0)
    return built(
        "ErnieImagePipeline",
        transformer=denoiser("ErnieImageTransformer2DModel", **config | {"in_channels": 24, "out_channels": 24, "text_in_dim": 8}),
        vae=normalized(),
        text_encoder=filled(Mistral3Model(mistral3(words, 3, "ministral3"))),
        tokenizer=words,
    )


def cases() -> list[PipelineCase]:
    few = {"height": 24, "width": 16, "num_inference_steps": 4}
    guided = {**few, "negative_prompt": "rain", "guidance_scale": 2.5}
    plain = Run("plain", FLOW, {"shift": 3.0}, options={**few, "guidance_scale": 1.0})
    pair = Run("guided", FLOW, DYNAMIC, TWO, guided, 7)
    images = replace(pair, name="images", prompts=TWO[1:], options={**guided, "num_images_per_prompt": 2})
    runs = (plain, pair, images)
    linear = {"use_dynamic_shifting": True, "base_shift": 0.25, "max_shift": 0.75, "time_shift_type": "linear"}
    squares = (replace(plain, fields={"shift": 3.0}), replace(pair, fields=linear), replace(images, fields=linear))
    # A negative prompt that is not given has one token.
    empty = replace(images, fields={"shift": 1.0}, options={**few, "num_images_per_prompt": 2, "guidance_scale": 2.5})
    static = (plain, replace(pair, fields={"shift": 4.0}), empty)
    embedded = with_options((plain, pair, images), negative_prompt=None, max_sequence_length=190)

    def case(path: str, build: Any, runs: tuple[Run, ...], **more: Any) -> PipelineCase:
        return PipelineCase(f"text-to-image/{path}", build, runs, **more)

    return [
        case("ovis-image", ovis_image, with_options(runs, max_sequence_length=60), latents=unpacked),
        case("cogview4", cogview4, with_options(squares, height=32, max_sequence_length=40)),
        case("flux2", flux2, embedded, latents=shared),
        case("ernie-image", ernie_image, static),
    ]
