"""Schedulers of `diffusers` alone: timesteps and sigmas, and samples after each step of a model that is a formula."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from weft_reference import diffusion
from weft_reference.files import Files, to_json, to_safetensors

ROOTS = ("schedulers",)
SHAPE = (2, 4, 4, 6)
SEED = 5
STABLE_DIFFUSION = {"beta_start": 0.00085, "beta_end": 0.012, "beta_schedule": "scaled_linear"}


@dataclass(frozen=True)
class SchedulerCase:
    """`changes` are fields besides those of Stable Diffusion; `written` those that only the file has."""

    path: str
    scheduler: str
    changes: Mapping[str, Any] = field(default_factory=dict)
    steps: int = 10
    written: Mapping[str, Any] = field(default_factory=dict)

    def make(self) -> Files:
        cls = getattr(diffusion.diffusers, self.scheduler)
        scheduler = cls(**{**STABLE_DIFFUSION, **self.changes})
        scheduler.set_timesteps(self.steps)
        generator = torch.Generator().manual_seed(SEED)
        sample = torch.randn(SHAPE, generator=generator)
        noise = torch.randn(SHAPE, generator=generator)
        half = len(scheduler.timesteps) // 2
        noised = scheduler.add_noise(sample, noise, scheduler.timesteps[half : half + 1].repeat(SHAPE[0]))
        tensors = {"timesteps": scheduler.timesteps.double().numpy(), "noised": noised.numpy()}
        if hasattr(scheduler, "sigmas"):
            tensors["sigmas"] = scheduler.sigmas.float().numpy()
        sample = sample * scheduler.init_noise_sigma
        for index, timestep in enumerate(scheduler.timesteps):
            seen = scheduler.scale_model_input(sample, timestep)
            extra = {} if "generator" not in cls.step.__code__.co_varnames else {"generator": generator}
            sample = scheduler.step(model(seen, float(timestep)), timestep, sample, **extra).prev_sample
            tensors[f"sample.{index:02}"] = sample.numpy()
        config = {key: value for key, value in scheduler.config.items() if key != "_use_default_values"}
        config = {"_class_name": self.scheduler, **config, **self.written}
        config = {key: None if value == -float("inf") else value for key, value in config.items()}
        case = {"steps": self.steps, "seed": SEED, "init_noise_sigma": float(scheduler.init_noise_sigma)}
        files = {"scheduler_config.json": config, "case.json": case}
        made = {f"{self.path}/{name}": to_json(value) for name, value in files.items()}
        return made | {f"{self.path}/io.safetensors": to_safetensors(tensors)}


def model(sample: torch.Tensor, timestep: float) -> torch.Tensor:
    """What the test computes as well: 0.3 of the sample and a pattern that the timestep scales."""
    pattern = torch.arange(sample.numel(), dtype=torch.float32) % 7 / 7 - 0.4
    return 0.3 * sample + (1 + timestep / 1000) * pattern.reshape(sample.shape)


def goldens() -> Iterator[SchedulerCase]:
    def cases(prefix: str, scheduler: str, table: Mapping[str, Mapping[str, Any]]) -> Iterator[SchedulerCase]:
        for name, changes in table.items():
            own = {key: changes[key] for key in ("steps", "written") if key in changes}
            fields = {key: value for key, value in changes.items() if key not in own}
            yield SchedulerCase(f"schedulers/{prefix}{name}", scheduler, fields, **own)

    velocity = {"prediction_type": "v_prediction"}
    zero = {"rescale_betas_zero_snr": True, "timestep_spacing": "trailing", **velocity}
    first = {"clip_sample": False, "set_alpha_to_one": False, "steps_offset": 1}
    yield from cases(
        "ddim",
        "DDIMScheduler",
        {
            "": first,
            "-clipped": {"clip_sample_range": 1.5, "timestep_spacing": "linspace", "beta_schedule": "linear"},
            "-zero-snr": {"clip_sample": False, **zero},
            "-sample": {"prediction_type": "sample", "beta_schedule": "squaredcos_cap_v2", "steps": 7},
        },
    )
    yield from cases(
        "pndm",
        "PNDMScheduler",
        {
            "": {"skip_prk_steps": True, "steps_offset": 1, "written": {"clip_sample": False}},
            "-prk": {"set_alpha_to_one": True},
            "-velocity": {"skip_prk_steps": True, "timestep_spacing": "trailing", **velocity},
            "-trained": {
                "skip_prk_steps": True,
                "timestep_spacing": "linspace",
                "trained_betas": [0.01] * 50,
                "num_train_timesteps": 50,
                "steps": 4,
            },
        },
    )
    yield from cases(
        "euler",
        "EulerDiscreteScheduler",
        {
            "": {},
            "-leading": {"timestep_spacing": "leading", "steps_offset": 1},
            "-karras": {"use_karras_sigmas": True},
            "-sigma-min": {"final_sigmas_type": "sigma_min", "steps": 13, **velocity},
        },
    )
    yield from cases(
        "euler-ancestral",
        "EulerAncestralDiscreteScheduler",
        {"": {"timestep_spacing": "leading", "steps_offset": 1}, "-trailing": {"timestep_spacing": "trailing", **velocity}},
    )
    yield from cases(
        "dpm-solver",
        "DPMSolverMultistepScheduler",
        {
            "": {},
            "-karras": {"use_karras_sigmas": True, "steps": 20},
            "-sde-karras": {"use_karras_sigmas": True, "algorithm_type": "sde-dpmsolver++"},
            "-sde-heun": {"algorithm_type": "sde-dpmsolver++", "solver_type": "heun", "steps": 16},
            "-heun": {"solver_type": "heun", "timestep_spacing": "leading", "steps_offset": 1, **velocity},
            "-first": {"solver_order": 1, "timestep_spacing": "trailing"},
            "-euler-at-final": {"euler_at_final": True, "final_sigmas_type": "sigma_min", "steps": 16},
            "-sample": {"prediction_type": "sample", "lower_order_final": False},
        },
    )
