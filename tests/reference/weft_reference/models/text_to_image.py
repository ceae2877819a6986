"""Pipelines from texts to images: a whole folder as `save_pretrained` writes it, latents after each step, and images."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from transformers import CLIPTextConfig, CLIPTextModel

from weft_reference import weights
from weft_reference.byte_pairs import clip_tokenizer, vocabulary
from weft_reference.diffusion import diffusers
from weft_reference.files import Files, folder_files, to_json, to_safetensors
from weft_reference.models.schedulers import STABLE_DIFFUSION
from weft_reference.models.stable_diffusion import AUTOENCODER, UNET

ROOTS = ("text-to-image",)
POSITIONS = 20
TEXT = {"hidden_size": 12, "intermediate_size": 20, "num_hidden_layers": 2, "num_attention_heads": 2}


@dataclass(frozen=True)
class Run:
    """One run of a pipeline: its scheduler, and what it is called with."""

    name: str
    scheduler: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    prompts: tuple[str, ...] = ("A weaver's loom at night, in blue",)
    options: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 42
    image: bool = False


RUNS = (
    Run("pndm", "PNDMScheduler", {"skip_prk_steps": True, "steps_offset": 1}, options={"height": 24, "width": 16}),
    Run(
        "euler-ancestral",
        "EulerAncestralDiscreteScheduler",
        {"timestep_spacing": "leading", "steps_offset": 1},
        ("A red disc", "Blue bars, and more of them than a tokenizer takes: " + "bars " * 20),
        {"negative_prompt": "rain", "num_images_per_prompt": 2, "guidance_rescale": 0.7},
        7,
    ),
    Run(
        "ddim",
        "DDIMScheduler",
        {"clip_sample": False, "set_alpha_to_one": False, "steps_offset": 1},
        options={"guidance_scale": 1.0, "num_inference_steps": 4},
    ),
    Run("image-ddim", "DDIMScheduler", {"clip_sample": False, "steps_offset": 1}, options={"strength": 0.6}, image=True),
    Run("image-pndm", "PNDMScheduler", {"skip_prk_steps": True, "steps_offset": 1}, options={"strength": 0.5}, image=True),
    Run("image-lms", "LMSDiscreteScheduler", options={"strength": 0.75, "num_inference_steps": 8}, image=True),
    Run(
        "image-heun",
        "HeunDiscreteScheduler",
        {},
        ("A red disc", "Blue bars"),
        {"negative_prompt": "rain", "num_images_per_prompt": 2, "strength": 0.35},
        7,
        image=True,
    ),
)


@dataclass(frozen=True)
class PipelineCase:
    path: str

    def make(self) -> Files:
        pipeline = stable_diffusion()
        with tempfile.TemporaryDirectory() as folder:
            pipeline.save_pretrained(folder)
            files = folder_files(Path(folder))
        from_image = diffusers.StableDiffusionImg2ImgPipeline(**pipeline.components, requires_safety_checker=False)
        from_image.set_progress_bar_config(disable=True)
        encoded = io.BytesIO()
        photograph().save(encoded, "PNG")
        files["image.png"] = encoded.getvalue()
        calls = []
        for run in RUNS:
            pipeline.scheduler = from_image.scheduler = getattr(diffusers, run.scheduler)(**STABLE_DIFFUSION, **run.fields)
            options = {"num_inference_steps": 10, **run.options}
            files[f"{run.name}.safetensors"] = to_safetensors(
                called(from_image if run.image else pipeline, run, options)
            )
            scheduler = {"_class_name": run.scheduler, **pipeline.scheduler.config}
            scheduler.pop("_use_default_values", None)
            call = {"name": run.name, "prompts": run.prompts, "seed": run.seed, "options": options}
            call |= {"image": "image.png"} if run.image else {}
            calls.append({**call, "scheduler": scheduler})
        files["calls.json"] = to_json(calls)
        return {f"{self.path}/{name}": data for name, data in files.items()}


def photograph() -> Image.Image:
    """An image whose sides are no multiples of what a row of latents stands for."""
    rows, columns = np.mgrid[:19, :27]
    levels = np.stack([rows * 13, columns * 9, (rows * columns) % 256], axis=-1)
    return Image.fromarray(levels.astype(np.uint8))


def stable_diffusion() -> Any:
    torch.manual_seed(0)
    size = len(vocabulary())
    ids = {"vocab_size": size, "bos_token_id": size - 2, "eos_token_id": size - 1, "pad_token_id": size - 1}
    text = CLIPTextModel(CLIPTextConfig(**TEXT, **ids, max_position_embeddings=POSITIONS, projection_dim=10))
    unet = diffusers.UNet2DConditionModel(**UNET)
    vae = diffusers.AutoencoderKL(**AUTOENCODER)
    for model in (text, unet, vae):
        weights.fill(model.float().eval())
    pipeline = diffusers.StableDiffusionPipeline(
        vae=vae,
        text_encoder=text,
        tokenizer=clip_tokenizer(POSITIONS),
        unet=unet,
        scheduler=diffusers.PNDMScheduler(**STABLE_DIFFUSION, **RUNS[0].fields),
        safety_checker=None,
        feature_extractor=None,
        requires_safety_checker=False,
    )
    pipeline.set_progress_bar_config(disable=True)
    return pipeline


def called(pipeline: Any, run: Run, options: Mapping[str, Any]) -> dict[str, np.ndarray]:
    tensors: dict[str, np.ndarray] = {}

    def keep(_pipeline: Any, index: int, _timestep: Any, kept: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        tensors[f"latents.{index:02}"] = kept["latents"].numpy().copy()
        return kept

    if "negative_prompt" in options:
        options = {**options, "negative_prompt": [options["negative_prompt"]] * len(run.prompts)}
    more = {"image": photograph()} if run.image else {}
    made = pipeline(
        list(run.prompts),
        **more,
        generator=torch.Generator().manual_seed(run.seed),
        output_type="np",
        callback_on_step_end=keep,
        **options,
    )
    tensors["images"] = (made.images * 255).round().astype(np.uint8)
    return tensors


def goldens() -> Iterator[PipelineCase]:
    yield PipelineCase("text-to-image/stable-diffusion")
