"""A golden case of one model class of `diffusers`: as `cases.Case`, but `config.json` names its class by `_class_name`."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from weft_reference import environment, weights
from weft_reference.cases import Inputs, versions
from weft_reference.files import Files, folder_files, to_json, to_safetensors

if wrong := environment.mismatches(environment.DIFFUSION):
    raise ImportError("; ".join(wrong) + f": pip install --no-deps -r {environment.DIFFUSION}")

import diffusers  # noqa: E402

Call = Callable[[torch.nn.Module, dict[str, torch.Tensor]], dict[str, torch.Tensor]]


def forward(model: torch.nn.Module, inputs: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """`forward`, whose inputs besides those that it names itself are `added_cond_kwargs`."""
    added = {name: inputs.pop(name) for name in ("text_embeds", "time_ids", "resolution", "aspect_ratio") if name in inputs}
    return {"sample": model(**inputs, **({"added_cond_kwargs": added} if added else {})).sample}


@dataclass(frozen=True)
class ModelCase:
    """`path` is the folder under the goldens; `call` runs the model; `head` is the class as Weft names it where that is not the
    reference's; `without` begins names of parameters that the call does not read; `stored` writes weight files, whose tensors have the
    older names that `rename` has for ends of today's; `within` is the component of a pipeline that the model is, and the pipeline's
    configuration without it."""

    path: str
    model_class: str
    config: Mapping[str, Any]
    inputs: Inputs
    notes: str = ""
    call: Call = forward
    head: str | None = None
    without: tuple[str, ...] = ()
    stored: bool = False
    rename: Mapping[str, str] = field(default_factory=dict)
    within: tuple[str, Mapping[str, Any]] | None = None

    def make(self) -> Files:
        torch.manual_seed(0)
        model = getattr(diffusers, self.model_class)(**self.config).float().eval()
        parameters = self.fill(model)
        outputs = self.call(model, {name: torch.from_numpy(value) for name, value in self.inputs.items()})
        arrays = {name: value.detach().numpy() for name, value in outputs.items()}
        if not all(np.isfinite(array).all() for array in arrays.values()):
            raise ValueError("an output is not finite; choose another config or input")
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            model.save_config(folder) if not self.stored else self.save(model, folder)
            files = folder_files(folder)
        if self.within:
            component, pipeline = self.within
            files["config.json"] = to_json({**pipeline, component: json.loads(files["config.json"])})
        tensors = {f"in.{name}": value for name, value in self.inputs.items()}
        tensors |= {f"out.{name}": value for name, value in arrays.items()}
        read = {name: shape for name, shape in parameters.items() if not name.startswith(self.without or ("\0",))}
        case = {
            "format": 1,
            "model": f"diffusers:{self.within[1]['_class_name'] if self.within else self.model_class}",
            "class": self.head or self.model_class,
            "reference": versions() | {"diffusers": diffusers.__version__},
            "weights": "file" if self.stored else "rule",
            "tolerance": None,
            "tolerance_reason": None,
            "notes": self.notes,
            "parameters": {} if self.stored else read,
        }
        files |= {"io.safetensors": to_safetensors(tensors), "case.json": to_json(case)}
        return {f"{self.path}/{name}": data for name, data in files.items()}

    def fill(self, model: torch.nn.Module) -> dict[str, list[int]]:
        """Fills the model by the names that its tensors have, of a component those in the pipeline."""
        if not self.within:
            return weights.fill(model)
        pipeline = torch.nn.Module()
        pipeline.add_module(self.within[0], model)
        return weights.fill(pipeline)

    def save(self, model: torch.nn.Module, folder: Path) -> None:
        """As `save_pretrained` writes it; tensors under older names, where `rename` has the end of today's."""
        model.save_pretrained(folder)
        if self.rename:
            from safetensors.torch import load_file, save_file

            path = folder / "diffusion_pytorch_model.safetensors"
            tensors = load_file(path)
            for new, old in self.rename.items():
                tensors = {f"{k.removesuffix(new)}{old}" if k.endswith(new) else k: v for k, v in tensors.items()}
            save_file(tensors, path, metadata={"format": "pt"})
