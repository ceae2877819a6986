"""GPTQ as `auto_gptq` and `gptqmodel` write it (`QuantLinear.pack`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft_reference.quantized import Quantize, affine, dequantized, packed_along_rows


def config(bits: int, group: int, **more: Any) -> dict[str, Any]:
    sizes = {"bits": bits, "group_size": group, "damp_percent": 0.1, "desc_act": False, "sym": False}
    return {"quant_method": "gptq", "checkpoint_format": "gptq"} | sizes | more


def quantize(
    bits: int,
    group: int,
    second: bool = False,
    symmetric: bool = False,
    order: str = "",
    overrides: dict[str, tuple[int, int]] | None = None,
) -> Quantize:
    """`second` is the format's second version; `order` is `sorted` where columns of a group are not neighbours, `uneven` where
    groups differ in size besides, `none` without `g_idx`; `overrides` gives modules bits and groups of their own."""

    def module(name: str, weight: np.ndarray) -> tuple[dict[str, np.ndarray], np.ndarray]:
        own = next((sizes for ending, sizes in (overrides or {}).items() if name.endswith(ending)), (bits, group))
        return pack(weight, *own)

    def pack(weight: np.ndarray, bits: int, group: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
        columns = weight.shape[1]
        size = columns if group == -1 else group
        # By falling importance, as with desc_act: here any order.
        places = np.arange(columns)
        if order in ("sorted", "uneven"):
            places = (places * 13 + 5) % columns
        codes, scales, zeros = affine(weight[:, np.argsort(places)], bits, group, symmetric)
        index = places // size
        codes = codes[:, places]
        if order == "uneven":
            index[0] = (index[0] + 1) % (columns // size)
        values = (codes - zeros[:, index]).astype(np.float32) * scales[:, index].astype(np.float32)
        stored = zeros.T if second else (zeros.T - 1) % 2**bits
        tensors = {
            "qweight": packed_along_rows(codes.T, bits),
            "qzeros": packed_along_rows(stored.T, bits).T,
            "scales": scales.T,
            "g_idx": index.astype(np.int32),
        }
        if order == "none":
            assert np.array_equal(values, dequantized(codes, scales, zeros, group))
            del tensors["g_idx"]
        return tensors, values

    return module
