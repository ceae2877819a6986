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


@dataclass(frozen=True)
class Run:
    """One run of a pipeline: its scheduler, and what it is called with."""

    name: str
    scheduler: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    prompts: tuple[str, ...] = ("A weaver's loom at night, in blue",)
    options: Mapping[str, Any] = field(default_factory=dict)
    seed: int | tuple[int, ...] = 42
    image: bool = False


@dataclass(frozen=True)
class PipelineCase:
    """`build` makes the pipeline with the scheduler of the first run; `from_image` is the class of image-to-image; `given` are the
    fields of every scheduler; `call` makes the arguments that stand for prompts; `latents` makes of what a scheduler gives the latents
    `[images, channels, rows, columns]`."""

    path: str
    build: Callable[[], Any]
    runs: Sequence[Run]
    from_image: str | None = None
    given: Mapping[str, Any] = field(default_factory=dict)
    call: Callable[[Any, Run], dict[str, Any]] = lambda _pipeline, run: {"prompt": list(run.prompts)}
    latents: Callable[[torch.Tensor, Mapping[str, Any]], torch.Tensor] = lambda latents, _options: latents

    def make(self) -> Files:
        pipeline = self.build()
        pipeline.set_progress_bar_config(disable=True)
        with tempfile.TemporaryDirectory() as folder:
            pipeline.save_pretrained(folder)
            files = folder_files(Path(folder))
        if self.from_image:
            others = {"requires_safety_checker": False} if "safety_checker" in pipeline.components else {}
            from_image = getattr(diffusers, self.from_image)(**pipeline.components, **others)
            from_image.set_progress_bar_config(disable=True)
            encoded = io.BytesIO()
            photograph().save(encoded, "PNG")
            files["image.png"] = encoded.getvalue()
        calls = []
        for run in self.runs:
            used = from_image if run.image else pipeline
            used.scheduler = getattr(diffusers, run.scheduler)(**self.given, **run.fields)
            options = {"num_inference_steps": 10, **run.options}
            files[f"{run.name}.safetensors"] = to_safetensors(self.called(used, run, options))
            scheduler = {"_class_name": run.scheduler, **used.scheduler.config}
            scheduler.pop("_use_default_values", None)
            if scheduler.get("lambda_min_clipped") == -math.inf:
                del scheduler["lambda_min_clipped"]
            call = {"name": run.name, "prompts": run.prompts, "seed": run.seed, "options": options}
            call |= {"image": "image.png"} if run.image else {}
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

        pipeline.scheduler.step = keep
        if "negative_prompt" in options:
            options = {**options, "negative_prompt": [options["negative_prompt"]] * len(run.prompts)}
        seeds = run.seed if isinstance(run.seed, tuple) else (run.seed,)
        generators = [torch.Generator().manual_seed(seed) for seed in seeds]
        made = pipeline(
            **self.call(pipeline, run),
            **({"image": photograph()} if run.image else {}),
            generator=generators[0] if isinstance(run.seed, int) else generators,
            output_type="np",
            **options,
        )
        tensors["images"] = (made.images * 255).round().astype(np.uint8)
        return tensors


def photograph() -> Image.Image:
    """An image whose sides are no multiples of what a row of latents stands for."""
    rows, columns = np.mgrid[:19, :27]
    levels = np.stack([rows * 13, columns * 9, (rows * columns) % 256], axis=-1)
    return Image.fromarray(levels.astype(np.uint8))
