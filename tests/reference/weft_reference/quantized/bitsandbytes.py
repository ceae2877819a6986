"""bitsandbytes as `Linear4bit` and `Linear8bitLt` are saved (`QuantState.as_dict(packed=True)`)."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from weft_reference.quantized import Quantize

NF4 = np.array(
    [-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334]
    + [-0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224]
    + [0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0],
    np.float32,
)
FP4 = np.array([0.0, 0.005208333333, 0.66666667, 1.0, 0.33333333, 0.5, 0.16666667, 0.25], np.float32)
TABLES = {"nf4": NF4, "fp4": np.concatenate([FP4, -FP4])}


def config(kind: str, nested: bool = False) -> dict[str, Any]:
    eight = kind == "int8"
    four = {"bnb_4bit_quant_type": kind, "bnb_4bit_use_double_quant": nested, "bnb_4bit_compute_dtype": "float32"}
    said = {"quant_method": "bitsandbytes", "load_in_8bit": eight, "load_in_4bit": not eight}
    return said | {"llm_int8_skip_modules": ["lm_head"], "llm_int8_threshold": 6.0} | ({} if eight else four)


def four(kind: str, nested: bool = False, block: int = 64) -> Quantize:
    def module(_name: str, weight: np.ndarray) -> tuple[dict[str, np.ndarray], np.ndarray]:
        table = TABLES[kind]
        blocks = weight.reshape(-1, block)
        absmax = np.abs(blocks).max(1).astype(np.float32)
        codes = np.abs((blocks / absmax[:, None])[..., None] - table).argmin(-1).astype(np.uint8)
        state: dict[str, Any] = {
            "quant_type": kind,
            "blocksize": block,
            "dtype": "float32",
            "shape": list(weight.shape),
        }
        flat = codes.reshape(-1)
        tensors = {
            "weight": (flat[0::2] << 4 | flat[1::2]).reshape(-1, 1),
            "weight.absmax": absmax,
            "weight.quant_map": table,
        }
        if nested:
            offset = np.float32(absmax.mean())
            # A map of its own, no dynamic one: what is read is the file's.
            steps = np.linspace(-1, 1, 256, dtype=np.float32)
            parts = np.pad(absmax - offset, (0, -len(absmax) % 256)).reshape(-1, 256)
            outer = np.abs(parts).max(1).astype(np.float32)
            inner = np.abs((parts / outer[:, None])[..., None] - steps).argmin(-1)
            absmax = ((steps[inner] * outer[:, None]).reshape(-1)[: len(absmax)] + offset).astype(np.float32)
            tensors["weight.absmax"] = inner.reshape(-1)[: len(absmax)].astype(np.uint8)
            tensors |= {"weight.nested_absmax": outer, "weight.nested_quant_map": steps}
            state |= {"nested_blocksize": 256, "nested_dtype": "float32", "nested_offset": float(offset)}
        name = f"weight.quant_state.bitsandbytes__{kind}"
        tensors[name] = np.frombuffer(json.dumps(state).encode(), np.uint8).copy()
        return tensors, (table[codes] * absmax[:, None]).reshape(weight.shape)

    return module


def int8(_name: str, weight: np.ndarray) -> tuple[dict[str, np.ndarray], np.ndarray]:
    scales = np.abs(weight).max(1).astype(np.float32)
    codes = np.rint(weight * (127 / scales[:, None])).astype(np.int8)
    values = codes * (scales / np.float32(127))[:, None]
    return {"weight": codes, "SCB": scales, "weight_format": np.array(0, np.uint8)}, values
