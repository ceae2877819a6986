"""FP4 of microscaling formats: MXFP4 and NVFP4 as compressed-tensors writes them."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from transformers.integrations.mxfp4 import convert_moe_packed_tensors

from weft_reference.quantized import Quantize

E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], np.float32)


def nearest(values: np.ndarray) -> np.ndarray:
    return np.abs(values[..., None] - E2M1).argmin(-1).astype(np.uint8)


def nibbles(codes: np.ndarray) -> np.ndarray:
    """Two a byte, the first in the low bits."""
    return codes[..., 0::2] | codes[..., 1::2] << 4


def mxfp4(_name: str, weight: np.ndarray) -> tuple[dict[str, np.ndarray], np.ndarray]:
    codes, exponents, values = micro(weight)
    return {"weight_packed": nibbles(codes), "weight_scale": exponents}, values


def micro(weight: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Codes, the exponents of a scale for each 32 of a row, and the values."""
    groups = weight.reshape(*weight.shape[:-1], -1, 32)
    exponents = np.floor(np.log2(np.abs(groups).max(-1))).astype(np.int64) - 2
    scales = np.exp2(exponents).astype(np.float32)[..., None]
    codes = nearest(groups / scales)
    values = (E2M1[codes] * scales).reshape(weight.shape)
    return codes.reshape(weight.shape), (exponents + 127).astype(np.uint8), values


def experts(_name: str, weight: np.ndarray) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """gpt-oss's experts, with the values that the reference's own dequantizer gives, `[expert, in, out]`."""
    codes, exponents, _ = micro(np.ascontiguousarray(weight))
    blocks = nibbles(codes).reshape(*exponents.shape, 16)
    values = convert_moe_packed_tensors(torch.from_numpy(blocks), torch.from_numpy(exponents), dtype=torch.float32)
    return {"_blocks": blocks, "_scales": exponents}, values.numpy()


def nvfp4(_name: str, weight: np.ndarray) -> tuple[dict[str, np.ndarray | torch.Tensor], np.ndarray]:
    whole = np.float32(448 * 6 / np.abs(weight).max())
    groups = weight.reshape(weight.shape[0], -1, 16)
    scales = torch.from_numpy(np.abs(groups).max(-1) / 6 * whole).to(torch.float8_e4m3fn)
    each = (scales.float().numpy() / whole)[..., None]
    codes = nearest(groups / each)
    values = (E2M1[codes] * each).reshape(weight.shape)
    packed = nibbles(codes.reshape(weight.shape))
    return {"weight_packed": packed, "weight_scale": scales, "weight_global_scale": np.array([whole])}, values


def config(form: str, kind: str, group: int) -> dict[str, Any]:
    weights = {"num_bits": 4, "type": "float", "symmetric": True, "strategy": kind, "group_size": group}
    groups = {"group_0": {"targets": ["Linear"], "weights": weights, "format": form}}
    return {"quant_method": "compressed-tensors", "format": form, "config_groups": groups, "ignore": ["lm_head"]}
