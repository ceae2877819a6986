"""torchao, HQQ, quanto and BitNet as their packages write them to safetensors."""

from __future__ import annotations

import numpy as np

from weft_reference.quantized import Quantize, affine, dequantized


def torchao_int4(_name: str, weight: np.ndarray) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """`Int4Tensor`: signed codes, the first in the low bits, a zero point in the weight's own unit."""
    codes, scales, zeros = affine(weight, 4, 32)
    offsets = ((8 - zeros) * scales.astype(np.float32)).astype(np.float32)
    signed = (codes - 8).astype(np.int8).view(np.uint8) & 15
    each = lambda values: np.repeat(values, 32, 1)  # noqa: E731
    values = (codes - 8).astype(np.float32) * each(scales.astype(np.float32)) + each(offsets)
    packed = (signed[:, 0::2] | signed[:, 1::2] << 4).view(np.int8)
    return {"_weight_qdata": packed, "_weight_scale": scales.T.astype(np.float32), "_weight_zero_point": offsets.T}, values


def torchao_int8(_name: str, weight: np.ndarray) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """`IntxUnpackedToInt8Tensor`, of 4 bits in groups."""
    codes, scales, zeros = affine(weight, 4, 32)
    tensors = {
        "_weight_qdata": (codes - 8).astype(np.int8),
        "_weight_scale": scales,
        "_weight_zero_point": (zeros - 8).astype(np.int8),
    }
    return tensors, dequantized(codes, scales, zeros, 32)


def hqq(bits: int, group: int, whole: bool = False, axis: int = 1) -> Quantize:
    """`Quantizer.quantize` with `BitPack`: zeros that are no whole numbers, slices of rows from the high bits on."""

    def module(_name: str, weight: np.ndarray) -> tuple[dict[str, np.ndarray], np.ndarray]:
        groups = weight.reshape(-1, group) if axis else weight.reshape(group, -1).T
        most = 2**bits - 1
        low, high = groups.min(1, keepdims=True), groups.max(1, keepdims=True)
        scale = ((high - low) / most).astype(np.float16).astype(np.float32)
        zero = (-low / scale).astype(np.float32)
        zero = np.rint(zero) if whole else zero.astype(np.float16).astype(np.float32)
        codes = np.clip(np.rint(groups / scale + zero), 0, most).astype(np.uint8)
        values = (codes - zero) * scale
        if axis == 0:
            codes, scale, zero, values = codes.T, scale.T, zero.T, values.T
        packed = tenths(codes) if bits == 3 else slices(codes, bits, high_first=True)
        tensors = {
            "W_q": packed,
            "scale": scale.astype(np.float16),
            "zero": zero.astype(np.float16),
            "nbits": np.array(bits),
            "group_size": np.array(group),
            "axis": np.array(axis),
            "shape": np.array(weight.shape),
        }
        return tensors, values.reshape(weight.shape)

    return module


def slices(codes: np.ndarray, bits: int, high_first: bool) -> np.ndarray:
    count = 8 // bits
    rows = -(-len(codes) // count)
    codes = np.concatenate([codes, np.zeros((rows * count - len(codes), codes.shape[1]), np.uint8)])
    packed = np.zeros((rows, codes.shape[1]), np.uint8)
    for index in range(count):
        place = count - 1 - index if high_first else index
        packed |= codes[index * rows : (index + 1) * rows] << (bits * place)
    return packed


def tenths(codes: np.ndarray) -> np.ndarray:
    """`BitPack.pack_3bit_32`."""
    rows = -(-len(codes) // 10)
    filled = np.zeros((rows * 10, codes.shape[1]), np.int32)
    filled[: len(codes)] = codes
    return sum(filled[index * rows : (index + 1) * rows] << (27 - 3 * index) for index in range(10)).astype(np.int32)


def quanto(bits: int, group: int | None, whole: bool = False) -> Quantize:
    """`quantize_weight` with `pack_weights`: shifts in the weight's own unit, or whole ones; slices from the low bits on."""

    def module(_name: str, weight: np.ndarray) -> tuple[dict[str, np.ndarray], np.ndarray]:
        if bits == 8:
            scale = (np.abs(weight).max(1, keepdims=True) / 127).astype(np.float32)
            codes = np.clip(np.rint(weight / scale), -128, 127).astype(np.int8)
            return {"weight._data": codes, "weight._scale": scale}, codes * scale
        groups = weight.reshape(-1, group or weight.shape[1])
        low, high = groups.min(1, keepdims=True), groups.max(1, keepdims=True)
        scale = ((high - low) / (2**bits - 1)).astype(np.float32)
        shift = np.clip(np.rint(-low / scale), 0, 255).astype(np.uint8) if whole else -low
        steps = np.rint(groups / scale) + shift if whole else np.rint((groups + shift) / scale)
        codes = np.clip(steps, 0, 2**bits - 1).astype(np.uint8)
        values = (codes.astype(np.float32) - shift) * scale if whole else scale * codes - shift
        packed = slices(codes, bits, high_first=False)
        return {"weight._data._data": packed, "weight._scale": scale, "weight._shift": shift}, values.reshape(weight.shape)

    return module


def bitnet(multiplies: bool) -> Quantize:
    """`pack_weights`; `BitLinear` divides by the scale, `AutoBitLinear` multiplies."""

    def module(_name: str, weight: np.ndarray) -> tuple[dict[str, np.ndarray], np.ndarray]:
        scale = np.abs(weight).mean().astype(np.float32)
        signs = np.clip(np.rint(weight / scale), -1, 1)
        packed = slices((signs + 1).astype(np.uint8), 2, high_first=False)
        stored = scale if multiplies else np.float32(1) / scale
        return {"weight": packed, "weight_scale": np.array([stored])}, (signs * scale).astype(np.float32)

    return module
