"""AWQ as `autoawq` writes it (`WQLinear_GEMM.from_linear`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft_reference.quantized import Quantize, affine, dequantized

ORDER = (0, 2, 4, 6, 1, 3, 5, 7)


def config(group: int, **more: Any) -> dict[str, Any]:
    sizes = {"bits": 4, "group_size": group, "zero_point": True, "version": "gemm", "modules_to_not_convert": None}
    return {"quant_method": "awq"} | sizes | more


def packed(values: np.ndarray) -> np.ndarray:
    """`[k, n]` to int32 `[k, n / 8]`."""
    words = np.zeros((values.shape[0], values.shape[1] // 8), np.uint32)
    for place, column in enumerate(ORDER):
        words |= values[:, column::8].astype(np.uint32) << np.uint32(4 * place)
    return words.view(np.int32)


def quantize(group: int) -> Quantize:
    def module(_name: str, weight: np.ndarray) -> tuple[dict[str, np.ndarray], np.ndarray]:
        codes, scales, zeros = affine(weight, 4, group)
        tensors = {"qweight": packed(codes.T), "qzeros": packed(zeros.T), "scales": scales.T}
        return tensors, dequantized(codes, scales, zeros, group)

    return module
