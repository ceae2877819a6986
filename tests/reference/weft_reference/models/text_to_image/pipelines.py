"""A golden case of a pipeline from texts to images: its folder, and the latents and images of some runs."""

from __future__ import annotations

import functools
import io
import math
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

from weft_reference.diffusion import diffusers
from weft_reference.files import Files, folder_files, to_json, to_safetensors
from weft_reference.models.text_to_image import low_rank


# Some pipelines of masks take multiples of eight alone.
SIZE = {"height": 24, "width": 16}


@dataclass(frozen=True)
class Run:
    """One run of a pipeline: its scheduler, and what it is called with; `lora` is the scale of low-rank updates, `control`
    whether the image is a ControlNet's, `tiled` whether the autoencoder sees tiles; `weighted` are the parts of the one prompt with their weights."""

    name: str
    scheduler: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    prompts: tuple[str, ...] = ("A weaver's loom at night, in blue",)
    options: Mapping[str, Any] = field(default_factory=dict)
    seed: int | tuple[int, ...] = 42
    image: bool = False
    mask: bool = False
    lora: float | None = None
    control: bool = False
    tiled: bool = False
    weighted: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True)
class PipelineCase:
    """`build` makes the pipeline with the scheduler of the first run; `from_image` and `inpaint` are the classes of image-to-image
    and inpainting; `given` are the fields of every scheduler; `call` makes the arguments that stand for prompts; `latents` makes of what a scheduler gives the latents
    `[images, channels, rows, columns]`."""

    path: str
    build: Callable[[], Any]
    runs: Sequence[Run]
    from_image: str | None = None
    inpaint: str | None = None
    given: Mapping[str, Any] = field(default_factory=dict)
    call: Callable[[Any, Run], dict[str, Any]] = lambda _pipeline, run: {"prompt": list(run.prompts)}
    latents: Callable[[torch.Tensor, Mapping[str, Any]], torch.Tensor] = lambda latents, _options: latents

    def make(self) -> Files:
        pipeline = self.build()
        with tempfile.TemporaryDirectory() as folder:
            pipeline.save_pretrained(folder)
            files = folder_files(Path(folder))
        others = {"requires_safety_checker": False} if "safety_checker" in pipeline.components else {}
        classes = {(False, False): None, (True, False): self.from_image, (True, True): self.inpaint}
        used = {
            key: getattr(diffusers, name)(**pipeline.components, **others) if name else pipeline for key, name in classes.items()
        }
        for name, image in (("image.png", photograph()), ("mask.png", disc())):
            if any(run.mask or ((run.image or run.control) and name == "image.png") for run in self.runs):
                encoded = io.BytesIO()
                image.save(encoded, "PNG")
                files[name] = encoded.getvalue()
        calls = []
        for run in self.runs:
            called = used[run.image or run.mask, run.mask]
            called.set_progress_bar_config(disable=True)
            called.scheduler = getattr(diffusers, run.scheduler)(**self.given, **run.fields)
            called.vae.use_tiling = run.tiled
            options = {"num_inference_steps": 10, **(SIZE if run.mask else {}), **run.options}
            with low_rank.merged(called, run.lora) as updates:
                files[f"{run.name}.safetensors"] = to_safetensors(self.called(called, run, options))
            files |= {"lora.safetensors": to_safetensors(updates)} if updates else {}
            scheduler = {"_class_name": run.scheduler, **called.scheduler.config}
            scheduler.pop("_use_default_values", None)
            if scheduler.get("lambda_min_clipped") == -math.inf:
                del scheduler["lambda_min_clipped"]
            call = {"name": run.name, "prompts": run.prompts, "seed": run.seed, "options": options}
            call |= {"image": "image.png"} if run.image or run.mask else {}
            call |= {"mask": "mask.png"} if run.mask else {}
            call |= {"control": "image.png"} if run.control else {}
            call |= {"tiled": True} if run.tiled else {}
            call |= {"weighted": True} if run.weighted else {}
            call |= {"lora": {"file": "lora.safetensors", "scale": run.lora}} if run.lora else {}
            calls.append({**call, "scheduler": scheduler})
        files["calls.json"] = to_json(calls)
        return {f"{self.path}/{name}": data for name, data in files.items()}

    def called(self, pipeline: Any, run: Run, options: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """The latents after each step, and the images."""
        tensors: dict[str, np.ndarray] = {}
        step = pipeline.scheduler.step

        @functools.wraps(step)
        def keep(*args: Any, **named: Any) -> Any:
            result = step(*args, **named)
            latents = self.latents(result[0], options)
            tensors[f"latents.{len(tensors):02}"] = latents.numpy().copy()
            return result

        def keep_blended(_pipeline: Any, index: int, _timestep: Any, kept: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
            tensors[f"latents.{index:02}"] = self.latents(kept["latents"], options).numpy().copy()
            return kept

        if run.mask:
            options = {**options, "callback_on_step_end": keep_blended}
        else:
            pipeline.scheduler.step = keep
        if run.weighted:
            # Hidden states stand for it.
            options = {name: value for name, value in options.items() if name != "negative_prompt"}
        if "negative_prompt" in options:
            options = {**options, "negative_prompt": [options["negative_prompt"]] * len(run.prompts)}
        seeds = run.seed if isinstance(run.seed, tuple) else (run.seed,)
        generators = [torch.Generator().manual_seed(seed) for seed in seeds]
        made = pipeline(
            **(weighed(pipeline, run.weighted) if run.weighted else self.call(pipeline, run)),
            **({"image": photograph()} if run.image or run.mask or run.control else {}),
            **({"mask_image": disc()} if run.mask else {}),
            generator=generators[0] if isinstance(run.seed, int) else generators,
            output_type="np",
            **options,
        )
        tensors["images"] = (made.images * 255).round().astype(np.uint8)
        return tensors


def weighed(pipeline: Any, parts: tuple[tuple[str, float], ...]) -> dict[str, torch.Tensor]:
    """Hidden states of a prompt, each token's moved by its weight away from the empty text's: the reference leaves it to callers."""
    device = torch.device("cpu")
    names = ("prompt_embeds", "negative_prompt_embeds", "pooled_prompt_embeds", "negative_pooled_prompt_embeds")
    text = "".join(part for part, _ in parts)
    encode = pipeline.encode_prompt
    named = {"device": device, "num_images_per_prompt": 1, "do_classifier_free_guidance": True}
    made = dict(zip(names, encode(text, negative_prompt="", **named)))
    tokens = lambda text: pipeline.tokenizer(text, add_special_tokens=False).input_ids  # noqa: E731
    ids = [(token, weight) for part, weight in parts for token in tokens(part)]
    whole = tokens(text)
    if [token for token, _ in ids] != whole:
        raise ValueError(f"{text!r} has other tokens in parts")
    weights = torch.ones(made["prompt_embeds"].shape[1])
    weights[1 : 1 + len(ids)] = torch.tensor([weight for _, weight in ids])
    none = made["negative_prompt_embeds"]
    made["prompt_embeds"] = none + weights[None, :, None] * (made["prompt_embeds"] - none)
    return made


def photograph() -> Image.Image:
    """An image whose sides are no multiples of what a row of latents stands for."""
    rows, columns = np.mgrid[:19, :27]
    levels = np.stack([rows * 13, columns * 9, (rows * columns) % 256], axis=-1)
    return Image.fromarray(levels.astype(np.uint8))


def disc() -> Image.Image:
    """A mask in colours, of another size than the image."""
    rows, columns = np.mgrid[:30, :30]
    inside = (rows - 16) ** 2 + (columns - 12) ** 2 < 90
    return Image.fromarray(np.stack([inside * 255, inside * 240, inside * 100], axis=-1).astype(np.uint8))
