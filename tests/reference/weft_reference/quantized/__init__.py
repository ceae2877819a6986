"""Checkpoints in the formats of quantized weights: tiny models whose tensors are written as each format documents them, with
the outputs of the reference on the values that they stand for.

Quantizing is plain rounding, since a golden asks only that what is stored is read. Values come from the codes before they are
packed, and the packing is that of each format's own tools.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from safetensors.torch import save_file

from weft_reference.cases import Case, Store, ruled_model, save_config
from weft_reference.files import to_json
from weft_reference.stores import whole

Tensors = dict[str, torch.Tensor]
"""A module's name and its weight `[out, in]` to its tensors and the values that these stand for."""
Quantize = Callable[[str, np.ndarray], tuple[Mapping[str, np.ndarray | torch.Tensor], np.ndarray]]


@dataclass(frozen=True)
class QuantizedCase(Case):
    """A case whose linear layers are quantized, but for those whose names end in one of `skipped`."""

    store: Store | None = whole
    quantization: Mapping[str, Any] = field(default_factory=dict)
    quantize: Quantize | None = None
    experts: Quantize | None = None
    """How batched weights of experts `[expert, in, out]` are stored, given as `[expert, out, in]`."""
    skipped: tuple[str, ...] = ("lm_head",)
    beside: str | None = None
    """The file that says how weights are quantized, where `config.json` does not."""
    metadata: Mapping[str, str] = field(default_factory=dict)

    def model(self, folder: Path) -> tuple[transformers.PreTrainedModel, dict[str, list[int]]]:
        model, parameters = ruled_model(self.model_class, self.config, attention=self.attention, **self.build)
        tensors: Tensors = {}
        done: set[str] = set()
        for name, module in model.named_modules():
            is_linear = isinstance(module, (torch.nn.Linear, transformers.pytorch_utils.Conv1D))
            if not is_linear or name.endswith(self.skipped) or self.quantize is None:
                continue
            turned = isinstance(module, transformers.pytorch_utils.Conv1D)
            weight = module.weight.detach().numpy()
            stored, values = self.quantize(name, np.ascontiguousarray(weight.T if turned else weight))
            values = np.ascontiguousarray(values.T if turned else values, dtype=np.float32)
            module.weight.copy_(torch.from_numpy(values))
            tensors |= {f"{name}.{leaf}" if leaf else name: tensor(value) for leaf, value in stored.items()}
            done.add(f"{name}.weight")
        for name, parameter in model.named_parameters():
            if self.experts and name.endswith(("experts.gate_up_proj", "experts.down_proj")):
                stored, values = self.experts(name, parameter.detach().numpy().transpose(0, 2, 1))
                parameter.copy_(torch.from_numpy(values))
                tensors |= {f"{name}{leaf}": tensor(value) for leaf, value in stored.items()}
            elif name not in done:
                parameter.copy_(parameter.half().float())
                tensors[name] = parameter.half().clone()
        save_file(dict(sorted(tensors.items())), folder / "model.safetensors", metadata={"format": "pt", **self.metadata})
        save_config(model, folder)
        path = folder / (self.beside or "config.json")
        if self.beside:
            path.write_bytes(to_json(dict(self.quantization)))
        else:
            said = json.loads(path.read_text()) | {"quantization_config": dict(self.quantization)}
            path.write_bytes(to_json(said))
        return model, parameters


def tensor(value: np.ndarray | torch.Tensor) -> torch.Tensor:
    return value if isinstance(value, torch.Tensor) else torch.from_numpy(np.array(value, order="C"))


def affine(weight: np.ndarray, bits: int, group: int, symmetric: bool = False) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Codes `[out, in]`, scales in half precision and zero points `[out, groups]`, by rounding between the extremes."""
    rows, columns = weight.shape
    group = columns if group == -1 else group
    groups = -(-columns // group)
    scales = np.zeros((rows, groups), np.float16)
    zeros = np.zeros((rows, groups), np.int64)
    codes = np.zeros((rows, columns), np.int64)
    most = 2**bits - 1
    for index in range(groups):
        block = weight[:, index * group : (index + 1) * group]
        low, high = np.minimum(block.min(1), 0), np.maximum(block.max(1), 0)
        if symmetric:
            high = np.maximum(high, -low)
            low = -high
        scale = np.maximum((high - low) / most, 1e-4).astype(np.float16)
        zero = np.full(rows, 2 ** (bits - 1)) if symmetric else np.clip(np.rint(-low / scale), 0, most).astype(np.int64)
        scales[:, index], zeros[:, index] = scale, zero
        quantized = np.rint(block / scale[:, None].astype(np.float32)).astype(np.int64) + zero[:, None]
        codes[:, index * group : (index + 1) * group] = np.clip(quantized, 0, most)
    return codes, scales, zeros


def spread(values: np.ndarray, group: int, columns: int) -> np.ndarray:
    """`[out, groups]` for each column."""
    return np.repeat(values, columns if group == -1 else group, axis=1)[:, :columns]


def dequantized(codes: np.ndarray, scales: np.ndarray, zeros: np.ndarray, group: int) -> np.ndarray:
    columns = codes.shape[1]
    steps = (codes - spread(zeros, group, columns)).astype(np.float32)
    return steps * spread(scales.astype(np.float32), group, columns)


def packed_along_rows(codes: np.ndarray, bits: int) -> np.ndarray:
    """`[k, n]` to int32 `[k · bits / 32, n]`, low bits first: a stream of bits along the first axis."""
    rows, columns = codes.shape
    stream = ((codes[:, None, :] >> np.arange(bits)[None, :, None]) & 1).reshape(rows * bits, columns)
    fill = -(rows * bits) % 32
    stream = np.concatenate([stream, np.zeros((fill, columns), stream.dtype)])
    words = (stream.reshape(-1, 32, columns).astype(np.uint64) << np.arange(32, dtype=np.uint64)[None, :, None]).sum(1)
    return words.astype(np.uint32).view(np.int32)
