"""Schedulers of `diffusers` alone: timesteps and sigmas, and samples after each step of a model that is a formula."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from weft_reference import diffusion
from weft_reference.files import Files, to_json, to_safetensors

calculate_shift = diffusion.diffusers.pipelines.flux.pipeline_flux.calculate_shift
cogview = diffusion.diffusers.pipelines.cogview4.pipeline_cogview4
bria = diffusion.diffusers.pipelines.bria.pipeline_bria

ROOTS = ("schedulers",)
SHAPE = (2, 4, 4, 6)
SEED = 5
STABLE_DIFFUSION = {"beta_start": 0.00085, "beta_end": 0.012, "beta_schedule": "scaled_linear"}


@dataclass(frozen=True)
class SchedulerCase:
    """`changes` are fields besides those of Stable Diffusion; `written` those that only the file has; `tokens` are the image's,
    by which pipelines shift sigmas that they space evenly, or as `spacing` says: of whole timesteps as CogView4's (`whole`) and BRIA's
    (`original`), or as ERNIE-Image's (`remaining`)."""

    path: str
    scheduler: str
    changes: Mapping[str, Any] = field(default_factory=dict)
    steps: int = 10
    written: Mapping[str, Any] = field(default_factory=dict)
    tokens: int | None = None
    spacing: str | None = None

    def make(self) -> Files:
        cls = getattr(diffusion.diffusers, self.scheduler)
        given = STABLE_DIFFUSION if "beta_start" in inspect.signature(cls).parameters else {}
        scheduler = cls(**{**given, **self.changes})
        self.set_timesteps(scheduler)
        generator = torch.Generator().manual_seed(SEED)
        sample = torch.randn(SHAPE, generator=generator)
        noise = torch.randn(SHAPE, generator=generator)
        # The last of `SCMScheduler` is no run.
        timesteps = scheduler.timesteps[: self.steps] if self.scheduler == "SCMScheduler" else scheduler.timesteps
        middle = timesteps[len(timesteps) // 2 :][:1].repeat(SHAPE[0])
        tensors = {"timesteps": timesteps.double().numpy()}
        if add := getattr(scheduler, "add_noise", None):
            tensors["noised"] = add(sample, noise, middle).numpy()
        elif hasattr(scheduler, "scale_noise"):
            tensors["noised"] = scheduler.scale_noise(sample, middle, noise).numpy()
        if hasattr(scheduler, "sigmas"):
            tensors["sigmas"] = scheduler.sigmas.float().numpy()
        init = float(getattr(scheduler, "init_noise_sigma", 1.0))
        sample = sample * init
        for index, timestep in enumerate(timesteps):
            scale = getattr(scheduler, "scale_model_input", lambda sample, _timestep: sample)
            seen = scale(sample, timestep)
            extra = {} if "generator" not in cls.step.__code__.co_varnames else {"generator": generator}
            sample = scheduler.step(model(seen, float(timestep)), timestep, sample, **extra).prev_sample
            tensors[f"sample.{index:02}"] = sample.numpy()
        config = {key: value for key, value in scheduler.config.items() if key != "_use_default_values"}
        config = {"_class_name": self.scheduler, **config, **self.written}
        config = {key: None if value == -float("inf") else value for key, value in config.items()}
        case = {"steps": self.steps, "seed": SEED, "init_noise_sigma": init}
        if self.tokens:
            case["tokens"] = self.tokens
        if self.spacing:
            case["spacing"] = self.spacing
        files = {"scheduler_config.json": config, "case.json": case}
        made = {f"{self.path}/{name}": to_json(value) for name, value in files.items()}
        return made | {f"{self.path}/io.safetensors": to_safetensors(tensors)}

    def set_timesteps(self, scheduler: Any) -> None:
        if self.spacing == "whole":
            timesteps = np.linspace(1000, 1.0, self.steps).astype(np.int64).astype(np.float32)
            fields = (scheduler.config[name] for name in ("base_image_seq_len", "base_shift", "max_shift"))
            shift = cogview.calculate_shift(self.tokens, *fields)
            scheduler.set_timesteps(timesteps=timesteps, sigmas=timesteps / 1000, mu=shift)
        elif self.spacing == "original":
            scheduler.set_timesteps(sigmas=bria.get_original_sigmas(1000, self.steps))
        elif self.spacing == "remaining":
            scheduler.set_timesteps(sigmas=torch.linspace(1.0, 0.0, self.steps + 1)[:-1])
        elif self.tokens:
            fields = ("base_image_seq_len", "max_image_seq_len", "base_shift", "max_shift")
            shift = calculate_shift(self.tokens, *(scheduler.config[name] for name in fields))
            scheduler.set_timesteps(sigmas=np.linspace(1.0, 1 / self.steps, self.steps), mu=shift)
        elif self.scheduler == "SCMScheduler" and self.steps != 2:
            scheduler.set_timesteps(self.steps, intermediate_timesteps=None)
        else:
            scheduler.set_timesteps(self.steps)


def model(sample: torch.Tensor, timestep: float) -> torch.Tensor:
    """What the test computes as well: 0.3 of the sample and a pattern that the timestep scales."""
    pattern = torch.arange(sample.numel(), dtype=torch.float32) % 7 / 7 - 0.4
    return 0.3 * sample + (1 + timestep / 1000) * pattern.reshape(sample.shape)


def goldens() -> Iterator[SchedulerCase]:
    def cases(prefix: str, scheduler: str, table: Mapping[str, Mapping[str, Any]]) -> Iterator[SchedulerCase]:
        for name, changes in table.items():
            own = {key: changes[key] for key in ("steps", "written", "tokens", "spacing") if key in changes}
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
    flow = {"prediction_type": "flow_prediction", "use_flow_sigmas": True}
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
            "-flow": {**flow, "flow_shift": 3.0},
            "-flow-sde": {**flow, "algorithm_type": "sde-dpmsolver++", "steps": 16},
        },
    )
    yield from cases(
        "ddpm",
        "DDPMScheduler",
        {
            "": {"clip_sample": False, "steps_offset": 1},
            "-large": {"variance_type": "fixed_large", "timestep_spacing": "trailing", **velocity},
            "-sample": {"variance_type": "fixed_small_log", "prediction_type": "sample", "steps": 7},
        },
    )
    yield from cases(
        "lcm",
        "LCMScheduler",
        {"": {"steps": 4}, "-velocity": {"original_inference_steps": 100, "clip_sample": True, "steps": 7, **velocity}},
    )
    yield from cases("tcd", "TCDScheduler", {"": {"steps": 4}, "-velocity": {"timestep_scaling": 5.0, "steps": 8, **velocity}})
    heun = {"use_karras_sigmas": True, "clip_sample": True, "clip_sample_range": 2.0, **velocity}
    leading = {"timestep_spacing": "leading", "steps_offset": 1}
    yield from cases("heun", "HeunDiscreteScheduler", {"": {}, "-karras": heun, "-leading": leading})
    kdpm2 = {"use_karras_sigmas": True, "timestep_spacing": "trailing", **velocity}
    yield from cases("kdpm2", "KDPM2DiscreteScheduler", {"": {}, "-karras": kdpm2})
    yield from cases("lms", "LMSDiscreteScheduler", {"": {}, "-karras": {"use_karras_sigmas": True, **leading, **velocity}})
    yield from cases(
        "deis",
        "DEISMultistepScheduler",
        {
            "": {},
            "-third": {"solver_order": 3, "steps": 16, **leading},
            "-karras": {"use_karras_sigmas": True, "solver_order": 3, **velocity},
        },
    )
    yield from cases(
        "unipc",
        "UniPCMultistepScheduler",
        {
            "": {},
            "-third": {"solver_order": 3, "solver_type": "bh1", "steps": 12, **leading},
            "-karras": {"use_karras_sigmas": True, "disable_corrector": [0, 4], **velocity},
            "-noise": {"predict_x0": False, "final_sigmas_type": "sigma_min", "lower_order_final": False, "solver_order": 3},
        },
    )
    linear = {"use_dynamic_shifting": True, "base_shift": 0.25, "max_shift": 0.75, "time_shift_type": "linear"}
    flux = {"use_dynamic_shifting": True, "shift": 3.0, "tokens": 1024}
    yield from cases(
        "flow-match-euler",
        "FlowMatchEulerDiscreteScheduler",
        {
            "": {"shift": 3.0},
            "-tokens": flux,
            "-terminal": {**flux, "shift_terminal": 0.02, "time_shift_type": "linear", "steps": 7},
            "-karras": {"use_karras_sigmas": True, "stochastic_sampling": True},
            "-inverted": {"invert_sigmas": True, "steps": 4},
            "-whole": {**linear, "tokens": 1024, "spacing": "whole", "steps": 7},
            "-original": {"shift": 3.0, "spacing": "original", "steps": 7},
            "-remaining": {"shift": 4.0, "spacing": "remaining", "steps": 7},
        },
    )
    yield from cases("scm", "SCMScheduler", {"": {"steps": 2}, "-even": {"steps": 5}})
