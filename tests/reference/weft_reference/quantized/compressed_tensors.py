"""compressed-tensors as its releases write it (`pack_to_int32` and the compressors of each format)."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft_reference.quantized import Quantize, affine, dequantized, packed_along_rows


def config(bits: int, group: int, symmetric: bool = True, form: str = "pack-quantized", **more: Any) -> dict[str, Any]:
    weights = {
        "num_bits": bits,
        "type": "int",
        "symmetric": symmetric,
        "strategy": "channel" if group == -1 else "group",
        "group_size": None if group == -1 else group,
        "actorder": None,
        "dynamic": False,
        "observer": "minmax",
    } | more
    groups = {"group_0": {"targets": ["Linear"], "weights": weights, "input_activations": None, "output_activations": None}}
    return {
        "quant_method": "compressed-tensors",
        "format": form,
        "quantization_status": "compressed",
        "config_groups": groups,
        "ignore": ["lm_head"],
        "kv_cache_scheme": None,
    }


def packed(codes: np.ndarray, bits: int) -> np.ndarray:
    """`[n, k]` to int32 `[n, ceil(k · bits / 32)]`."""
    return packed_along_rows(codes.T, bits).T


def tens(codes: np.ndarray) -> np.ndarray:
    """Three bits as releases before the dense packing wrote them: ten a word."""
    rows, columns = codes.shape
    filled = np.zeros((rows, -(-columns // 10) * 10), np.uint32)
    filled[:, :columns] = codes
    return (filled.reshape(rows, -1, 10) << np.arange(0, 30, 3, dtype=np.uint32)).sum(2).astype(np.uint32).view(np.int32)


def quantize(bits: int, group: int, symmetric: bool = True, older: bool = False, whole: bool = False) -> Quantize:
    """`older` packs three bits ten a word; `whole` stores int8 (`int-quantized`)."""

    def module(_name: str, weight: np.ndarray) -> tuple[dict[str, np.ndarray], np.ndarray]:
        codes, scales, zeros = affine(weight, bits, group, symmetric)
        values = dequantized(codes, scales, zeros, group)
        middle = 2 ** (bits - 1)
        if whole:
            tensors = {"weight": (codes - middle).astype(np.int8), "weight_scale": scales}
            if not symmetric:
                tensors["weight_zero_point"] = (zeros - middle).astype(np.int8)
            return tensors, values
        tensors = {
            "weight_packed": tens(codes) if older else packed(codes, bits),
            "weight_scale": scales,
            "weight_shape": np.array(weight.shape, np.int64),
        }
        if not symmetric:
            tensors["weight_zero_point"] = packed(zeros.T, bits).T
        return tensors, values

    return module
