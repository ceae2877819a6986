"""The denoisers of pipelines of one text encoder, whose other components have sizes of their own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from weft_reference.diffusion import ModelCase
from weft_reference.models import conditioned_transformers, joint_transformers, refined_transformers, stream_transformers
from weft_reference.models import unet_kin, video_autoencoders
from weft_reference.models.stable_diffusion import AUTOENCODER

MODELS = (
    *("aura-flow", "chroma", "lumina2", "sana", "qwen-image", "flux2-klein"),
    *("bria", "ovis-image", "cogview4", "flux2", "ernie-image", "hunyuan-dit"),
)
ROOTS = MODELS

DECODER = {
    "hidden_size": 12,
    "intermediate_size": 20,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
}
BERT = {
    "model_type": "bert",
    "hidden_size": 12,
    "intermediate_size": 20,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
}
T5 = {"d_model": 12, "d_kv": 4, "d_ff": 16, "num_layers": 2, "num_heads": 3}


def goldens() -> Iterator[ModelCase]:
    def case(path: str, pipeline: str, denoiser: ModelCase, text: dict[str, Any], vae: Any = AUTOENCODER) -> ModelCase:
        path = path if "/" in path else f"{path}/base"
        index = {"_class_name": pipeline, "text_encoder": text, "vae": vae}
        notes = "The denoiser of a pipeline."
        return replace(denoiser, path=path, notes=notes, head=pipeline, within=("transformer", index))

    gemma = DECODER | {"model_type": "gemma2", "head_dim": 8}
    qwen3 = gemma | {"model_type": "qwen3", "num_hidden_layers": 27}
    rope = {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [1, 1, 1]}
    qwen_vl = {"text_config": DECODER | {"rope_parameters": rope}}
    yield case("aura-flow", "AuraFlowPipeline", next(stream_transformers.auraflow()), T5 | {"model_type": "umt5"})
    yield case("chroma", "ChromaPipeline", list(stream_transformers.chroma())[1], T5 | {"model_type": "t5"})
    yield case("lumina2", "Lumina2Pipeline", next(refined_transformers.lumina2()), gemma)
    sana, deep = list(conditioned_transformers.sana()), dict(next(unet_kin.deep()).config)
    yield case("sana", "SanaPipeline", sana[0], gemma, deep)
    yield case("sana/sprint", "SanaSprintPipeline", sana[1], gemma, deep)
    video = dict(next(video_autoencoders.wan()).config) | {"latents_mean": [0.0] * 3, "latents_std": [1.0] * 3}
    yield case("qwen-image", "QwenImagePipeline", list(stream_transformers.qwen_image())[1], qwen_vl, video)
    flux2 = dict(next(video_autoencoders.flux2()).config)
    yield case("flux2-klein", "Flux2KleinPipeline", list(stream_transformers.flux2())[1], qwen3, flux2)
    hunyuan = case("hunyuan-dit", "HunyuanDiTPipeline", next(conditioned_transformers.hunyuan()), BERT)
    assert hunyuan.within
    texts = {**hunyuan.within[1], "text_encoder_2": T5 | {"model_type": "t5"}}
    yield replace(hunyuan, within=("transformer", texts))
    kin = list(stream_transformers.kin())
    yield case("bria", "BriaPipeline", kin[4], T5 | {"model_type": "t5"})
    yield case("ovis-image", "OvisImagePipeline", kin[0], gemma | {"model_type": "qwen3"})
    yield case("cogview4", "CogView4Pipeline", next(refined_transformers.cogview()), gemma | {"model_type": "glm"})
    mistral = {"text_config": gemma | {"model_type": "mistral", "num_hidden_layers": 30}}
    yield case("flux2", "Flux2Pipeline", next(stream_transformers.flux2()), mistral, flux2)
    ministral = {"text_config": gemma | {"model_type": "ministral3"}}
    yield case("ernie-image", "ErnieImagePipeline", next(joint_transformers.ernie()), ministral, flux2)
