"""Fine-grained FP8 as DeepSeek writes it: float8 with a scale for each block, which multiplies."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from weft_reference.quantized import Quantize


def config(block: tuple[int, int] | None, **more: Any) -> dict[str, Any]:
    sizes = {"activation_scheme": "dynamic", "fmt": "e4m3", "weight_block_size": list(block) if block else None}
    return {"quant_method": "fp8"} | sizes | more


def float8(weight: np.ndarray, scales: np.ndarray) -> tuple[torch.Tensor, np.ndarray]:
    """Float8 by scales of the same shape, and the values that these stand for, by torch's own type."""
    stored = torch.from_numpy(weight / scales).clamp(-448, 448).to(torch.float8_e4m3fn)
    return stored, stored.float().numpy() * scales


def of_blocks(scales: np.ndarray, block: tuple[int, int], shape: tuple[int, ...]) -> np.ndarray:
    """Each block's scale at all of its elements; those at the edges may be smaller."""
    return scales.repeat(block[0], 0).repeat(block[1], 1)[: shape[0], : shape[1]]


def quantize(block: tuple[int, int] | None, leaf: str = "weight_scale_inv", power: bool = False) -> Quantize:
    """Without blocks, one scale for all; `power` makes scales powers of two, which are stored as their exponents."""

    def module(_name: str, weight: np.ndarray) -> tuple[dict[str, np.ndarray | torch.Tensor], np.ndarray]:
        size = block or weight.shape
        rows, columns = -(-weight.shape[0] // size[0]), -(-weight.shape[1] // size[1])
        scales = np.zeros((rows, columns), np.float32)
        for row in range(rows):
            for column in range(columns):
                part = weight[row * size[0] : (row + 1) * size[0], column * size[1] : (column + 1) * size[1]]
                scales[row, column] = np.abs(part).max() / 448
        if power:
            exponents = np.ceil(np.log2(scales)).astype(np.int64)
            scales = np.exp2(exponents).astype(np.float32)
        codes, values = float8(weight, of_blocks(scales, size, weight.shape))
        stored = (exponents + 127).astype(np.uint8) if power else scales
        return {"weight": codes, leaf: stored if block else scales.reshape(())}, values

    return module
