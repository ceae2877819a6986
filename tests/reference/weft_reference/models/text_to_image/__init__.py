"""Pipelines from texts to images: a whole folder as `save_pretrained` writes it, latents after each step, and images."""

from __future__ import annotations

from collections.abc import Iterator

from weft_reference.models.text_to_image import decoders, dit, flows, flux, hunyuan_dit, pixart, z_image
from weft_reference.models.text_to_image import single_file, stable_diffusion, stable_diffusion_3, stable_diffusion_xl
from weft_reference.models.text_to_image.pipelines import PipelineCase

ROOTS = ("text-to-image",)


def goldens() -> Iterator[PipelineCase]:
    yield from stable_diffusion.cases()
    yield from stable_diffusion_xl.cases()
    yield from stable_diffusion_3.cases()
    yield flux.case()
    yield from pixart.cases()
    yield dit.case()
    yield z_image.case()
    yield from flows.cases()
    yield from decoders.cases()
    yield from hunyuan_dit.cases()
    yield from single_file.cases()
