"""Hunyuan-DiT: BERT's and T5's hidden states, rotary position embeddings that the pipeline makes, sizes and a style."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from transformers import BertConfig, BertModel

from weft_reference.diffusion import diffusers
from weft_reference.models import conditioned_transformers
from weft_reference.models.schedulers import STABLE_DIFFUSION
from weft_reference.models.text_to_image.components import autoencoder, denoiser, filled, t5, t5_tokenizer
from weft_reference.models.text_to_image.flows import BLOCKS, TWO
from weft_reference.models.text_to_image.pipelines import PipelineCase, Run
from weft_reference.wordpiece import bert_tokenizer, vocabulary

# Rows of latents are counted as eight pixels, whatever the autoencoder has.
SIZE = {"height": 64, "width": 48, "use_resolution_binning": False}
TEXT = {"hidden_size": 12, "intermediate_size": 20, "num_hidden_layers": 2, "num_attention_heads": 2}
# Of several images of several prompts the reference gives each the mask of another prompt.
RUNS = (
    Run("ddpm", "DDPMScheduler", {"prediction_type": "v_prediction"}, options={**SIZE, "num_inference_steps": 4}),
    Run(
        "guided",
        "DDPMScheduler",
        {"prediction_type": "v_prediction", "timestep_spacing": "leading", "steps_offset": 1},
        TWO,
        {**SIZE, "height": 32, "negative_prompt": "rain", "num_inference_steps": 3, "guidance_rescale": 0.7},
        7,
    ),
    Run("unguided", "DDIMScheduler", {"clip_sample": False}, options={**SIZE, "guidance_scale": 1.0, "num_inference_steps": 3}),
)


def build(**config: Any) -> Any:
    own = {"text_len": 77, "text_len_t5": 256, "cross_attention_dim": 12, "cross_attention_dim_t5": 16, "sample_size": 8}
    transformer = dict(next(conditioned_transformers.hunyuan()).config)
    torch.manual_seed(0)
    bert = filled(BertModel(BertConfig(vocab_size=len(vocabulary()), max_position_embeddings=77, **TEXT)))
    return diffusers.HunyuanDiTPipeline(
        vae=autoencoder(scaling_factor=0.13025, **BLOCKS),
        text_encoder=bert,
        tokenizer=bert_tokenizer(77),
        transformer=denoiser("HunyuanDiT2DModel", **transformer | own | config),
        scheduler=diffusers.DDPMScheduler(**STABLE_DIFFUSION),
        safety_checker=None,
        feature_extractor=None,
        requires_safety_checker=False,
        text_encoder_2=t5(d_model=16),
        tokenizer_2=t5_tokenizer(),
    )


def cases() -> list[PipelineCase]:
    path = "text-to-image/hunyuan-dit"
    plain = partial(build, use_style_cond_and_image_meta_size=False)
    return [
        PipelineCase(path, build, RUNS, given=STABLE_DIFFUSION),
        PipelineCase(f"{path}-1.2", plain, RUNS[:1], given=STABLE_DIFFUSION),
    ]
