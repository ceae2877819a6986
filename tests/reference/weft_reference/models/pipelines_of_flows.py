"""The denoisers of pipelines of one text encoder, whose other components have sizes of their own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from weft_reference.diffusion import ModelCase
from weft_reference.models import conditioned_transformers, refined_transformers, stream_transformers
from weft_reference.models import unet_kin, video_autoencoders
from weft_reference.models.stable_diffusion import AUTOENCODER

MODELS = ("aura-flow", "chroma", "lumina2", "sana", "qwen-image", "flux2-klein")
ROOTS = MODELS

DECODER = {
    "hidden_size": 12,
    "intermediate_size": 20,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
}
T5 = {"d_model": 12, "d_kv": 4, "d_ff": 16, "num_layers": 2, "num_heads": 3}


def goldens() -> Iterator[ModelCase]:
    def case(path: str, pipeline: str, denoiser: ModelCase, text: dict[str, Any], vae: Any = AUTOENCODER) -> ModelCase:
        index = {"_class_name": pipeline, "text_encoder": text, "vae": vae}
        notes = "The denoiser of a pipeline."
        return replace(denoiser, path=f"{path}/base", notes=notes, head=pipeline, within=("transformer", index))

    gemma = DECODER | {"model_type": "gemma2", "head_dim": 8}
    qwen3 = gemma | {"model_type": "qwen3", "num_hidden_layers": 27}
    rope = {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [1, 1, 1]}
    qwen_vl = {"text_config": DECODER | {"rope_parameters": rope}}
    yield case("aura-flow", "AuraFlowPipeline", next(stream_transformers.auraflow()), T5 | {"model_type": "umt5"})
    yield case("chroma", "ChromaPipeline", list(stream_transformers.chroma())[1], T5 | {"model_type": "t5"})
    yield case("lumina2", "Lumina2Pipeline", next(refined_transformers.lumina2()), gemma)
    yield case("sana", "SanaPipeline", next(conditioned_transformers.sana()), gemma, dict(next(unet_kin.deep()).config))
    video = dict(next(video_autoencoders.wan()).config) | {"latents_mean": [0.0] * 3, "latents_std": [1.0] * 3}
    yield case("qwen-image", "QwenImagePipeline", list(stream_transformers.qwen_image())[1], qwen_vl, video)
    flux2 = dict(next(video_autoencoders.flux2()).config)
    yield case("flux2-klein", "Flux2KleinPipeline", list(stream_transformers.flux2())[1], qwen3, flux2)
