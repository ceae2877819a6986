"""Z-Image: Qwen3's hidden states of a chat, and predictions of what is taken away."""

from __future__ import annotations

from typing import Any

import torch
from transformers import Qwen2Tokenizer, Qwen3Config, Qwen3Model

from weft_reference import bytepair
from weft_reference.diffusion import diffusers
from weft_reference.models.text_to_image.components import autoencoder, denoiser, filled
from weft_reference.models.text_to_image.pipelines import PipelineCase, Run

CHAT = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
    "{% if enable_thinking is defined and not enable_thinking %}{{ '<think>\\n\\n</think>\\n\\n' }}{% endif %}"
)
SIZE = {"height": 24, "width": 16, "max_sequence_length": 40}
RUNS = (
    Run(
        "turbo",
        "FlowMatchEulerDiscreteScheduler",
        {"shift": 3.0},
        options={**SIZE, "guidance_scale": 0.0, "num_inference_steps": 8},
    ),
    Run(
        "guided",
        "FlowMatchEulerDiscreteScheduler",
        {"use_dynamic_shifting": True},
        ("A red disc", "Blue bars, and more of them than a tokenizer takes: " + "bars " * 20),
        {
            **SIZE,
            "negative_prompt": "rain",
            "num_images_per_prompt": 2,
            "guidance_scale": 2.5,
            "num_inference_steps": 5,
        },
        7,
    ),
)


def tokenizer(**more: Any) -> Any:
    names = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    vocabulary = {token: index for index, token in enumerate(bytepair.vocabulary())}
    made = Qwen2Tokenizer(
        vocab=vocabulary, merges=bytepair.merges(), unk_token=None, eos_token="<|im_end|>", pad_token="<|endoftext|>", **more
    )
    made.add_special_tokens({"additional_special_tokens": names[1:]})
    made.chat_template = CHAT
    return made


def build() -> Any:
    words = tokenizer()
    text = {
        "hidden_size": 12,
        "intermediate_size": 20,
        "num_hidden_layers": 3,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "head_dim": 8,
    }
    torch.manual_seed(0)
    config = {
        "in_channels": 4,
        "dim": 24,
        "n_layers": 2,
        "n_refiner_layers": 1,
        "n_heads": 3,
        "n_kv_heads": 3,
        "cap_feat_dim": 12,
        "axes_dims": [4, 2, 2],
        "axes_lens": [128, 32, 32],
    }
    return diffusers.ZImagePipeline(
        scheduler=diffusers.FlowMatchEulerDiscreteScheduler(shift=3.0),
        vae=autoencoder(shift_factor=0.1159, scaling_factor=0.3611),
        text_encoder=filled(Qwen3Model(Qwen3Config(vocab_size=len(words), **text))),
        tokenizer=words,
        transformer=denoiser("ZImageTransformer2DModel", **config),
    )


def case() -> PipelineCase:
    return PipelineCase("text-to-image/z-image", build, RUNS)
